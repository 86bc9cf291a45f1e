"""A batch whose names are all new takes as many statements as a batch of a few names."""

from collections import Counter
from typing import Any

from sqlalchemy import Engine
from sqlalchemy import event as listened

from strandline.store.ingest.take import Caches, Record, take
from worlds.builders import (
    NOON,
    Json,
    batch,
    dataset,
    encode,
    event,
    job_event,
    parent,
    snapshot,
    symlink,
)


def events_with_new_names(number: int) -> list[Json]:
    """A batch run with its parent, a micro-batch, and a design, of names that come only here.

    The run also commits to its own table, and to a table that all of them write.
    """
    space = f"hive://lake{number}"
    read = dataset(
        f"bank.read{number}",
        space,
        own=snapshot(str(number)),
        schema={"fields": [{"name": f"column{number}", "type": "x" * 2000}]},
    )
    origin = {"namespace": space, "name": f"bank.read{number}", "field": f"column{number}"}
    written = dataset(
        f"/lake/written{number}",
        f"s3://bucket{number}",
        symlinks=symlink(f"bank.written{number}", space),
        columnLineage={"fields": {"total": {"inputFields": [origin]}}},
        lifecycleStateChange={"lifecycleStateChange": "CREATE"},
        own=snapshot(f"9{number}"),
    )
    shared = dataset(
        "bank.shared", columnLineage={"fields": {f"total{number}": {"inputFields": [origin]}}}
    )
    above = parent(10_000 + number, f"dag{number}")
    return [
        event("START", number, f"job{number}", inputs=[read], facets=above),
        event(
            "COMPLETE",
            number,
            f"job{number}",
            outputs=[written, shared],
            facets=above,
            job_facets={"sql": {"query": f"SELECT column{number}"}},
        ),
        batch(1, 20_000 + number, inputs=[read], job=f"stream{number}"),
        job_event(f"design{number}", inputs=[read]),
    ]


def statements_of(engine: Engine, caches: Caches, names: range) -> Counter[str]:
    """Take a batch of new names, and count its statements by their beginning."""
    counts: Counter[str] = Counter()

    def count(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        counts[" ".join(statement.split())[:60]] += 1

    records = [Record(encode(one), NOON) for name in names for one in events_with_new_names(name)]
    listened.listen(engine, "before_cursor_execute", count)
    try:
        with engine.begin() as connection:
            outcomes = take(connection, records, caches)
    finally:
        listened.remove(engine, "before_cursor_execute", count)
    caches.commit()
    assert {outcome.kind for outcome in outcomes} == {"stored"}
    return counts


def test_statements_of_a_batch_do_not_grow_with_new_names(engine: Engine) -> None:
    caches = Caches()
    statements_of(engine, caches, range(10))  # makes the day's partition

    few = statements_of(engine, caches, range(10, 20))
    many = statements_of(engine, caches, range(1000, 1200))

    assert many - few == Counter()
