"""Retention releases space and reports it; annotations stay."""

import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import structlog
from sqlalchemy import Connection, Engine, text
from sqlalchemy.event import listen
from structlog.testing import LogCapture

from strandline.core.openlineage.names import id_of
from strandline.metrics import Metrics
from strandline.runtime.expiring import expire_and_tell, telling
from strandline.store.catalog.gauges import database_bytes
from strandline.store.ingest.space import (
    INCREMENTAL,
    give_back,
    give_owed_back,
    give_room_back,
    owe,
)
from strandline.store.ingest.take import Caches
from strandline.store.marquez.annotations import TAG, Author, Note, annotate
from strandline.store.sql.engine import make_engine, migrate
from worlds.builders import dataset, event, rows, store

NOW = datetime.now(UTC)
LONG_AGO = NOW - timedelta(days=40)
NOTE = Note(
    id_of("dataset", "hive://lake", "bank.b"), "dataset:hive://lake:bank.b", TAG, name="pii"
)


@pytest.fixture
def engine(own_engine: Engine) -> Engine:
    """Use a database of the test's own: its size is looked at."""
    return own_engine


def fill(engine: Engine, caches: Caches, runs: range, received_at: datetime) -> None:
    """Store runs whose SQL takes room, one commit a hundred."""
    said = [
        event("COMPLETE", run, "etl", inputs=[dataset("bank.a")], outputs=[dataset("bank.b")],
              job_facets={"sql": {"query": f"SELECT {' + '.join(map(str, range(run, run + 400)))}"}})
        for run in runs
    ]  # fmt: skip
    old = [one | {"eventTime": received_at.isoformat()} for one in said]
    store(engine, old, received_at, size=100, writer=caches)


def free_bytes(connection: Connection) -> int:
    """Return the free bytes of an SQLite file."""
    pages, size = (
        connection.exec_driver_sql(f"PRAGMA {name}").scalar_one()
        for name in ("freelist_count", "page_size")
    )
    return int(pages * size)


def test_retention_releases_space_and_reports_it(engine: Engine) -> None:
    metrics, lines = Metrics(), LogCapture()
    log = structlog.wrap_logger(None, processors=[lines])
    caches = Caches()
    fill(engine, caches, range(600), LONG_AGO)
    fill(engine, caches, range(600, 601), NOW)
    with engine.begin() as connection:
        annotate(connection, NOTE, Author(1))
    references = rows(engine, "SELECT count(*) FROM body_references")
    expire_and_tell(engine, 30, telling(metrics, log), execute=True)
    left = [
        rows(engine, f"SELECT count(*) FROM {table}")
        for table in ("raw_events", "body_references", "annotations")
    ]
    fill(engine, caches, range(601, 610), NOW)

    (line,) = lines.entries
    assert references == [(3,)]
    assert left == [[(1,)], [(1,)], [(1,)]]
    assert line["event"] == "expired"
    assert line["rows"]["event_keys"] == 600
    assert line["rows"]["body_references"] == 2
    assert line["rows"]["runs"] > 400
    assert line["returned_bytes"] > 100_000
    assert (
        metrics.registry.get_sample_value("strandline_returned_bytes_total")
        == line["returned_bytes"]
    )
    assert (
        metrics.registry.get_sample_value("strandline_expired_rows_total", {"table": "runs"})
        == line["rows"]["runs"]
    )
    assert rows(
        engine,
        "SELECT count(*) FROM raw_events WHERE reference_id NOT IN (SELECT id FROM body_references) AND reference_id <> 0",
    ) == [(0,)]
    if engine.dialect.name == "sqlite":
        with engine.connect() as connection:
            assert free_bytes(connection) < 100_000


def test_old_database_file_shrinks_after_one_rewrite(tmp_path: Path) -> None:
    file = tmp_path / "old.db"
    with closing(sqlite3.connect(file)) as old:
        old.execute("PRAGMA journal_mode = WAL")  # begins the file, as earlier versions did
    engine = make_engine(f"sqlite:///{file}")
    migrate(engine)
    fill(engine, Caches(), range(800), LONG_AGO)
    with engine.begin() as connection:
        connection.execute(text("DELETE FROM raw_events"))
        before = database_bytes(connection)
    give_room_back(engine, ["raw_events"])
    with engine.connect() as connection:
        kept, free = database_bytes(connection), free_bytes(connection)
    give_back(engine, ["raw_events"])
    with engine.connect() as connection:
        left, mode = (
            database_bytes(connection),
            connection.exec_driver_sql("PRAGMA auto_vacuum").scalar_one(),
        )
    engine.dispose()

    assert kept == before
    assert free > 50_000
    assert left < before - 50_000
    assert mode == INCREMENTAL


def test_space_owed_during_a_rewrite_is_released_too(engine: Engine) -> None:
    """The first of two forgets must not clear a debt that the second one records later."""
    with engine.begin() as connection:
        owe(connection, ["raw_events"])
    giving, returned = make_engine(engine.url.render_as_string(hide_password=False)), list[int]()
    gone_over = (
        2 if engine.dialect.name == "postgresql" else 3
    )  # connections that are returned until then

    def interrupt(*_: object) -> None:
        returned.append(1)
        if len(returned) == gone_over:
            with engine.begin() as connection:
                owe(connection, ["runs"])

    listen(giving, "checkin", interrupt)
    given = give_owed_back(giving)

    assert given == ["raw_events", "runs"]
    assert rows(engine, "SELECT value FROM store_settings WHERE key = 'space_owed'") == [("",)]
    giving.dispose()
