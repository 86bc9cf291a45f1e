"""`strandline replay FOLDER` makes the store of an archive without Spark."""

import json
from pathlib import Path

import pytest
from sqlalchemy import Engine

from strandline.cli import main
from strandline.history.archive import archive
from strandline.store.sql.engine import make_engine
from transports.history.test_archive import LATER
from worlds.builders import rows
from worlds.scenarios.bank import bank
from worlds.scenarios.taking import fill

EVENTS = "SELECT hash, received_at, event_time FROM raw_events"
LINEAGE = (
    "SELECT id, namespace, name, first_at, newest_at FROM jobs",
    "SELECT id, run_id, job_id, state, started_at, ended_at, first_at, newest_at FROM runs",
    "SELECT id, canonical_id, namespace, name FROM datasets",
    "SELECT run_id, direction, dataset_id, first_at, newest_at FROM run_relations",
    "SELECT run_id, sink_id, rule, set_hash FROM run_edges",
    "SELECT dataset_id, snapshot_id, barrier FROM snapshots",
)


def test_replayed_archive_is_the_store_that_it_left(
    sqlite_engine: Engine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(sqlite_engine, bank())
    lineage = [rows(sqlite_engine, query) for query in LINEAGE]
    events = rows(sqlite_engine, EVENTS)
    moved = archive(sqlite_engine, str(tmp_path / "archive"), LATER, {}, most=7)
    database_url = f"sqlite:///{tmp_path / 'again.db'}"
    command = ["replay", str(tmp_path / "archive"), "--json", "--database-url", database_url]

    assert main(command, {}) == 0
    first = json.loads(capsys.readouterr().out)
    assert main(command, {}) == 0
    second = json.loads(capsys.readouterr().out)

    again = make_engine(database_url)
    assert moved.batches > 3
    assert first == {"stored": len(events), "duplicate": 0, "dead": 0, "unread": 0}
    assert second == first | {"stored": 0, "duplicate": len(events)}
    assert [rows(again, query) for query in LINEAGE] == lineage
    assert rows(again, EVENTS) == events
    again.dispose()


def test_folder_without_an_archive_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    database_url = f"sqlite:///{tmp_path / 'again.db'}"

    assert main(["replay", str(tmp_path), "--database-url", database_url], {}) == 1
    assert "no Parquet file in this folder" in capsys.readouterr().err


def test_damaged_archive_is_reported_and_taken_once_it_is_whole(
    sqlite_engine: Engine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(sqlite_engine, bank())
    archive(sqlite_engine, str(tmp_path / "archive"), LATER, {})
    file = next((tmp_path / "archive").rglob("*.parquet"))
    whole = file.read_bytes()
    file.write_bytes(whole[:-100])
    database_url = f"sqlite:///{tmp_path / 'again.db'}"
    command = ["replay", str(tmp_path / "archive"), "--json", "--database-url", database_url]

    assert main(command, {}) == 1
    assert "take it again once it is whole" in capsys.readouterr().err
    file.write_bytes(whole)
    assert main(command, {}) == 0
