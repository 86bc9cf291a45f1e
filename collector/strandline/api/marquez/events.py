"""Run events as received.

Events of jobs or datasets alone are left out: Marquez' page reads `run` and `job` of every one.
"""

from datetime import datetime, timedelta
from typing import Annotated

import orjson
from fastapi import Query as InQuery
from pydantic import Field
from typing_extensions import TypedDict

from strandline.api.http.session import Session, WholeSession
from strandline.api.marquez.parameters import JSON, NamespaceName, PageQuery, marquez_router
from strandline.core.openlineage.times import micros_of
from strandline.questions.parameters import Moment, Text
from strandline.store.marquez.events import RunEventFilter, run_events

FURTHEST_ZONE = timedelta(hours=14)  # Kiribati's, ahead of UTC


router = marquez_router()


class EventsQuery(PageQuery):
    """A page of events."""

    after: Annotated[Moment | None, Field(description="Events of this time and later")] = None
    before: Annotated[Moment | None, Field(description="Events before this time")] = None
    sort_direction: Annotated[Text | None, Field(description="desc or asc")] = None


class MarquezEvents(TypedDict):
    """A page of events."""

    events: list[JSON]
    totalCount: int


@router.get("/events/lineage", response_model=MarquezEvents)
@router.get("/events", response_model=MarquezEvents)
def list_events(query: Annotated[EventsQuery, InQuery()], session: WholeSession) -> JSON:
    """Run events, the last received first."""
    return _page(session, query, None)


@router.get("/events/{namespace:name}", response_model=MarquezEvents)
def list_events_within(
    namespace: NamespaceName, query: Annotated[EventsQuery, InQuery()], session: WholeSession
) -> JSON:
    """Run events of a namespace's jobs, the last received first."""
    return _page(session, query, namespace)


def _page(session: Session, query: EventsQuery, namespace: str | None) -> JSON:
    oldest_first = (query.sort_direction or "").lower() == "asc"
    bounds = (_micros(_not_ahead(query.after, session.now)), _micros(query.before))
    span = RunEventFilter(*bounds, namespace, oldest_first)
    with session.connected() as connection:
        events, total = run_events(connection, span, *query.page)
    return {"events": [orjson.Fragment(event) for event in events], "totalCount": total}


def _not_ahead(after: datetime | None, now: datetime) -> datetime | None:
    """Marquez' page sends the beginning of somebody's local day as if it were UTC's.

    It may not have come yet.
    """
    return after if after is None or after <= now else after - FURTHEST_ZONE


def _micros(at: datetime | None) -> int | None:
    return None if at is None else micros_of(at)
