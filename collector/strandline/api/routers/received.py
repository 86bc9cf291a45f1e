"""Received events, newest first.

The events as they came (but for secrets), and the records that are none.
"""

from typing import Annotated, Any

from fastapi import APIRouter
from fastapi import Query as InQuery
from typing_extensions import TypedDict

from strandline.api.http.answers import JSON, Page
from strandline.api.http.route import Route, refused
from strandline.api.http.session import ReadSession, WholeSession
from strandline.questions import answers
from strandline.questions.received import EventsQuery, ReceivedQuery, RejectedQuery
from strandline.store.catalog.rejections import dead_letters_page, unread_page
from strandline.store.ingest.refused import refused_page
from strandline.store.sql.engine import read_from

router = APIRouter(prefix="/api/v2", tags=["received"], route_class=Route)


class Events(Page[JSON]):
    """A page of events, and where events of that time are that the store no longer has."""

    archived: list[JSON]


class Kinds(TypedDict):
    """The kinds of what was rejected."""

    items: list[JSON]
    complete: bool


@router.get("/events", response_model=Events, responses=refused(404))
def get_events(query: Annotated[EventsQuery, InQuery()], session: ReadSession) -> dict[str, Any]:
    """Events as received (since and until: received), newest first."""
    return answers.events(session, query)


@router.get("/dead-letters", response_model=Page[JSON])
def get_dead_letters(
    query: Annotated[ReceivedQuery, InQuery()], session: WholeSession
) -> dict[str, Any]:
    """List the dead letters: records of the topic that are not events."""
    with read_from(session.engine) as connection:
        items, cursor = dead_letters_page(connection, query.limit, query.cursor)
    return {"items": items, "nextCursor": cursor}


@router.get("/unread-events", response_model=Page[JSON])
def get_unread(query: Annotated[ReceivedQuery, InQuery()], session: WholeSession) -> dict[str, Any]:
    """List events that a fault of the collector left unread; its next start reads them again."""
    with read_from(session.engine) as connection:
        items, cursor = unread_page(connection, query.limit, query.cursor)
    return {"items": items, "nextCursor": cursor}


@router.get("/rejected-events", response_model=Page[JSON])
def get_rejected_events(
    query: Annotated[ReceivedQuery, InQuery()], session: WholeSession
) -> dict[str, Any]:
    """List rejected events by producer and reason, the newest first."""
    session.state.refusals.flush()
    with read_from(session.engine) as connection:
        items, cursor = refused_page(connection, query.limit, query.cursor)
    return {"items": items, "nextCursor": cursor}


@router.get("/rejected", response_model=Kinds)
def get_rejected(
    query: Annotated[RejectedQuery, InQuery()], session: WholeSession
) -> dict[str, Any]:
    """List rejected events, dead letters and unread events by kind.

    Producer, reason without its values, count, and one example.
    """
    session.state.refusals.flush()
    return answers.rejected(session, query)
