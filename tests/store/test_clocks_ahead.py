"""An event time more than an hour after the receipt counts as the receipt."""

from datetime import timedelta

import pytest
from sqlalchemy import Engine

from strandline.core.openlineage.times import micros_of
from worlds.builders import NOON, Json, dataset, event, job_event, newest_facets, rows, store

HOUR = 3_600
FAR = 73 * 365 * 24 * HOUR  # seconds: the year 2099
OLD, NEW = ({"fields": [{"name": name, "type": "int"}]} for name in ("old", "new"))


def dataset_event(seconds: float, of: Json) -> Json:
    """Return a DatasetEvent."""
    whole = job_event(seconds=seconds)
    del whole["job"], whole["inputs"], whole["outputs"]
    return whole | {"dataset": of}


@pytest.mark.parametrize("kind", ["run", "design", "dataset"])
def test_an_event_of_the_year_2099_does_not_own_a_tables_columns(engine: Engine, kind: str) -> None:
    wrong = dataset("bank.a", schema=OLD)
    events = {
        "run": event("COMPLETE", seconds=FAR, outputs=[wrong]),
        "design": job_event(seconds=FAR, outputs=[wrong]),
        "dataset": dataset_event(FAR, wrong),
    }
    store(engine, [events[kind]], received_at=NOON)
    right = event("COMPLETE", run=2, seconds=60, outputs=[dataset("bank.a", schema=NEW)])
    store(engine, [right], received_at=NOON + timedelta(seconds=60))

    with engine.connect() as connection:
        (schema,) = [row[5] for row in newest_facets(connection) if row[1] == "schema"]
    assert b'"new"' in schema


@pytest.mark.parametrize(("ahead", "counts"), [(HOUR, HOUR), (HOUR + 1, 0), (FAR, 0)])
def test_an_event_may_be_an_hour_ahead_of_its_receipt(
    engine: Engine, ahead: int, counts: int
) -> None:
    store(engine, [event("START", seconds=ahead)], received_at=NOON)

    at = micros_of(NOON) + counts * 10**6
    assert rows(engine, "SELECT first_at, newest_at, started_at FROM runs") == [(at, at, at)]
    assert rows(engine, "SELECT event_time FROM raw_events") == [(at,)]


def test_an_event_time_before_its_receipt_stays(engine: Engine) -> None:
    store(engine, [event("START", seconds=-FAR)], received_at=NOON)

    assert rows(engine, "SELECT started_at FROM runs") == [(micros_of(NOON) - FAR * 10**6,)]
