"""Schema 0034: indexes that are built while writers go on, and rows that do not repeat what stands elsewhere."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest
from sqlalchemy import Connection, Engine, text, update

from store.test_migrations import back_to_nothing, schema_of
from strandline.cli import main
from strandline.core.changes.barrier_facets import beside_columns
from strandline.history.compare import differences
from strandline.store.catalog.lists import barriers_page
from strandline.store.ingest.to_templates import to_templates
from strandline.store.lineage.lookup import job_of
from strandline.store.schema.tables import job_barriers, snapshots
from strandline.store.sql.ahead import LOCK
from strandline.store.sql.compression import expand
from strandline.store.sql.engine import make_engine, migrate
from worlds.builders import QUERY, batch, dataset, event, rows, snapshot, store

BEFORE, NARROWER = "0033", "0034"
VIEWS = ("snapshot_lineage", "source_snapshot_lineage", "sink_snapshot_lineage", "__META_TABLE_VERSION")
USES = "SELECT direction, snapshot_id, approximate_id FROM snapshot_lineage"
PATIENCE = 30
KEY_OF_USES = """SELECT indexdef FROM pg_indexes WHERE indexname = 'pk_snapshot_uses'"""
BUILDING = "SELECT count(*) FROM pg_index WHERE NOT indisvalid"
WHOLE = b'{"engine": "spark", "queryId": "q", "sources": [{"description": "iceberg"}]}'


def micro_batches(*barriers: int) -> list[Any]:
    """Micro-batches that read one table and write another, and a run that reports a double."""
    return [
        batch(
            one,
            barrier_facet={"sources": [{"description": f"s{one}"}], "checkpointLocation": "s3a://lake/_cp/stream"},
            inputs=[dataset("bank.a", own=snapshot(str(10**18 + one)))],
            outputs=[dataset("bank.b", own=snapshot(f"b{one}"))],
        )
        for one in barriers
    ]


def scan(snapshot_id: int, run: int = 99) -> Any:
    """A run that reports the double of an id that it read."""
    report = {"icebergScanReport": {"snapshotId": float(snapshot_id)}}
    return event("COMPLETE", run, "reader", 70, inputs=[dataset("bank.a", own=report)])


def shown(engine: Engine) -> list[Any]:
    """What is answered of barriers and snapshots."""
    with engine.connect() as connection:
        barriers = barriers_page(connection, job_of(connection, "tests", "stream"), 10, None)
    return [orjson.dumps(barriers).decode(), *(rows(engine, f"SELECT * FROM {view}") for view in VIEWS)]


def as_before(engine: Engine) -> None:
    """Write what programs before this schema wrote: the whole facet of each barrier, and who made each snapshot."""
    with engine.begin() as connection:
        for row in connection.execute(job_barriers.select()).all():
            stored = expand(bytes(row.facet))[1:]
            whole = b'{"engine": "spark", "queryId": "%s", "batchId": %d, ' % (QUERY.encode(), row.barrier - 1) + stored
            mine = (job_barriers.c.job_id == row.job_id, job_barriers.c.barrier == row.barrier)
            connection.execute(update(job_barriers).where(*mine).values(facet=whole))
        connection.execute(update(snapshots).where(snapshots.c.run_id != 0).values(generation=QUERY))


@contextmanager
def taking(engine: Engine) -> Iterator[None]:
    """A store of the schema before, with the column that this program writes since 0036, as long as it takes events."""
    _change(engine, "ADD COLUMN aside SMALLINT")
    yield
    _change(engine, "DROP COLUMN aside")


def _change(engine: Engine, how: str) -> None:
    with engine.begin() as connection:
        connection.exec_driver_sql(f"ALTER TABLE snapshots {how}")


@pytest.fixture
def other(sqlite_url: str, tmp_path: Path) -> Iterator[Engine]:
    """Another store of this version."""
    engine = make_engine(f"sqlite:///{tmp_path / 'other.db'}")
    migrate(engine)
    yield engine
    engine.dispose()


def test_a_store_of_the_schema_before_answers_and_takes_events_as_a_new_one(engine: Engine, other: Engine) -> None:
    first, second = [*micro_batches(1, 2), scan(10**18 + 1)], micro_batches(2, 3)
    back_to_nothing(engine)
    migrate(engine, BEFORE)
    with taking(engine):
        store(engine, first)
    as_before(engine)
    before = shown(engine)

    migrate(engine)

    assert shown(engine) == before
    store(engine, second)
    for one in (first, second):
        store(other, one)
    received = ("runs",)  # the two took the events at moments of their own
    assert {table for table in differences(engine, other) if table not in received} == set()
    assert shown(engine) == shown(other)
    assert "s3a://lake/_cp/stream" in shown(engine)[0]


def test_of_the_facet_of_a_barrier_stays_what_no_column_holds(engine: Engine) -> None:
    store(engine, micro_batches(1))
    store(engine, [batch(2)])

    stored = [expand(bytes(facet)) for (facet,) in rows(engine, "SELECT facet FROM job_barriers")]

    assert sorted(stored) == [b'{"sources":[{"description": "s1"}]}', b"{}"]
    assert beside_columns(WHOLE) == b'{"sources":[{"description": "iceberg"}]}'


NEAR = 4358109269898191360  # a double: the ids from 256 below to 256 above it are rounded to it


@pytest.mark.parametrize(
    "id_",
    [
        NEAR - 256,  # halfway to the next double
        NEAR + 256,
        2**63 - 2048 - 512,  # the greatest distance
        2**63 - 2048 + 512,
        2**63 - 513,
        10**18 - 64,  # has a digit less than its double
        10**18 + 64,
        2**53 + 3,
        -NEAR - 1,
    ],
)
def test_the_ids_of_a_double_are_found_without_an_index_on_it(engine: Engine, id_: int) -> None:
    names = (str(id_), str(id_ + 4096), str(id_ - 4096), "", "7", str(id_) + "x", "a" * 19)
    store(engine, [event("COMPLETE", 1, "w", outputs=[dataset("bank.a", own=snapshot(one)) for one in names])])
    store(engine, [scan(id_)])

    assert rows(engine, f"{USES} WHERE direction = 0") == [(0, str(id_), None)]


@pytest.mark.postgres
def test_the_ids_of_a_double_are_found_by_the_key(postgres_engine: Engine) -> None:
    store(postgres_engine, [scan(NEAR)])
    with postgres_engine.begin() as connection:
        connection.exec_driver_sql("SET LOCAL enable_seqscan = off")
        connection.exec_driver_sql("SET LOCAL enable_bitmapscan = off")
        plan = "\n".join(line for (line,) in connection.exec_driver_sql("EXPLAIN SELECT * FROM snapshot_lineage"))

    (found,) = [line for line in plan.splitlines() if "known.snapshot_id >=" in line or "(snapshot_id >=" in line]
    assert "Index Cond" in found
    assert "pk_snapshots" in plan


@pytest.mark.postgres
def test_writers_go_on_while_indexes_are_built(postgres_engine: Engine) -> None:
    """A build waits for a transaction that was there before it; others write meanwhile, and who asks is answered."""
    back_to_nothing(postgres_engine)
    migrate(postgres_engine, BEFORE)
    lines: list[str] = []
    migrating = threading.Thread(target=lambda: migrate(postgres_engine, NARROWER, lines.append))
    with taking(postgres_engine), postgres_engine.begin() as writing:
        store(postgres_engine, [*micro_batches(1), scan(1)])
        writing.execute(
            text("UPDATE relations SET newest_at = newest_at WHERE run_id IN (SELECT id FROM runs WHERE state = 4)")
        )
        migrating.start()
        wait_for(lambda: rows(postgres_engine, BUILDING) == [(1,)])
        store(postgres_engine, micro_batches(2))
        assert [row[:2] for row in rows(postgres_engine, "SELECT barrier, direction FROM snapshot_uses WHERE barrier > 0")] == [
            (1, 0), (1, 1), (2, 0), (2, 1),
        ]  # fmt: skip
    migrating.join(PATIENCE)

    assert not migrating.is_alive()
    assert [line.partition(":")[0] for line in lines] == ["index 1 of 2", "index 2 of 2"]
    assert "(run_id, barrier, dataset_id, direction, snapshot_id)" in rows(postgres_engine, KEY_OF_USES)[0][0]


@pytest.mark.postgres
def test_an_index_that_a_killed_command_left_half_built_is_built_again(postgres_engine: Engine) -> None:
    fresh = schema_of(postgres_engine)
    back_to_nothing(postgres_engine)
    migrate(postgres_engine, BEFORE)
    store(postgres_engine, [event("COMPLETE", run, inputs=[dataset("bank.a")]) for run in (1, 2)])
    with (
        postgres_engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection,
        pytest.raises(Exception, match="could not create unique index"),
    ):
        connection.exec_driver_sql("CREATE UNIQUE INDEX CONCURRENTLY ix_relations_dataset_id ON relations (dataset_id)")
    assert rows(postgres_engine, BUILDING) == [(1,)]

    migrate(postgres_engine)
    to_templates(postgres_engine)  # as a store has it that begins anew

    assert rows(postgres_engine, BUILDING) == [(0,)]
    assert [row for row in schema_of(postgres_engine) if "raw_events_2" not in repr(row)] == fresh


@pytest.mark.postgres
def test_who_migrates_at_the_same_time_waits_and_finds_it_done(postgres_engine: Engine) -> None:
    fresh = schema_of(postgres_engine)
    back_to_nothing(postgres_engine)
    migrate(postgres_engine, BEFORE)
    failed: list[BaseException] = []

    def migrating() -> None:
        try:
            migrate(postgres_engine)
        except BaseException as error:  # noqa: BLE001 - the test shows it
            failed.append(error)

    threads = [threading.Thread(target=migrating) for _ in range(3)]
    with held(postgres_engine):
        for one in threads:
            one.start()
    for one in threads:
        one.join(PATIENCE)

    assert failed == []
    assert schema_of(postgres_engine) == fresh


@pytest.mark.postgres
@pytest.mark.parametrize("watched", [True, False])
def test_the_command_says_which_index_it_builds_to_who_watches(
    postgres_engine: Engine, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, watched: bool
) -> None:
    back_to_nothing(postgres_engine)
    migrate(postgres_engine, BEFORE)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: watched)

    url = postgres_engine.url.render_as_string(hide_password=False)
    assert main(["migrate", "--database-url", url], {}) == 0

    assert capsys.readouterr().err.count("writers go on\n") == (2 if watched else 0)


class held:  # noqa: N801 - a context manager
    """As if somebody else were migrating."""

    def __init__(self, engine: Engine) -> None:
        self._connection: Connection = engine.connect().execution_options(isolation_level="AUTOCOMMIT")

    def __enter__(self) -> None:
        self._connection.execute(text("SELECT pg_advisory_lock(:key)"), {"key": LOCK})

    def __exit__(self, *_: object) -> None:
        self._connection.execute(text("SELECT pg_advisory_unlock(:key)"), {"key": LOCK})
        self._connection.close()


def wait_for(what: Callable[[], bool]) -> None:
    """Return once something is so."""
    until = time.monotonic() + PATIENCE
    while not what():
        assert time.monotonic() < until
        time.sleep(0.02)
