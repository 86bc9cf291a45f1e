"""What was received, newest first: the events as they came (but for secrets), and the records that are none."""

from typing import Any

import orjson

from strandline.api.operation import CURSOR, LIMIT, Ask, Operation, ParameterError
from strandline.core.times import moment_of
from strandline.store.connect import reading
from strandline.store.pages import decode_cursor
from strandline.store.received import CURSOR as CURSOR_TYPES
from strandline.store.received import dead_letters_page, events_page

SHOWN = 4096  # of a dead letter's body: enough to see what it is


def events(ask: Ask) -> dict[str, Any]:
    """A page of events."""
    with reading(ask.engine).connect() as connection:
        page, cursor = events_page(connection, ask.given["limit"], _after(ask))
    items = [
        {
            "hash": event.hash.hex(),
            "receivedAt": moment_of(event.received_at),
            "eventTime": moment_of(event.event_time),
            "event": orjson.Fragment(event.body),
        }
        for event in page
    ]
    return {"items": items, "nextCursor": cursor}


def dead_letters(ask: Ask) -> dict[str, Any]:
    """A page of dead letters."""
    with reading(ask.engine).connect() as connection:
        page, cursor = dead_letters_page(connection, ask.given["limit"], _after(ask))
    return {"items": [_letter(row) for row in page], "nextCursor": cursor}


def _letter(row: Any) -> dict[str, Any]:
    from_topic = bool(row.topic)
    return {
        "id": bytes(row.id).hex(),
        "receivedAt": moment_of(row.received_at),
        "topic": row.topic if from_topic else None,
        "partition": row.partition_id if from_topic else None,
        "offset": row.record_offset if from_topic else None,
        "reason": row.reason,
        "size": len(row.body),
        "body": bytes(row.body[:SHOWN]).decode("utf-8", "replace"),
    }


def _after(ask: Ask) -> tuple[Any, ...] | None:
    if ask.given["cursor"] is None:
        return None
    try:
        after = decode_cursor(ask.given["cursor"], CURSOR_TYPES)
        bytes.fromhex(str(after[1]))
    except ValueError:
        raise ParameterError("parameter cursor is no cursor of this list") from None
    return after


PAGE = {
    "type": "object",
    "required": ["items", "nextCursor"],
    "properties": {"items": {"type": "array", "items": {"type": "object"}}, "nextCursor": {"type": ["string", "null"]}},
}
OPERATIONS = (
    Operation("GET", "/api/v2/events", "Events as received, newest first", events, (LIMIT, CURSOR), answer=PAGE),
    Operation("GET", "/api/v2/dead-letters", "Records that are no events", dead_letters, (LIMIT, CURSOR), answer=PAGE),
)
