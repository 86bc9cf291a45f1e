"""The dashboard counts each run once in the interval of its start or end."""

from datetime import UTC, datetime, timedelta

import httpx
from sqlalchemy import Engine

from worlds.builders import event, store


def test_run_counts_once_in_the_hour_of_its_start_and_of_its_end(
    engine: Engine, marquez: httpx.Client
) -> None:
    now = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    moments = [
        ("START", 1, 3),
        ("RUNNING", 1, 2.5),
        ("COMPLETE", 1, 2),
        ("START", 2, 2),
        ("FAIL", 2, 2),
        ("ABORT", 3, 1),
    ]
    events = [
        event(kind, run, "one") | {"eventTime": (now - timedelta(hours=hours)).isoformat()}
        for kind, run, hours in moments
    ]
    store(engine, [*events, *events, event("START", 4, "old")])

    found = marquez.get("/stats/lineage-events", params={"period": "DAY"}).json()

    counts = [{key: one[key] for key in ("start", "complete", "fail", "abort")} for one in found]
    assert counts[-4:] == [
        {"start": 1, "complete": 0, "fail": 0, "abort": 0},
        {"start": 1, "complete": 1, "fail": 1, "abort": 0},
        {"start": 0, "complete": 0, "fail": 0, "abort": 1},
        {"start": 0, "complete": 0, "fail": 0, "abort": 0},
    ]
    assert sum(sum(one.values()) for one in counts[:-4]) == 0
