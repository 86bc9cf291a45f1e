"""Concurrent writers store each event once and leave the rows of one writer."""

import random
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from sqlalchemy import Connection, Engine

from store.test_all_producers import FOLDED, RECORDS, taken
from strandline.store.ingest.take import Caches, Record, take
from strandline.store.ingest.transactions import Batches
from worlds.builders import (
    LONG_AGO,
    dataset,
    encode,
    event,
    folded_rows,
    rows,
    symlink,
    until_waiting,
)

WRITERS = 4


def write(engine: Engine, seed: int) -> list[str]:
    """Write a whole day in an order of one's own, in small batches; what became of each record."""
    order = random.Random(seed)
    records = order.sample(RECORDS, len(RECORDS))
    batches = Batches(engine)
    found: list[str] = []
    while records:
        size = order.randint(1, 12)
        found += [outcome.kind for outcome in batches.write(records[:size])]
        records = records[size:]
    return found


def test_concurrent_writers_leave_the_rows_of_one_writer(engine: Engine) -> None:
    expected = taken(engine, RECORDS)
    with engine.begin() as connection:
        for table in (*FOLDED, "raw_events", "body_references"):
            connection.exec_driver_sql(f"DELETE FROM {table}")

    with ThreadPoolExecutor(WRITERS) as pool:
        outcomes = [
            kind for kinds in pool.map(write, [engine] * WRITERS, range(WRITERS)) for kind in kinds
        ]

    assert outcomes.count("stored") == len(expected["events"])
    assert outcomes.count("dead") == WRITERS * 3
    with engine.connect() as connection:
        found = folded_rows(connection) | {
            "run_templates": rows(connection, "SELECT * FROM run_templates")
        }
    assert found == {table: expected[table] for table in found}


@pytest.mark.postgres
def test_deadlock_is_retried(postgres_engine: Engine) -> None:
    """Two transactions, each with a lock that the other needs next: PostgreSQL ends one of them."""
    retries: list[int] = []
    both_have_one = Barrier(2)

    def locked(first: int) -> None:
        waits = [both_have_one]

        def lock_both(connection: Connection) -> None:
            lock(connection, first)
            while waits:  # the second time nobody waits any more
                waits.pop().wait(30)
            lock(connection, 3 - first)

        record = Record(encode(event("START", first, f"job{first}")), LONG_AGO)
        Batches(postgres_engine, lambda: retries.append(first)).write([record], also=lock_both)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(locked, (1, 2)))

    assert len(retries) == 1
    assert rows(postgres_engine, "SELECT name FROM jobs") == [("job1",), ("job2",)]


@pytest.mark.postgres
def test_name_just_written_by_another_writer_is_joined(postgres_engine: Engine) -> None:
    """Neither sees the other's row before waiting for it; only the second reports the alias."""
    naming, linking = Caches(), Caches()
    for number, caches in enumerate((naming, linking), 1):
        with postgres_engine.begin() as connection:
            take(connection, [Record(encode(event("START", number)), LONG_AGO)], caches)
        caches.commit()

    def link() -> None:
        one = dataset("/lake/a", "file", symlinks=symlink("bank.a"))
        with postgres_engine.begin() as connection:
            take(connection, [Record(encode(event("START", 4, inputs=[one])), LONG_AGO)], linking)

    with ThreadPoolExecutor(1) as pool:
        with postgres_engine.begin() as connection:
            plain = event("START", 3, inputs=[dataset("/lake/a", "file")])
            take(connection, [Record(encode(plain), LONG_AGO)], naming)
            linked = pool.submit(link)
            until_waiting(postgres_engine, linked)
        linked.result(60)

    query = "SELECT named.name, joined.name FROM datasets named JOIN datasets joined ON joined.id = named.canonical_id"
    assert rows(postgres_engine, query) == [("/lake/a", "/lake/a"), ("bank.a", "/lake/a")]
    assert rows(postgres_engine, "SELECT DISTINCT database_name, table_name FROM datasets") == [
        ("bank", "a")
    ]


def lock(connection: Connection, number: int) -> None:
    connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({number})")
