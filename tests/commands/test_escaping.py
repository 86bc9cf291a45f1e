"""Producers do not steer the terminal: commands and logs show their signs escaped."""

import io

import pytest
from sqlalchemy import Engine

from fixtures.servers import post, serving
from strandline.cli import main
from strandline.logs import make_log
from worlds.sample_events import run_event

HOSTILE = "\x1b[2Jx\x07\r\n\u202ey\x9b"
STEERING = set(HOSTILE) - set("[2Jxy\n")


@pytest.fixture
def environ(sqlite_engine: Engine, sqlite_url: str) -> dict[str, str]:
    event = run_event("1", "FAIL", HOSTILE)
    event["outputs"] = [{"namespace": "ns", "name": HOSTILE}]
    facet = {"_producer": "https://example.org", "_schemaURL": "https://example.org/s.json"}
    event["run"]["facets"] = {
        "errorMessage": facet | {"message": HOSTILE, "programmingLanguage": "PYTHON"}
    }
    with serving(sqlite_engine) as address:
        assert post(f"{address}/api/v1/lineage", json=event).status_code == 201
    return {"STRANDLINE_DATABASE_URL": sqlite_url}


@pytest.mark.parametrize(
    "argv",
    [
        ["jobs"],
        ["datasets"],
        ["runs"],
        ["events"],
        ["search", "2Jx"],
        ["lineage", f"dataset:ns:{HOSTILE}"],
        ["lineage", f"dataset:ns:{HOSTILE}", "--nodes"],
        ["impact", f"dataset:ns:{HOSTILE}"],
        ["late", f"dataset:ns:{HOSTILE}"],
        ["versions", f"dataset:ns:{HOSTILE}"],
        ["lineage", HOSTILE + "unknown"],
        ["snapshots", f"dataset:ns:{HOSTILE}"],
        ["changes", "--since", "2020-01-01T00:00:00Z"],
        ["expire", f"dataset:ns:{HOSTILE}"],
        ["rollback", f"dataset:ns:{HOSTILE}", "1"],
        ["retire", HOSTILE],
        ["names", "jobs", "default", HOSTILE],
        ["keys", "revoke", HOSTILE],
        ["exports", "parked", HOSTILE],
        ["replay", HOSTILE],
        ["jobs", "--url", f"http://{HOSTILE}"],
        ["jobs", "--state", HOSTILE],
        ["jobs", f"--{HOSTILE}"],
        [HOSTILE],
    ],
)
def test_command_shows_signs_that_steer_a_terminal_escaped(
    argv: list[str], environ: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    main(argv, environ)

    told = "".join(capsys.readouterr())
    assert r"\x1b[2Jx" in told
    assert STEERING.isdisjoint(told)


@pytest.mark.parametrize("log_format", ["console", "json"])
def test_log_shows_signs_that_steer_a_terminal_escaped(log_format: str) -> None:
    stream = io.StringIO()

    make_log(log_format, stream=stream).info("it failed", reason=HOSTILE)

    assert STEERING.isdisjoint(stream.getvalue())
    assert stream.getvalue().count("\n") == 1
