"""Events of all producers leave the same rows in any order, repetition and batching."""

import random
from collections.abc import Sequence
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest
from sqlalchemy import Engine

from strandline.core.changes.rows import FOLDS
from strandline.store.ingest.raw_events import events_of
from strandline.store.ingest.take import Caches, Record, take
from strandline.store.schema.relation_tables import RUN_VIEWS, TEMPLATES
from strandline.store.schema.views import views
from worlds.builders import LONG_AGO, folded_rows, live, rows
from worlds.producers import a_day

OTHERS = {"event_keys", "set_aside", *(table.name for table in TEMPLATES)}
FOLDED = sorted({fold.table for fold in FOLDS.values()} - RUN_VIEWS.keys() | OTHERS)
RECORDS = [
    Record(body, LONG_AGO + timedelta(minutes=number)) for number, body in enumerate(a_day())
]


def taken(
    engine: Engine, records: Sequence[Record], cuts: Sequence[int] = ()
) -> dict[str, list[Any]]:
    """Take the records into empty tables, cut into batches.

    Every row of every table and view, and the events.
    """
    caches = Caches()
    with engine.begin() as connection:
        for table in (*FOLDED, "raw_events", "body_references"):
            connection.exec_driver_sql(f"DELETE FROM {table}")
    for start, end in pairwise(sorted({0, len(records), *cuts})):
        with engine.begin() as connection:
            take(connection, records[start:end], caches)
        caches.commit()
    with engine.connect() as connection:
        others = ("event_keys", "set_aside", "run_templates", *views(engine.dialect.name))
        found = {name: rows(connection, f"SELECT * FROM {name}") for name in others}
        return folded_rows(connection) | found | {"events": list(events_of(connection))}


@pytest.mark.parametrize("seed", range(4))
def test_order_repetition_and_batching_do_not_matter(engine: Engine, seed: int) -> None:
    first = taken(engine, RECORDS)
    order = random.Random(seed)
    again = [*RECORDS, *order.sample(RECORDS, len(RECORDS) // 2)]
    order.shuffle(again)
    cuts = order.sample(range(len(again)), order.choice([0, 3, 30, len(again) - 1]))

    assert taken(engine, again, cuts) == first


@pytest.mark.postgres
def test_both_databases_show_the_same_rows(sqlite_url: str, postgres_url: str) -> None:
    from strandline.store.sql.engine import make_engine

    engines = [make_engine(url) for url in (sqlite_url, postgres_url)]
    one, other = (taken(engine, RECORDS) for engine in engines)
    for engine in engines:
        engine.dispose()

    assert one == other


def test_views_show_the_day_as_it_happened(engine: Engine) -> None:
    taken(engine, RECORDS)
    query = "q"

    assert live(engine) == {}
    assert rows(engine, 'SELECT DISTINCT job, "table", state FROM sink_job_lineage_history') == [
        ("alone", "c", "LOST"),
        ("app.insert", "totals", "COMPLETE"),  # under this name it sent more than a START
        ("app.insert_into_totals", "totals", "COMPLETE"),
        ("balances", "balances", "FAIL"),
        ("balances", "balances", "LOST"),
        ("dbt.model.mart.orders", "orders", "COMPLETE"),
        ("dbt.model.stage.orders", "orders", "COMPLETE"),
        ("flink", "flink", "ABORT"),
        ("flink", "late", "ABORT"),
        (query, "payments", "COMPLETE"),
        (query, "payments", "LOST"),  # the batch that was killed, and nobody ended its application
    ]
    assert rows(
        engine, 'SELECT job, barrier_id, "table", snapshot_id FROM sink_snapshot_lineage'
    ) == [
        ("balances", 1, "balances", "301"),
        ("balances", 2, "balances", "202"),
        ("balances", 4, "balances", "2040"),
        (query, 1, "payments", "0"),
        (query, 2, "payments", "1"),
        (query, 3, "payments", "2"),
    ]
    assert rows(engine, "SELECT key FROM facets WHERE problem <> ''") == [("symlinks",)]
    assert rows(engine, "SELECT count(*) FROM set_aside") == [(3,)]
