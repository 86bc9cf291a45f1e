"""Lists of what was received, newest first.

Events as stored, dead letters, and events that are kept unread.

A page ends early where its events are large: an answer has to fit into memory, however long its
page may be.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from sqlalchemy import Connection, Row, Select, Table, select, tuple_

from strandline.core.access.granted import Access
from strandline.core.openlineage.times import moment_of
from strandline.errors import DamagedError
from strandline.store.catalog.event_filters import EventFilter, Matcher
from strandline.store.schema.received_tables import raw_events, set_aside
from strandline.store.sql.compression import Expansion
from strandline.store.sql.pages import encode_cursor

PAGE_BYTES = 8 * 1024 * 1024
CURSOR = (int, str)
MOST_READ = 10_000  # events that one page looks into
AT_ONCE = 200
SHOWN = 4096  # of a dead letter's body: enough to see what it is


@dataclass(frozen=True)
class ReceivedEvent:
    """An event as stored: as received, but for its secrets.

    problem: the reason if its body cannot be read any more.
    """

    hash: bytes
    received_at: int
    event_time: int
    body: bytes
    problem: str = ""


def events_page(
    connection: Connection,
    limit: int,
    after: tuple[Any, ...] | None,
    event_filter: EventFilter | None,
    access: Access,
) -> tuple[Sequence[ReceivedEvent], str | None]:
    """At most `limit` events before the cursor's, and the cursor of the next page if there is one.

    A page of the events of a job, run or dataset may be short though it is not the last: it looks
    into so many and no more.
    """
    matcher = Matcher(connection, event_filter or EventFilter(), access)
    expansion = Expansion(connection)
    events: list[ReceivedEvent] = []
    size = 0
    last: Row[Any] | None = None
    most = MOST_READ if matcher.looks_inside else limit
    query = _before(raw_events, raw_events.c.hash, after).where(*matcher.clauses()).limit(most + 1)
    rows = connection.execute(query.execution_options(yield_per=AT_ONCE))
    for read, (row, body) in enumerate(expansion.expanded(rows)):
        if last is not None and (len(events) == limit or size > PAGE_BYTES or read == most):
            rows.close()
            return events, _cursor(last.received_at, last.hash)
        last = row
        if isinstance(body, DamagedError):
            if not matcher.looks_inside:
                events.append(
                    ReceivedEvent(
                        bytes(row.hash), row.received_at, row.event_time, b"{}", str(body)
                    )
                )
        elif matcher.admits(body):
            size += len(body)
            events.append(ReceivedEvent(bytes(row.hash), row.received_at, row.event_time, body))
    return events, None


def event_answer(event: ReceivedEvent) -> dict[str, Any]:
    """As JSON shows it."""
    answer = {
        "hash": event.hash.hex(),
        "receivedAt": moment_of(event.received_at),
        "eventTime": moment_of(event.event_time),
        "event": orjson.Fragment(event.body),
    }
    return answer | {"problem": event.problem} if event.problem else answer


def dead_letters_page(
    connection: Connection, limit: int, after: tuple[Any, ...] | None = None
) -> tuple[list[dict[str, Any]], str | None]:
    """Return at most `limit` dead letters before the cursor's.

    The cursor of the next page comes with them, if there is one.
    """
    return _kept(connection, "dead", limit, after)


def unread_page(
    connection: Connection, limit: int, after: tuple[Any, ...] | None = None
) -> tuple[list[dict[str, Any]], str | None]:
    """The same of the events that a fault of this program kept from being read or stored.

    The id is the event's hash.
    """
    return _kept(connection, "unread", limit, after)


def _kept(
    connection: Connection, kind: str, limit: int, after: tuple[Any, ...] | None
) -> tuple[list[dict[str, Any]], str | None]:
    query = _before(set_aside, set_aside.c.id, after).where(set_aside.c.kind == kind)
    rows = connection.execute(query.limit(limit + 1)).all()
    cursor = _cursor(rows[limit - 1].received_at, rows[limit - 1].id) if len(rows) > limit else None
    return [_kept_answer(row) for row in rows[:limit]], cursor


def _kept_answer(row: Any) -> dict[str, Any]:
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


def _before(table: Table, key: Any, after: tuple[Any, ...] | None) -> Select[Any]:
    """Newest first.

    (A comparison of pairs, so that the key's index is walked from where the page begins.)
    """
    query = select(table).order_by(table.c.received_at.desc(), key.desc())
    if after is None:
        return query
    return query.where(tuple_(table.c.received_at, key) < tuple_(after[0], bytes.fromhex(after[1])))


def _cursor(received_at: int, key: bytes) -> str:
    return encode_cursor([received_at, bytes(key).hex()])
