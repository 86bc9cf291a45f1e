"""What was received, newest first.

The events as they came (but for secrets), and the records that are none.
"""

from typing import Any

from sqlalchemy import Connection

from strandline.api.http.filters import SINCE, UNTIL
from strandline.api.http.operations import (
    CURSOR,
    LIMIT,
    Ask,
    Operation,
    Parameter,
    ParameterError,
    Text,
)
from strandline.core.openlineage.times import micros_of
from strandline.store.catalog.event_filters import EventFilter, event_filter
from strandline.store.catalog.received import CURSOR as CURSOR_TYPES
from strandline.store.catalog.received import (
    dead_letters_page,
    event_answer,
    events_page,
    unread_page,
)
from strandline.store.catalog.rejections import rejection_kinds
from strandline.store.ingest.archived import archived_answer
from strandline.store.ingest.refused import refused_page
from strandline.store.sql.engine import read_from
from strandline.store.sql.pages import decode_cursor


def events(ask: Ask) -> dict[str, Any]:
    """A page of events."""
    with read_from(ask.engine) as connection:
        asked = _asked(connection, ask)
    with read_from(ask.whole_engine) as connection:
        page, cursor = events_page(connection, ask.given["limit"], _after(ask), asked, ask.access)
        # An archive holds events of all namespaces, and where it is concerns nobody who may not see
        # them.
        gone = (
            archived_answer(connection, asked.since, asked.until) if ask.access.everything else []
        )
    return {
        "items": [event_answer(event) for event in page],
        "nextCursor": cursor,
        "archived": gone,
    }


def _asked(connection: Connection, ask: Ask) -> EventFilter:
    given = ask.given
    since, until = (
        None if given[name] is None else micros_of(given[name]) for name in ("since", "until")
    )
    return event_filter(connection, given["job"], given["runId"], given["dataset"], since, until)


def dead_letters(ask: Ask) -> dict[str, Any]:
    """A page of dead letters."""
    with read_from(ask.engine) as connection:
        items, cursor = dead_letters_page(connection, ask.given["limit"], _after(ask))
    return {"items": items, "nextCursor": cursor}


def unread(ask: Ask) -> dict[str, Any]:
    """A page of events that are kept unread."""
    with read_from(ask.engine) as connection:
        items, cursor = unread_page(connection, ask.given["limit"], _after(ask))
    return {"items": items, "nextCursor": cursor}


def refused_events(ask: Ask) -> dict[str, Any]:
    """A page of what was refused, up to now."""
    ask.request.app.state.refusals.flush()
    with read_from(ask.engine) as connection:
        items, cursor = refused_page(connection, ask.given["limit"], _after(ask))
    return {"items": items, "nextCursor": cursor}


def rejected(ask: Ask) -> dict[str, Any]:
    """Return the kinds of rejections, up to now."""
    ask.request.app.state.refusals.flush()
    with read_from(ask.engine) as connection:
        kinds, complete = rejection_kinds(connection, ask.given["limit"])
    return {"items": kinds, "complete": complete}


def _after(ask: Ask) -> tuple[Any, ...] | None:
    if ask.given["cursor"] is None:
        return None
    try:
        after = decode_cursor(ask.given["cursor"], CURSOR_TYPES)
        bytes.fromhex(str(after[1]))
    except ValueError:
        raise ParameterError("parameter cursor is no cursor of this list") from None
    return after


OF = (
    Parameter("job", "Of this job: job:NAMESPACE:NAME, or its name where only one has it", Text(1)),
    Parameter("runId", "Of this run", Text(1)),
    Parameter(
        "dataset",
        "That name this dataset: dataset:NAMESPACE:NAME, or a short name like database.table",
        Text(1),
    ),
    SINCE,
    UNTIL,
)
PAGE = {
    "type": "object",
    "required": ["items", "nextCursor"],
    "properties": {
        "items": {"type": "array", "items": {"type": "object"}},
        "nextCursor": {"type": ["string", "null"]},
    },
}
KINDS = {
    "type": "object",
    "required": ["items", "complete"],
    "properties": {
        "items": {"type": "array", "items": {"type": "object"}},
        "complete": {"type": "boolean"},
    },
}
ARCHIVED = {
    "type": "array",
    "items": {"type": "object"},
    "description": "Where events of that time are that the store no longer has",
}
EVENTS = {
    "type": "object",
    "required": ["items", "nextCursor", "archived"],
    "properties": {
        "items": {"type": "array", "items": {"type": "object"}},
        "nextCursor": {"type": ["string", "null"]},
        "archived": ARCHIVED,
    },
}
OPERATIONS = (
    Operation(
        "GET",
        "/api/v2/events",
        "Events as received (since and until: received), newest first",
        events,
        (*OF, LIMIT, CURSOR),
        answer=EVENTS,
        export="list",
        refusals=(404,),
        scope="read",
    ),
    Operation(
        "GET",
        "/api/v2/dead-letters",
        "Records that are no events",
        dead_letters,
        (LIMIT, CURSOR),
        answer=PAGE,
        export="list",
        scope="read",
        whole=True,
    ),
    Operation(
        "GET",
        "/api/v2/unread-events",
        "Events that a fault of the collector's own kept from being read: taken again at its next start",
        unread,
        (LIMIT, CURSOR),
        answer=PAGE,
        export="list",
        scope="read",
        whole=True,
    ),
    Operation(
        "GET",
        "/api/v2/rejected-events",
        "What was rejected over HTTP by producer and reason, the newest first",
        refused_events,
        (LIMIT, CURSOR),
        answer=PAGE,
        export="list",
        scope="read",
        whole=True,
    ),
    Operation(
        "GET",
        "/api/v2/rejected",
        "Rejected events, dead letters and unread events by kind: producer, reason without its values, count, one example",
        rejected,
        (LIMIT,),
        answer=KINDS,
        export="list",
        scope="read",
        whole=True,
    ),
)
