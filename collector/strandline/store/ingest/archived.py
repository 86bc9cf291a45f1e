"""Events that leave the store for an archive, in batches of one day.

A batch is noted with its events before it is written, and its events are deleted afterwards. An
archiver that was killed in between finds the batch open and writes the same events again under the
same name, so the archive holds each event once. The events' hashes stay known until retention
deletes them: an event that arrives again is still a duplicate.
"""

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec
from sqlalchemy import ColumnElement, Connection, delete, func, select, update

from strandline.core.openlineage.times import moment_of
from strandline.errors import DamagedError
from strandline.store.ingest.raw_events import DAY
from strandline.store.schema.archive_tables import archive_batches
from strandline.store.schema.received_tables import event_keys, raw_events
from strandline.store.sql.compression import Expansion
from strandline.store.sql.table_pages import pages, pages_of

EventKey = tuple[int, bytes]  # of raw_events: the moment of receipt, and the hash
NO_KEYS = msgspec.msgpack.encode([])


class Batch(NamedTuple):
    """Events of one day that leave together, by their keys in order."""

    id: str
    day: int
    keys: list[EventKey]


class LeavingEvent(NamedTuple):
    """An event as the archive keeps it: times in microseconds, the body as redacted JSON."""

    hash: bytes
    received_at: int
    event_time: int
    body: bytes


class Archived(NamedTuple):
    """The events that left for one archive: their number, and the moments of receipt."""

    target: str
    events: int
    oldest_at: int
    newest_at: int


def open_batch(connection: Connection, target: str, before: int, most: int) -> Batch | None:
    """Return the batch that was begun and not ended, or else a new one.

    A new one has at most so many events received before a moment; None if there are none. The
    caller commits before it writes the batch anywhere.
    """
    batches = archive_batches.c
    open_batches = select(archive_batches).where(batches.target == target, batches.done == 0)
    row = connection.execute(open_batches.order_by(batches.id).limit(1)).first()
    if row is not None:
        return Batch(row.id, row.day, _decoded(row.events))
    keys = _oldest_keys(connection, before, most)
    if not keys:
        return None
    day = keys[0][0] // DAY
    keys = [key for key in keys if key[0] // DAY == day]
    body = msgspec.msgpack.encode(keys)
    batch = Batch(hashlib.sha256(body).hexdigest()[:32], day, keys)
    values = {
        "id": batch.id,
        "target": target,
        "day": day,
        "newest_at": keys[-1][0],
        "count": len(keys),
        "done": 0,
        "events": body,
    }
    connection.execute(archive_batches.insert().values(values))
    return batch


def events_in(connection: Connection, batch: Batch) -> Iterator[LeavingEvent]:
    """Yield the events of a batch, in its order."""
    expansion = Expansion(connection)
    for keys in pages(batch.keys):
        rows = connection.execute(select(raw_events).where(*_have_keys(keys))).all()
        bodies = {bytes(row.hash): (row, body) for row, body in expansion.expanded(rows)}
        for _, hash_ in keys:
            if hash_ not in bodies:
                continue
            row, body = bodies[hash_]
            if isinstance(body, DamagedError):
                raise body
            yield LeavingEvent(hash_, row.received_at, row.event_time, body)


def end_batch(connection: Connection, batch: Batch) -> None:
    """Delete the events of a batch that the archive holds now."""
    for keys in pages(batch.keys):
        connection.execute(delete(raw_events).where(*_have_keys(keys)))
    ended = update(archive_batches).where(archive_batches.c.id == batch.id)
    connection.execute(ended.values(done=1))


def archived(
    connection: Connection, since: int | None = None, until: int | None = None
) -> list[Archived]:
    """Return the events that left, by archive.

    With moments of receipt (microseconds) only count the days that have some between them.
    """
    batches = archive_batches.c
    between = [batches.newest_at >= since] if since is not None else []
    if until is not None:
        between.append(batches.day <= (until - 1) // DAY)
    sums = (func.sum(batches.count), func.min(batches.day), func.max(batches.newest_at))
    query = select(batches.target, *sums).where(batches.done == 1, *between)
    rows = connection.execute(query.group_by(batches.target).order_by(batches.target))
    return [
        Archived(target, int(count), day * DAY, newest_at) for target, count, day, newest_at in rows
    ]


def archived_answer(
    connection: Connection, since: int | None = None, until: int | None = None
) -> list[dict[str, Any]]:
    """Return the archives of a time as JSON shows them."""
    return [
        {
            "target": archive.target,
            "events": archive.events,
            "receivedFrom": moment_of(archive.oldest_at),
            "receivedUntil": moment_of(archive.newest_at),
        }
        for archive in archived(connection, since, until)
    ]


def forget_archived_keys(connection: Connection, before: int) -> int:
    """Delete the hashes of archived events received before a moment, and return their number.

    The store still knows that they left.
    """
    batches = archive_batches.c
    old = (batches.done == 1, batches.newest_at < before, batches.events != NO_KEYS)
    deleted = 0
    for id_, events in connection.execute(select(batches.id, batches.events).where(*old)).all():
        for keys in pages(_decoded(events)):
            of_events = event_keys.c.hash.in_([hash_ for _, hash_ in keys])
            deleted += connection.execute(delete(event_keys).where(of_events)).rowcount
        connection.execute(update(archive_batches).where(batches.id == id_).values(events=NO_KEYS))
    return deleted


def _oldest_keys(connection: Connection, before: int, most: int) -> list[EventKey]:
    """Return the keys of the first events that can be read, at most so many.

    An event that cannot be read stays, and does not hold up the others.
    """
    columns = raw_events.c
    query = select(columns.received_at, columns.hash, columns.reference_id)
    query = query.where(columns.received_at < before)
    expansion = Expansion(connection)
    keys: list[EventKey] = []
    for page in pages_of(connection, query, columns.received_at, columns.hash):
        damaged = expansion.damaged({row.reference_id for row in page})
        keys += [
            (row.received_at, bytes(row.hash)) for row in page if row.reference_id not in damaged
        ]
        if len(keys) >= most:
            break
    return keys[:most]


def _have_keys(keys: Sequence[EventKey]) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    """Return the condition for the events of a page of keys; its times find the partitions."""
    return (
        raw_events.c.hash.in_([hash_ for _, hash_ in keys]),
        raw_events.c.received_at.between(keys[0][0], keys[-1][0]),
    )


def _decoded(events: bytes) -> list[EventKey]:
    return msgspec.msgpack.decode(events, type=list[tuple[int, bytes]])
