"""The source of a command's answers: the collector that is named, the database, or one on this machine."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import Engine

from fixtures.servers import SETTINGS, post, serving
from fixtures.versions_server.events import LAKE, committed, started
from strandline.cli import collector, main
from strandline.store.sql.engine import make_engine, migrate
from strandline.store.sql.private_files import held_by_one_server

EVENTS = (
    started("transfers", 0, [], ["bank.transfers"], group="bank"),
    started("debits", 0, ["bank.transfers"], ["bank.debits"], group="bank"),
    committed("transfers", 10, 1, {}, {"bank.transfers": "t1"}, group="bank"),
    committed("debits", 12, 1, {"bank.transfers": "t1"}, {"bank.debits": "d1"}, group="bank"),
    committed("transfers", 20, 2, {}, {"bank.transfers": "t2"}, group="bank"),
)
DEBITS = f"namespace={LAKE}&name=bank.debits"
NO_DATABASE = (
    "strandline: there is no database {} yet, and no collector answers at {}: "
    "start strandline serve, or set STRANDLINE_URL (--url) or "
    "STRANDLINE_DATABASE_URL (--database-url)\n"
)


@pytest.fixture
def address(sqlite_engine: Engine) -> Iterator[str]:
    with serving(sqlite_engine) as address:
        for event in EVENTS:
            assert post(f"{address}/api/v1/lineage", json=event).status_code == 201
        yield address


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return where the default database would be; it is not there yet."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    return tmp_path / "strandline" / "strandline.db"


@pytest.mark.parametrize(
    ("command", "path", "query"),
    [
        ("jobs", "jobs", ""),
        ("jobs --state RUNNING --tag x", "jobs", "state=RUNNING&tag=x"),
        ("datasets --limit 1", "datasets", "limit=1"),
        ("runs", "runs", ""),
        ("search debit", "search", "q=debit"),
        ("events --limit 2", "events", "limit=2"),
        ("rejected", "rejected", ""),
        ("snapshots bank.debits", "datasets/snapshots", DEBITS),
        ("late bank.debits", "delays", DEBITS),
        ("names", "names", ""),
        ("names jobs lake", "names/jobs", "namespace=lake"),
        ("expire bank.debits", "expirable", f"{DEBITS}&limit=1000"),
        (
            "lineage bank.debits --direction upstream",
            "lineage",
            "node=bank.debits&direction=upstream&limit=1000",
        ),
        ("lineage bank.debits --nodes", "lineage/nodes", "node=bank.debits"),
        ("impact bank.transfers", "impact", "node=bank.transfers"),
        ("paths bank.transfers bank.debits", "lineage/paths", "from=bank.transfers&to=bank.debits"),
        ("changes --since 2020-01-01T00:00:00Z", "lineage/changes", "since=2020-01-01T00:00:00Z"),
        ("namespaces", "namespaces", ""),
    ],
)
def test_command_prints_the_answer_of_the_api(
    command: str,
    path: str,
    query: str,
    address: str,
    sqlite_url: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Whatever is asked for as JSON has one form; only the moment of the question differs."""
    moments = {"asOf": None, "until": None}
    answer = httpx.get(f"{address}/api/v2/{path}?{query}").json()
    for source in (["--url", address], ["--database-url", sqlite_url]):
        assert main([*command.split(), "--json", *source], {}) in (0, 1)

        printed = json.loads(capsys.readouterr().out)
        assert without_ages(printed | moments) == without_ages(answer | moments)


def without_ages(answer: Any) -> Any:
    """Return an answer without what grows between two questions."""
    if isinstance(answer, dict):
        return {
            name: without_ages(value)
            for name, value in answer.items()
            if not name.endswith("econds")
        }
    return [*map(without_ages, answer)] if isinstance(answer, list) else answer


@pytest.mark.parametrize(
    "argv",
    [
        ["versions", "bank.transfers", "bank.debits"],
        ["versions", "--weak", "bank.debits"],
        ["late", "bank.debits"],
        ["late", "bank.debits", "--barrier", "1"],
        ["lineage", "bank.debits"],
        ["jobs"],
    ],
)
def test_collector_and_database_give_one_answer(
    argv: list[str], address: str, sqlite_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    told = []
    for source in (["--url", address], ["--database-url", sqlite_url]):
        assert main([*argv, *source], {}) == 0
        out, err = capsys.readouterr()
        assert err == ""
        told.append(re.sub(r"\b\d+ (s|min|h|d)\b", "N", out))

    assert told[0] == told[1]
    assert "debits" in told[0]


def test_environment_names_the_collector(
    address: str, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["late", "bank.debits"], {"STRANDLINE_URL": address}) == 0

    told = capsys.readouterr()
    assert told.err == ""
    assert told.out.startswith("bank.debits, written by job debits: ")


def test_collector_is_asked_where_the_environment_names_a_database_too(
    address: str, sqlite_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    environ = {"STRANDLINE_URL": address, "STRANDLINE_DATABASE_URL": sqlite_url}

    assert main(["late", "bank.debits"], environ) == 0

    assert capsys.readouterr().err == (
        f"strandline: asking the collector at {address} (STRANDLINE_URL), not the database\n"
    )


def test_flag_of_a_database_wins_over_a_collector_of_the_environment(
    sqlite_url: str, address: str, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = ["late", "bank.debits", "--database-url", sqlite_url]

    assert main(argv, {"STRANDLINE_URL": "http://127.0.0.1:1"}) == 0

    assert capsys.readouterr().err == ""


def test_collector_of_this_machine_is_asked_where_there_is_no_database(
    address: str, file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(collector, "LOCAL_COLLECTOR", address)

    assert main(["versions", "bank.debits"], {}) == 0

    assert capsys.readouterr().err == f"strandline: asking the collector at {address}\n"


def test_collector_with_a_label_is_asked_like_any_other(
    sqlite_engine: Engine,
    file: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with serving(sqlite_engine, replace(SETTINGS, label="recorded demo")) as address:
        monkeypatch.setattr(collector, "LOCAL_COLLECTOR", address)

        assert main(["jobs"], {}) == 0

    assert capsys.readouterr() == (
        "no job is known yet\n",
        f"strandline: asking the collector at {address}\n",
    )


def test_database_is_asked_and_a_collector_that_answers_too_is_named(
    address: str, file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(collector, "LOCAL_COLLECTOR", address)
    engine = make_engine(f"sqlite:///{file}")
    migrate(engine)
    engine.dispose()

    assert main(["jobs"], {}) == 0

    out, err = capsys.readouterr()
    assert out == "no job is known yet\n"
    assert err == (
        "strandline: asking the database in your data folder; "
        f"a collector answers too: --url {address}\n"
    )


def test_database_that_a_server_has_open_is_asked_without_a_note(
    address: str, file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A first user runs `strandline serve` and asks in a second shell: both have one database."""
    monkeypatch.setattr(collector, "LOCAL_COLLECTOR", address)
    engine = make_engine(f"sqlite:///{file}")
    migrate(engine)
    engine.dispose()

    with held_by_one_server(file):
        assert main(["jobs"], {}) == 0

    assert capsys.readouterr() == ("no job is known yet\n", "")


def test_missing_database_is_reported_if_no_collector_answers(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(collector, "LOCAL_COLLECTOR", "http://127.0.0.1:1")

    assert main(["versions", "bank.debits"], {}) == 1

    assert capsys.readouterr().err == NO_DATABASE.format(file, "http://127.0.0.1:1")


@pytest.mark.parametrize(
    "address", ["localhost:5000", "http://", "http://127.0.0.1:99999", "http://[::1"]
)
def test_address_that_is_none_is_refused(address: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["jobs", "--url", address], {}) == 2

    assert capsys.readouterr().err == (
        f"strandline jobs: argument --url: {address} is not an address like "
        "http://127.0.0.1:5000 (strandline jobs --help)\n"
    )
