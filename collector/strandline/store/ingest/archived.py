"""Events that leave the store for an archive, a batch at a time.

Chosen, noted, written elsewhere, and only then deleted.

A batch is noted with its events before it is written. Whoever was killed on the way finds it open
and writes exactly the same events under the same name, so that the archive holds each event once.
The events' hashes stay known until retention takes them: an event that arrives again is still a
duplicate.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec
from sqlalchemy import Connection, delete, func, select, tuple_, update

from strandline.core.openlineage.times import moment_of
from strandline.errors import DamagedError
from strandline.store.ingest.raw_events import DAY
from strandline.store.schema.archive_tables import archive_batches
from strandline.store.schema.received_tables import event_keys, raw_events
from strandline.store.sql.compression import Expansion

Key = tuple[int, bytes]
PAGE = 500


class Batch(NamedTuple):
    """Events of one day that leave together.

    `keys` are moments of receipt (microseconds) with hashes, in that order.
    """

    id: str
    day: int
    keys: list[Key]


class LeavingEvent(NamedTuple):
    """An event as the archive keeps it.

    Times in microseconds since 1970, the body redacted JSON.
    """

    hash: bytes
    received_at: int
    event_time: int
    body: bytes


class Archived(NamedTuple):
    """What left for one archive.

    How many events, received from the first of these days until when (microseconds).
    """

    target: str
    events: int
    oldest_at: int
    newest_at: int


def open_batch(connection: Connection, target: str, before: int, most: int) -> Batch | None:
    """The batch that somebody began and did not end, else a new one of at most so many events received before a moment.

    None if nothing is left to archive. The caller commits before it writes the batch anywhere.
    """
    held = connection.execute(
        select(archive_batches)
        .where(archive_batches.c.target == target, archive_batches.c.done == 0)
        .order_by(archive_batches.c.id)
        .limit(1)
    ).first()
    if held is not None:
        return Batch(held.id, held.day, _unpacked(held.events))
    keys = _oldest_keys(connection, before, most)
    if not keys:
        return None
    day = keys[0][0] // DAY
    keys = [one for one in keys if one[0] // DAY == day]
    body = msgspec.msgpack.encode(keys)
    batch = Batch(hashlib.sha256(body).hexdigest()[:32], day, keys)
    values = {
        "target": target,
        "day": day,
        "newest_at": keys[-1][0],
        "count": len(keys),
        "done": 0,
        "events": body,
    }
    connection.execute(archive_batches.insert().values(id=batch.id, **values))
    return batch


def _oldest_keys(connection: Connection, before: int, most: int) -> list[Key]:
    """The first events that can be read. One that cannot stays, and does not keep the others."""
    key = (raw_events.c.received_at, raw_events.c.hash)
    query = (
        select(*key, raw_events.c.reference_id)
        .where(raw_events.c.received_at < before)
        .order_by(*key)
        .limit(most)
    )
    expansion = Expansion(connection)
    rows = connection.execute(query).all()
    while rows:
        damaged = expansion.damaged({row.reference_id for row in rows})
        keys = [
            (row.received_at, bytes(row.hash)) for row in rows if row.reference_id not in damaged
        ]
        if keys:
            return keys
        after = (rows[-1].received_at, bytes(rows[-1].hash))
        rows = connection.execute(query.where(tuple_(*key) > after)).all()
    return []


def events_in(connection: Connection, batch: Batch) -> Iterator[LeavingEvent]:
    """The events of a batch, in its order."""
    expansion = Expansion(connection)
    for start in range(0, len(batch.keys), PAGE):
        page = batch.keys[start : start + PAGE]
        query = select(raw_events).where(
            raw_events.c.hash.in_([hash_ for _, hash_ in page]),
            raw_events.c.received_at.between(page[0][0], page[-1][0]),
        )
        found = {
            bytes(row.hash): (row, body)
            for row, body in expansion.expanded(connection.execute(query).all())
        }
        for _, hash_ in page:
            row, body = found.get(hash_, (None, b""))
            if isinstance(body, DamagedError):
                raise body
            if row is not None:
                yield LeavingEvent(hash_, row.received_at, row.event_time, body)


def end_batch(connection: Connection, batch: Batch) -> None:
    """Delete the events of a batch that the archive holds now."""
    for start in range(0, len(batch.keys), PAGE):
        page = batch.keys[start : start + PAGE]
        connection.execute(
            delete(raw_events).where(
                raw_events.c.hash.in_([hash_ for _, hash_ in page]),
                raw_events.c.received_at.between(page[0][0], page[-1][0]),
            )
        )
    connection.execute(
        update(archive_batches).where(archive_batches.c.id == batch.id).values(done=1)
    )


def archived(
    connection: Connection, since: int | None = None, until: int | None = None
) -> list[Archived]:
    """What left, by archive.

    Only of days that have moments of receipt between these two (microseconds).
    """
    batches = archive_batches.c
    within = [batches.newest_at >= since] if since is not None else []
    within += [batches.day <= (until - 1) // DAY] if until is not None else []
    query = (
        select(
            batches.target,
            func.sum(batches.count),
            func.min(batches.day),
            func.max(batches.newest_at),
        )
        .where(batches.done == 1, *within)
        .group_by(batches.target)
        .order_by(batches.target)
    )
    return [
        Archived(target, int(count), day * DAY, newest)
        for target, count, day, newest in connection.execute(query)
    ]


def archived_answer(
    connection: Connection, since: int | None = None, until: int | None = None
) -> list[dict[str, Any]]:
    """The same as JSON shows it: where the events of that time are that the store no longer has."""
    return [
        {
            "target": one.target,
            "events": one.events,
            "receivedFrom": moment_of(one.oldest_at),
            "receivedUntil": moment_of(one.newest_at),
        }
        for one in archived(connection, since, until)
    ]


def forget_archived_keys(connection: Connection, before: int) -> int:
    """Forget the hashes of archived events received before a moment; gives how many.

    That they left stays noted.
    """
    empty = msgspec.msgpack.encode([])
    batches = archive_batches.c
    old = select(batches.id, batches.events).where(
        batches.done == 1, batches.newest_at < before, batches.events != empty
    )
    gone = 0
    for id_, events in connection.execute(old).all():
        gone += _delete_keys(connection, [hash_ for _, hash_ in _unpacked(events)])
        connection.execute(update(archive_batches).where(batches.id == id_).values(events=empty))
    return gone


def _delete_keys(connection: Connection, hashes: Sequence[bytes]) -> int:
    pages: Iterable[Sequence[bytes]] = (
        hashes[start : start + PAGE] for start in range(0, len(hashes), PAGE)
    )
    return sum(
        connection.execute(delete(event_keys).where(event_keys.c.hash.in_(page))).rowcount
        for page in pages
    )


def _unpacked(events: bytes) -> list[Key]:
    return msgspec.msgpack.decode(events, type=list[tuple[int, bytes]])
