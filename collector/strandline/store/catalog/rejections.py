"""Rejected events: over HTTP, dead letters, and events that are kept unread; lists, and by kind.

Records that differ only in values (an offset, an id, a time) have one kind.
"""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from sqlalchemy import Connection, func, select

from strandline.core.openlineage.times import moment_of
from strandline.core.rejection_kinds import kind_of
from strandline.store.catalog.received import cursor_of, newest_first
from strandline.store.schema.received_tables import refused_events, set_aside

NEWEST = 10_000
"""The number of dead letters, and of unread events, that are counted: the newest ones."""
SHOWN = 4096  # of a body: enough to see what it is
_PRODUCER = re.compile(rb'"producer"\s*:\s*"([^"\\]{1,300})"')


class Rejection(NamedTuple):
    """Rejected records of one producer for one reason."""

    list: str
    producer: str
    reason: str
    records: int
    first_at: int
    newest_at: int
    place: str
    body: bytes


def rejection_kinds(connection: Connection, limit: int) -> tuple[list[dict[str, Any]], bool]:
    """Return one item a kind, newest first, and True if all records and kinds are in it."""
    letters = list(_set_aside(connection, "deadLetters", "dead"))
    unread = list(_set_aside(connection, "unread", "unread"))
    kinds: dict[tuple[str, str, str], Rejection] = {}
    for rejection in [*_rejected(connection), *letters[:NEWEST], *unread[:NEWEST]]:
        kind = rejection._replace(reason=kind_of(rejection.reason))
        key = (kind.list, kind.producer, kind.reason)
        kinds[key] = _together(kinds[key], kind) if key in kinds else kind
    newest_first = sorted(kinds.values(), key=lambda kind: (-kind.newest_at, kind[:3]))
    complete = len(newest_first) <= limit and max(len(letters), len(unread)) <= NEWEST
    return [_answer(kind) for kind in newest_first[:limit]], complete


def _rejected(connection: Connection) -> Iterator[Rejection]:
    for row in connection.execute(select(refused_events)):
        yield Rejection(
            "rejected",
            row.producer,
            row.reason,
            row._mapping["count"],
            row.first_at,
            row.newest_at,
            "",
            bytes(row.body),
        )


def _set_aside(connection: Connection, name: str, kind: str) -> Iterator[Rejection]:
    """Yield the newest records of a kind, at most one more than are counted."""
    columns = set_aside.c
    beginning = func.substr(columns.body, 1, SHOWN).label("body")
    query = (
        select(
            columns.received_at,
            columns.topic,
            columns.partition_id,
            columns.record_offset,
            columns.reason,
            beginning,
        )
        .where(columns.kind == kind)
        .order_by(columns.received_at.desc())
    )
    for row in connection.execute(query.limit(NEWEST + 1)):
        body = bytes(row.body)
        producer = _PRODUCER.search(body)
        yield Rejection(
            name,
            producer[1].decode("utf-8", "replace") if producer else "",
            row.reason,
            1,
            row.received_at,
            row.received_at,
            f"{row.topic}[{row.partition_id}]@{row.record_offset}" if row.topic else "",
            body,
        )


def _together(first: Rejection, other: Rejection) -> Rejection:
    """Return both as one, with the newest record as the example."""
    newest = max(first, other, key=lambda rejection: rejection.newest_at)
    first_at = min(first.first_at, other.first_at)
    return newest._replace(records=first.records + other.records, first_at=first_at)


def _answer(kind: Rejection) -> dict[str, Any]:
    return {
        "list": kind.list,
        "producer": kind.producer or None,
        "reason": kind.reason,
        "count": kind.records,
        "firstAt": moment_of(kind.first_at),
        "newestAt": moment_of(kind.newest_at),
        "place": kind.place or None,
        "body": kind.body.decode("utf-8", "replace"),
    }


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
    query = newest_first(set_aside, set_aside.c.id, after).where(set_aside.c.kind == kind)
    rows = connection.execute(query.limit(limit + 1)).all()
    cursor = (
        cursor_of(rows[limit - 1].received_at, rows[limit - 1].id) if len(rows) > limit else None
    )
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
