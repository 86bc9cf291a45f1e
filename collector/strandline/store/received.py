"""Lists of what was received, newest first: events as stored, and dead letters.

A page ends early where its events are large: an answer has to fit into memory, however long its page may be.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Select, Table, select, tuple_

from strandline.store.compression import Expansion
from strandline.store.pages import encode_cursor
from strandline.store.tables import dead_letters, raw_events

PAGE_BYTES = 32 * 1024 * 1024
CURSOR = (int, str)


@dataclass(frozen=True)
class ReceivedEvent:
    """An event as stored: as received, but for its secrets."""

    hash: bytes
    received_at: int
    event_time: int
    body: bytes


def events_page(
    connection: Connection, limit: int, after: tuple[Any, ...] | None = None
) -> tuple[Sequence[ReceivedEvent], str | None]:
    """At most `limit` events before the cursor's, and the cursor of the next page if there is one."""
    expansion = Expansion(connection)
    events: list[ReceivedEvent] = []
    size = 0
    for row in connection.execute(_before(raw_events, raw_events.c.hash, after).limit(limit + 1)):
        if len(events) == limit or size > PAGE_BYTES:
            return events, _cursor(events[-1].received_at, events[-1].hash)
        body = expansion.expand(row.dictionary_id, row.body)
        size += len(body)
        events.append(ReceivedEvent(bytes(row.hash), row.received_at, row.event_time, body))
    return events, None


def dead_letters_page(
    connection: Connection, limit: int, after: tuple[Any, ...] | None = None
) -> tuple[Sequence[Any], str | None]:
    """At most `limit` rows of dead_letters before the cursor's, and the cursor of the next page if there is one."""
    rows = connection.execute(_before(dead_letters, dead_letters.c.id, after).limit(limit + 1)).all()
    if len(rows) <= limit:
        return rows, None
    return rows[:limit], _cursor(rows[limit - 1].received_at, rows[limit - 1].id)


def _before(table: Table, key: Any, after: tuple[Any, ...] | None) -> Select[Any]:
    """Newest first. (A comparison of pairs, so that the key's index is walked from where the page begins.)"""
    query = select(table).order_by(table.c.received_at.desc(), key.desc())
    if after is None:
        return query
    return query.where(tuple_(table.c.received_at, key) < tuple_(after[0], bytes.fromhex(after[1])))


def _cursor(received_at: int, key: bytes) -> str:
    return encode_cursor([received_at, bytes(key).hex()])
