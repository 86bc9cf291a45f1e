"""A store rebuilt by Spark from an archive equals the live one, row by row."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest
from pyarrow import parquet
from sqlalchemy import Engine, inspect

import recordings
from strandline.cli import main
from strandline.core.openlineage.facets import content_hash
from strandline.core.openlineage.times import micros_of
from strandline.errors import RefusedError
from strandline.history.archive import archive
from strandline.history.compare import differences
from strandline.history.rebuild import NameRules, names_of, rebuild
from strandline.store.ingest.name_patterns import apply_alias, apply_patterns
from strandline.store.ingest.take import Caches, Record, take
from strandline.store.sql.engine import make_engine, migrate
from worlds.scenarios.bank import bank

pytestmark = pytest.mark.spark
BEGIN = datetime(2026, 11, 20, tzinfo=UTC)
LATER = datetime(2027, 1, 1, tzinfo=UTC)
JOINED = (("file", "/by/hand"), ("file", "/called/so"))
PATTERN = r"/dt=[^/]+$"


def events() -> list[Record]:
    """Recordings of the stock listener and the bank, shuffled, with repeats that are received at other times."""
    bodies = [body for name in recordings.names() for body in recordings.events_of(name)]
    found = [
        Record(body, BEGIN + timedelta(minutes=3 * n)) for n, body in enumerate(bodies)
    ] + bank(4)
    found += skewed()
    chance = random.Random(7)
    repeats = [
        one._replace(received_at=one.received_at + timedelta(hours=5))
        for one in chance.choices(found, k=60)
    ]
    chance.shuffle(found)
    return [*found, *repeats]


def skewed() -> list[Record]:
    """One job with more events than all others: each of its runs reads another day of a path."""
    return [
        Record(json.dumps(_daily(number)).encode(), BEGIN + timedelta(minutes=number, days=2))
        for number in range(900)
    ]


def _daily(number: int) -> dict[str, Any]:
    time = (BEGIN + timedelta(minutes=number)).isoformat()
    return {
        "eventType": ("START", "RUNNING", "COMPLETE")[number % 3],
        "eventTime": time,
        "producer": "test://skew",
        "schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent",
        "run": {"runId": f"01930000-0000-7000-8000-{number // 3:012d}"},
        "job": {"namespace": "skew", "name": "hot"},
        "inputs": [{"namespace": "file", "name": f"/raw/orders/dt=2026-11-{1 + number % 28:02d}"}],
        "outputs": [{"namespace": "file", "name": "/made/orders"}],
    }


def filled(engine: Engine, records: Sequence[Record]) -> None:
    """A live store whose names are joined by a pattern, and afterwards by hand."""
    caches = Caches()
    with engine.begin() as connection:
        apply_patterns(connection, [PATTERN])
    for start in range(0, len(records), 200):
        with engine.begin() as connection:
            take(connection, records[start : start + 200], caches)
        caches.commit()
    with engine.begin() as connection:
        apply_alias(connection, *JOINED)


@pytest.fixture
def sqlite_engine(sqlite_url: str) -> Iterator[Engine]:
    """A live store on SQLite."""
    engine = make_engine(sqlite_url)
    yield engine
    engine.dispose()


@pytest.fixture
def other_kind(engine: Engine, empty: Engine, request: pytest.FixtureRequest) -> Iterator[Engine]:
    """An empty store on the database that the live one is not on."""
    if engine.dialect.name == "postgresql":
        yield empty
        return
    target = make_engine(request.getfixturevalue("postgres_url"))
    yield target
    target.dispose()


def indexes(engine: Engine) -> set[tuple[str, str]]:
    """The indexes of all tables."""
    found = inspect(engine)
    return {
        (table, index["name"] or "")
        for table in found.get_table_names()
        for index in found.get_indexes(table)
    }


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[Engine]:
    """A migrated store without anything."""
    target = make_engine(f"sqlite:///{tmp_path}/rebuilt.db")
    migrate(target)
    yield target
    target.dispose()


@pytest.mark.slow
def test_rebuilt_store_equals_the_live_one_row_by_row(
    lake: Any, engine: Engine, other_kind: Engine, tmp_path: Path
) -> None:
    target = other_kind
    had = indexes(target)
    filled(engine, events())
    folder = str(tmp_path / "archive")
    moved = archive(engine, folder, LATER, {}, most=500)

    done = rebuild(lake, folder, target, NameRules([PATTERN], [JOINED]))
    again = rebuild(lake, folder, target, NameRules([PATTERN], [JOINED]))  # as after a kill

    assert done.events == again.events == moved.events
    assert done.refused == []
    assert set(done.rows) >= {
        "run_relations",
        "runs",
        "facets",
        "run_edges",
        "snapshots",
        "snapshot_uses",
        "job_barriers",
    }
    assert differences(engine, target) == {}
    assert indexes(target) == had
    assert indexes(engine) == had
    with target.begin() as connection:
        connection.exec_driver_sql(
            "UPDATE runs SET state = state + 1 WHERE id = (SELECT min(id) FROM runs)"
        )
        connection.exec_driver_sql(
            "UPDATE run_templates SET first_at = 1 WHERE run_id = (SELECT max(run_id) FROM run_relations)"
        )
    found = differences(engine, target)
    assert found["runs"] == 1
    assert found.keys() == {"runs", "run_relations"}


def catalog_of(lake: Any) -> dict[str, str]:
    """Return the properties by which pyiceberg opens Spark's own catalog."""
    file = lake.conf.get("spark.sql.catalog.lake.uri").removeprefix("jdbc:sqlite:")
    return {
        "type": "sql",
        "uri": f"sqlite:///{file}",
        "warehouse": lake.conf.get("spark.sql.catalog.lake.warehouse"),
    }


@pytest.mark.slow
@pytest.mark.parametrize("form", ["delta", "iceberg"])
def test_an_archive_of_another_format_is_rebuilt_like_one_of_parquet(
    lake: Any, sqlite_engine: Engine, empty: Engine, form: str, tmp_path: Path
) -> None:
    """The archive is written by the format's own library and read by Spark."""
    filled(sqlite_engine, bank(2))
    place = (
        f"iceberg:lake.old_{uuid4().hex[:8]}.events"
        if form == "iceberg"
        else f"delta:{tmp_path}/archive"
    )
    moved = archive(
        sqlite_engine, place, LATER, {"lake": catalog_of(lake)} if form == "iceberg" else {}
    )

    done = rebuild(lake, place, empty, NameRules([PATTERN], [JOINED]))

    assert (done.events, done.refused) == (moved.events, [])
    assert moved.events > 0
    assert differences(sqlite_engine, empty) == {}


def _of_names(second: int, reads: str, name: str, before: str | None = None) -> Record:
    """A run that reads a table and writes one, which it may rename."""
    facets: dict[str, Any] = {}
    if before is not None:
        facets["lifecycleStateChange"] = {
            "lifecycleStateChange": "RENAME",
            "previousIdentifier": {"namespace": "hive", "name": before},
        }
    told = {
        "eventType": "COMPLETE",
        "eventTime": (BEGIN + timedelta(seconds=second)).isoformat(),
        "producer": "test://names",
        "schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent",
        "run": {"runId": f"01930000-0000-7000-8000-{second:012d}"},
        "job": {"namespace": "names", "name": f"write {name}"},
        "inputs": [{"namespace": "hive", "name": reads}],
        "outputs": [{"namespace": "hive", "name": name, "facets": facets}],
    }
    return Record(json.dumps(told).encode(), BEGIN)


@pytest.mark.slow
def test_rebuilt_store_keeps_tables_apart_that_had_one_name(
    lake: Any, sqlite_engine: Engine, empty: Engine, tmp_path: Path
) -> None:
    filled(
        sqlite_engine,
        [
            _of_names(1, "src1", "db.a"),
            _of_names(2, "db.a", "db.out"),
            _of_names(3, "db.a", "db.b", before="db.a"),
            _of_names(5, "src2", "db.a"),
        ],
    )
    folder = str(tmp_path / "archive")
    archive(sqlite_engine, folder, LATER, {})
    with sqlite_engine.connect() as connection:
        names = names_of(connection)

    rebuild(lake, folder, empty, names)

    assert [before.name for before in names.names_before] == [("hive", "db.a")]
    assert differences(sqlite_engine, empty) == {}


@pytest.mark.slow
def test_event_received_twice_counts_from_the_first_time(
    lake: Any, sqlite_engine: Engine, empty: Engine, tmp_path: Path
) -> None:
    """An archive written from a topic contains duplicates that the live collector dropped."""
    records = events()
    caches = Caches()
    for one in sorted(records, key=lambda record: record.received_at):
        with sqlite_engine.begin() as connection:
            take(connection, [one], caches)
        caches.commit()
    columns = {
        "hash": [content_hash(one.value) for one in records],
        "received_at": [micros_of(one.received_at) for one in records],
        "body": [one.value for one in records],
    }
    parquet.write_table(pa.table(columns), tmp_path / "all.parquet")

    done = rebuild(lake, str(tmp_path / "all.parquet"), empty)

    assert done.events == len({one.value for one in records}) < len(records)
    assert differences(sqlite_engine, empty) == {}


def test_nonempty_store_is_not_overwritten(
    lake: Any, sqlite_engine: Engine, tmp_path: Path
) -> None:
    filled(sqlite_engine, bank(1))

    with pytest.raises(RefusedError, match="holds events of its own"):
        rebuild(lake, str(tmp_path), sqlite_engine)


def test_missing_archive_is_named(lake: Any, empty: Engine, tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match=r"nothing: no archive can be read there"):
        rebuild(lake, str(tmp_path / "nothing"), empty)


def test_the_command_compares_with_the_live_store(
    lake: Any, sqlite_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    live = make_engine(sqlite_url)
    filled(live, bank(3))
    live.dispose()
    folder, into = str(tmp_path / "archive"), f"sqlite:///{tmp_path}/rebuilt.db"
    environ = {"STRANDLINE_DATABASE_URL": sqlite_url}

    moved = main(["archive", "--to", folder, "--before", "2027-01-01T00:00:00Z", "--json"], environ)
    told = json.loads(capsys.readouterr().out)
    done = main(["rebuild", "--from", folder, "--into", into, "--like", sqlite_url], environ)

    assert (moved, done) == (0, 0)
    out = capsys.readouterr().out
    assert out.startswith(f"{told['events']} events, ")
    assert out.endswith("equal, row by row\n")
    assert main(["rebuild", "--from", folder, "--into", sqlite_url], environ) == 2
    assert "--into names the live store" in capsys.readouterr().err


@pytest.mark.slow
def test_events_larger_than_sparks_memory_are_rebuilt(tmp_path: Path) -> None:
    events = [
        json.dumps(_daily(number) | {"large": "x" * 100_000}).encode() for number in range(4_000)
    ]
    columns = {
        "hash": [content_hash(event) for event in events],
        "received_at": range(len(events)),
        "body": events,
    }
    parquet.write_table(
        pa.table(columns), tmp_path / "archive.parquet", compression="zstd", write_batch_size=16
    )
    command = [
        "rebuild",
        "--from",
        str(tmp_path / "archive.parquet"),
        "--into",
        f"sqlite:///{tmp_path}/new.db",
        "--json",
    ]
    command += ["--master", "local[2]", "--conf", "spark.driver.memory=512m"]

    ran = subprocess.run(
        [sys.executable, "-m", "strandline", *command], capture_output=True, text=True, check=False
    )

    assert ran.returncode == 0, ran.stderr[-2000:]
    assert json.loads(ran.stdout)["events"] == len(events)
