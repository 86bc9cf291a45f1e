"""Run events as received.

Events of jobs or datasets alone are left out: Marquez' page reads `run` and `job` of every one.
"""

from datetime import datetime, timedelta
from typing import Any

import orjson

from strandline.api.http.operations import Ask, Moment, Operation, Parameter
from strandline.api.http.paging import connected
from strandline.api.marquez.parameters import API, NAMESPACE, OBJECT, PAGE, page_of
from strandline.core.openlineage.times import micros_of
from strandline.store.marquez.events import RunEventFilter, count_events, run_events

FURTHEST_ZONE = timedelta(hours=14)  # Kiribati's, ahead of UTC


def list_events(ask: Ask) -> dict[str, Any]:
    """A page of run events, the last received first."""
    after, before = ask.given.get("after"), ask.given.get("before")
    oldest_first = (ask.given.get("sortDirection") or "").lower() == "asc"
    bounds = (_micros(_not_ahead(after, ask.now)), _micros(before))
    span = RunEventFilter(*bounds, ask.given.get("namespace"), oldest_first)
    with connected(ask) as connection:
        events = run_events(connection, span, *page_of(ask))
        total = count_events(connection, span)
    return {"events": [orjson.Fragment(one) for one in events], "totalCount": total}


def _not_ahead(after: datetime | None, now: datetime) -> datetime | None:
    """Marquez' page sends the beginning of somebody's local day as if it were UTC's.

    It may not have come yet.
    """
    return after if after is None or after <= now else after - FURTHEST_ZONE


def _micros(at: datetime | None) -> int | None:
    return None if at is None else micros_of(at)


_SPAN = (
    Parameter("after", "Events of this time and later", Moment()),
    Parameter("before", "Events before this time", Moment()),
    Parameter("sortDirection", "desc or asc"),
)
OPERATIONS = (
    Operation(
        "GET", f"{API}/events/lineage", "Run events", list_events, (*PAGE, *_SPAN), answer=OBJECT, scope="read", whole=True
    ),
    Operation("GET", f"{API}/events", "Run events", list_events, (*PAGE, *_SPAN), answer=OBJECT, scope="read", whole=True),
    Operation(
        "GET", f"{API}/events/{{namespace}}", "Run events of a namespace's jobs", list_events, (NAMESPACE, *PAGE, *_SPAN),
        answer=OBJECT, scope="read", whole=True,
    ),
)  # fmt: skip
