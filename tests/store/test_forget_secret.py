"""A secret unknown to the rules is removed from every row beside a running writer."""

import json
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine

from fixtures.sqlite_first import database_url, own_database_url  # noqa: F401 - PostgreSQL is slow here
from strandline.cli import main
from strandline.errors import RefusedError
from strandline.store.damage import damage_in
from strandline.store.ingest.forget import forget_secret
from strandline.store.ingest.raw_events import events_of
from strandline.store.ingest.take import Caches
from worlds.builders import Json, dataset, event, rows, store
from worlds.stored_rows import stored_rows

WORD = 'Mellon "speak" friend\\1'
LONG = "x" * 2000


def planted(number: int) -> Json:
    """An event with the word in most places where a text may stand."""
    inner = json.dumps({"note": json.dumps({"deep": WORD})})
    return event(
        "FAIL",
        run=number,
        job=f"job {WORD}" if number < 3 else "etl",
        seconds=number,
        facets={
            "custom": {"note": f"say {WORD}", "inner": inner, WORD: number},
            "errorMessage": {"message": WORD, "programmingLanguage": "PYTHON"},
        },
        job_facets={"sql": {"query": f"SELECT '{WORD}' -- {LONG}"}},
        outputs=[
            dataset(f"bank.{WORD}" if number < 3 else "bank.a", documentation={"description": WORD})
        ],
    )


def holding(engine: Engine) -> set[str]:
    """The tables that have the word, or its beginning, in a row."""
    return {name.split()[0] for name, shown in stored_rows(engine) if "Mellon" in shown}


def test_secret_is_removed_everywhere_beside_a_running_writer(own_engine: Engine) -> None:
    caches = Caches()
    no_event = json.dumps({"eventType": WORD, "no": "event"}).encode()
    events: list[Any] = [*map(planted, range(60)), no_event]
    store(own_engine, events, size=100, writer=caches)
    before = holding(own_engine)
    counted = forget_secret(own_engine, WORD, execute=False)
    untouched = holding(own_engine)
    taken = forget_secret(own_engine, WORD, execute=True)
    later = [event(run=number, seconds=number) for number in range(1000, 1050)]
    store(own_engine, later, writer=caches)
    with own_engine.connect() as connection:
        bodies = [json.loads(one.body) for one in events_of(connection)]

    assert before >= {
        "raw_events",
        "facets",
        "facet_bodies",
        "jobs",
        "datasets",
        "body_references",
        "set_aside",
    }
    assert untouched == before
    assert counted == taken
    assert holding(own_engine) == set()
    assert len(bodies) == 110
    assert forget_secret(own_engine, WORD, execute=True) == {}
    assert list(damage_in(own_engine)) == []
    if own_engine.dialect.name == "sqlite":
        file = Path(str(own_engine.url.database))
        assert not [
            one.name for one in file.parent.glob("strandline.db*") if b"Mellon" in one.read_bytes()
        ]


def test_short_word_is_rejected(engine: Engine) -> None:
    with pytest.raises(RefusedError, match="part of other words"):
        forget_secret(engine, "abc", execute=True)


def test_command_counts_before_it_removes_the_secret(
    sqlite_engine: Engine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, url = tmp_path / "secret", sqlite_engine.url.render_as_string(hide_password=False)
    file.write_text(f"{WORD}\n")
    store(sqlite_engine, [planted(5)])
    command = ["forget", "--secret-from", str(file), "--database-url", url]

    assert main(command, {}) == 0
    assert "nothing was changed" in capsys.readouterr().out
    assert holding(sqlite_engine) != set()
    assert main([*command, "--execute"], {}) == 0
    assert "1 row of raw_events" in capsys.readouterr().out
    assert holding(sqlite_engine) == set()
    assert rows(sqlite_engine, "SELECT count(*) FROM runs") == [(1,)]
    assert main(command, {}) == 0
    assert "the secret is in no row" in capsys.readouterr().out
