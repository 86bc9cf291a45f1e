"""Event filters by job, run, dataset and time, at any page size."""

from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import Engine

from strandline.core.access.granted import EVERYTHING
from strandline.core.openlineage.times import micros_of
from strandline.errors import AmbiguousError, NotFoundError
from strandline.store.catalog.received import CURSOR, event_filter, events_page
from strandline.store.sql.pages import decode_cursor
from worlds.builders import NOON, QUERY, Json, dataset, event, parent, rows, run_id, store, symlink

Events = list[tuple[str, str | None]]


def told() -> list[Json]:
    """Two jobs and an event about a dataset alone."""
    about = {
        "eventTime": "2026-11-20T12:00:09Z",
        "producer": "tests",
        "dataset": dataset("bank.other"),
    }
    return [
        event("START", 1, "load", 0, inputs=[dataset("bank.raw")]),
        event("COMPLETE", 1, "load", 5, outputs=[dataset("bank.t", symlinks=symlink("t", "pg"))]),
        event("START", 2, "load", 2, outputs=[dataset("bank.t")]),
        event("COMPLETE", 3, "daily", 3, inputs=[dataset("t", "pg")]),
        about,
    ]


def listed(engine: Engine, limit: int = 10, **asked: Any) -> Events:
    """(job, type) of all events that a filter shows, the oldest first."""
    found: Events = []
    after: Any = None
    with engine.connect() as connection:
        wanted = event_filter(connection, **asked)
        while True:
            page, cursor = events_page(connection, limit, after, wanted, EVERYTHING)
            found += [job_and_type(one.body) for one in page]
            if cursor is None:
                return sorted(found, key=str)
            after = decode_cursor(cursor, CURSOR)


def job_and_type(body: bytes) -> tuple[str, str | None]:
    from strandline.core.openlineage.events import decode

    event = decode(body)
    return (event.job.name if event.job else "", event.event_type)


@pytest.mark.parametrize("limit", [1, 10])
def test_events_can_be_filtered_by_job_run_or_dataset(engine: Engine, limit: int) -> None:
    for number, one in enumerate(told()):
        store(engine, [one], NOON + timedelta(seconds=number))

    assert listed(engine, limit, job="load") == [
        ("load", "COMPLETE"),
        ("load", "START"),
        ("load", "START"),
    ]
    assert listed(engine, limit, run_id=run_id(1)) == [("load", "COMPLETE"), ("load", "START")]
    assert listed(engine, limit, job="load", run_id=run_id(3)) == []
    assert listed(engine, limit, dataset="bank.t") == [
        ("daily", "COMPLETE"),
        ("load", "COMPLETE"),
        ("load", "START"),
    ]
    assert listed(engine, limit, dataset="bank.other") == [("", None)]
    assert listed(engine, limit, dataset="bank.t", run_id=run_id(2)) == [("load", "START")]


def test_events_can_be_filtered_by_receipt_time(engine: Engine) -> None:
    for number, one in enumerate(told()):
        store(engine, [one], NOON + timedelta(seconds=number))
    second = micros_of(NOON + timedelta(seconds=1))

    assert listed(engine, since=second, until=second + 2_000_000) == [
        ("load", "COMPLETE"),
        ("load", "START"),
    ]
    assert listed(engine, job="daily", until=second) == []
    assert len(listed(engine)) == 5


def test_micro_batch_events_belong_to_their_query(engine: Engine) -> None:
    """The stock listener names micro-batches after the application; the query is a separate job."""
    details = {"jobDescription": f"orders<br/>id = {QUERY}<br/>runId = x<br/>batch = 7"}
    streaming = {
        "jobType": {"processingType": "STREAMING", "integration": "SPARK", "jobType": "SQL_JOB"}
    }
    facets = {"spark_jobDetails": details} | parent(9, "app")
    store(engine, [event("COMPLETE", 1, "app.batch", facets=facets, job_facets=streaming)])
    owner = "run_queries batch JOIN runs owner ON owner.id = batch.owner_id"
    query = f"SELECT job.namespace, job.name FROM {owner} JOIN jobs job ON job.id = owner.job_id"
    ((namespace, name),) = rows(engine, query)

    assert name != "app.batch"
    assert listed(engine, job=f"job:{namespace}:{name}") == [("app.batch", "COMPLETE")]


def test_unknown_or_ambiguous_names_are_rejected(engine: Engine) -> None:
    store(engine, told())
    store(
        engine, [event("COMPLETE", 4, "load") | {"job": {"namespace": "elsewhere", "name": "load"}}]
    )

    with engine.connect() as connection:
        with pytest.raises(AmbiguousError, match="several are called 'load'") as ambiguous:
            event_filter(connection, job="load")
        with pytest.raises(NotFoundError, match=r"unknown job: 'bank\.t'"):
            event_filter(connection, job="bank.t")
        with pytest.raises(NotFoundError, match="unknown run: 'x'"):
            event_filter(connection, run_id="x")

    assert ambiguous.value.candidates == ("job:elsewhere:load", "job:tests:load")
