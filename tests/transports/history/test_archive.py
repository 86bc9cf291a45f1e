"""Archived events reach the archive exactly once and stay known."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from pyarrow import dataset as arrow
from sqlalchemy import Engine

from fixtures.servers import SETTINGS, bearer, serving
from strandline.cli import main
from strandline.errors import SettingsError
from strandline.history import archive as archiving
from strandline.history.archive import archive, target_of
from strandline.store.api_keys import add_key
from strandline.store.ingest.archived import Batch, archived
from strandline.store.ingest.retention import expire
from strandline.store.ingest.take import Caches, Record, take
from worlds.builders import rows
from worlds.scenarios.bank import BEGIN, bank
from worlds.scenarios.taking import fill

LATER = datetime(2027, 1, 1, tzinfo=UTC)
Read = Callable[[], Sequence[bytes]]
Place = tuple[str, dict[str, dict[str, str]], Read]


class KilledError(BaseException):
    """Stands for a kill: nothing catches it, and no transaction commits."""


@pytest.fixture(params=["parquet", "delta", "iceberg"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """Return a target with its catalog, and a reader of its hashes by the format's own library."""
    folder = str(tmp_path / "archive")
    if request.param == "parquet":
        return (
            folder,
            {},
            lambda: arrow.dataset(folder, partitioning="hive").to_table()["hash"].to_pylist(),
        )
    if request.param == "delta":
        from deltalake import DeltaTable

        return (
            f"delta:{folder}",
            {},
            lambda: DeltaTable(folder).to_pyarrow_table()["hash"].to_pylist(),
        )
    from pyiceberg.catalog import load_catalog

    catalog = {
        "type": "sql",
        "uri": f"sqlite:///{tmp_path}/catalog.db",
        "warehouse": f"file://{tmp_path}/lake",
    }

    def hashes() -> Sequence[bytes]:
        found: list[bytes] = (
            load_catalog("lake", **catalog)
            .load_table("old.events")
            .scan()
            .to_arrow()["hash"]
            .to_pylist()
        )
        return found

    return "iceberg:lake.old.events", {"lake": catalog}, hashes


def hashes(engine: Engine, table: str) -> list[bytes]:
    return sorted(bytes(row[0]) for row in rows(engine, f"SELECT hash FROM {table}"))


@pytest.mark.parametrize("killed", ["before it writes", "after it wrote", "while it deletes"])
def test_each_event_is_archived_once_despite_kills(
    engine: Engine, place: Place, killed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, properties, read = place
    fill(engine, bank(4))
    known = hashes(engine, "event_keys")

    with monkeypatch.context() as patched:
        patched.setattr(archiving, "target_of", _killed_target(killed))
        if killed == "while it deletes":
            patched.setattr(archiving, "end_batch", _killed)
        with pytest.raises(KilledError):
            archive(engine, target, LATER, properties, most=20)
    moved = archive(engine, target, LATER, properties, most=7)

    assert moved.events == len(known)
    assert sorted(read()) == known
    assert hashes(engine, "raw_events") == []


def _killed_target(killed: str) -> Callable[..., Any]:
    def make(target: str, properties: Any) -> Callable[..., None]:
        write = target_of(target, properties)
        if killed == "while it deletes":
            return write

        def cut_short(batch: Batch, table: Any) -> None:
            if killed == "after it wrote":
                write(batch, table)
            raise KilledError

        return cut_short

    return make


def _killed(*_: Any) -> None:
    raise KilledError


def test_archived_events_stay_known_until_retention(engine: Engine, tmp_path: Path) -> None:
    events = bank(3)
    fill(engine, events)
    target = str(tmp_path / "archive")
    first_day = events[0].received_at + timedelta(seconds=5)

    moved = archive(engine, target, first_day, {})

    older = sum(one.received_at < first_day for one in events)
    assert 0 < moved.events == older < len(events)
    with engine.begin() as connection:
        assert {one.kind for one in take(connection, events, Caches())} == {"duplicate"}
        assert [(one.target, one.events) for one in archived(connection)] == [(target, older)]
        expire(connection, LATER)
    assert hashes(engine, "event_keys") == []
    with engine.connect() as connection:
        assert [one.events for one in archived(connection)] == [older]


def test_archive_files_hold_one_day_each(engine: Engine, tmp_path: Path) -> None:
    fill(
        engine,
        [
            Record(one.value, one.received_at + timedelta(days=n % 2))
            for n, one in enumerate(bank(2))
        ],
    )

    archive(engine, str(tmp_path / "archive"), LATER, {})

    assert sorted(file.parent.name for file in (tmp_path / "archive").rglob("*.parquet")) == [
        "day=2026-11-20",
        "day=2026-11-21",
    ]


def test_target_without_a_table_is_rejected() -> None:
    with pytest.raises(
        SettingsError, match=r"iceberg:events is not iceberg:CATALOG\.DATABASE\.TABLE"
    ):
        target_of("iceberg:events", {})


def test_events_list_says_where_archived_events_are(
    database_url: str, engine: Engine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target, environ = str(tmp_path / "archive"), {"STRANDLINE_DATABASE_URL": database_url}
    fill(engine, bank(2))
    count = len(hashes(engine, "event_keys"))
    archive(engine, target, LATER, {})
    where = f"(archived: {count} events of all jobs, received 2026-11-20 to 2026-11-20, are in {target}; see strandline rebuild)"

    main(["events", "--until", "2026-12-01T00:00:00Z"], environ)
    then = capsys.readouterr().out.splitlines()
    main(["events", "--since", "2026-12-01T00:00:00Z"], environ)
    later = capsys.readouterr().out.splitlines()
    main(["events", "--json"], environ)
    answer = json.loads(capsys.readouterr().out)

    assert then == ["no events are left in the store", where]
    assert later == ["no event matches"]
    assert (answer["items"], [one["target"] for one in answer["archived"]]) == ([], [target])


def test_restricted_key_is_not_shown_archives(sqlite_engine: Engine, tmp_path: Path) -> None:
    fill(sqlite_engine, bank(2))
    archive(sqlite_engine, str(tmp_path / "archive"), LATER, {})
    with sqlite_engine.begin() as connection:
        keys = [
            add_key(connection, pattern, BEGIN, ["read"], [pattern]) for pattern in ("*", "spark")
        ]

    with serving(sqlite_engine, replace(SETTINGS, auth="required")) as address:
        answers = [
            httpx.get(f"{address}/api/v2/events", headers=bearer(key), timeout=60).json()
            for key in keys
        ]

    assert [len(answer["archived"]) for answer in answers] == [1, 0]
