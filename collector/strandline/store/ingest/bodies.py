"""Changing and deleting the stored bodies of events, and the references made of them.

A body may have become the reference of others (`sql/body_references`). When it is changed or
deleted here, so is that reference, and the events that need it are packed against another one.
Writers are kept out until the transaction ends: take that lock (`keep_writers_out`) before
anything else is changed in the transaction.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import zstandard
from sqlalchemy import Connection, Row, delete, select, tuple_, update

from strandline.errors import DamagedError
from strandline.store.ingest.retention import keep_writers_out
from strandline.store.schema.received_tables import body_references, raw_events
from strandline.store.sql.body_references import (
    ALONE,
    COMPRESSOR_BYTES,
    Reference,
    drop_references,
    insert_references,
    pack_alone,
    reference_of,
    unneeded_references,
)
from strandline.store.sql.compression import Expansion
from strandline.store.sql.id_lists import among
from strandline.store.sql.least_used import LeastUsed
from strandline.store.sql.shared_settings import raise_epoch
from strandline.store.sql.table_pages import pages, pages_of

EventKey = tuple[int, bytes]  # of raw_events: the moment of receipt, and the hash


def replace_bodies(connection: Connection, bodies: Mapping[EventKey, bytes | None]) -> None:
    """Give stored events other bodies, and delete the events whose body is None.

    The rows in event_keys stay.
    """
    keep_writers_out(connection)
    for page in pages(list(bodies.items())):
        gone = [key for key, body in page if body is None]
        key_columns = tuple_(raw_events.c.received_at, raw_events.c.hash)
        connection.execute(delete(raw_events).where(key_columns.in_(gone)))
        for key, body in page:
            if body is not None:
                write_body(connection, key, ALONE, pack_alone(body))
    contents = {hash_: body for (_, hash_), body in bodies.items()}
    references = _references_made_of(connection, list(contents))
    replace_references(connection, {id_: contents[source] for id_, source in references})


def replace_references(
    connection: Connection,
    contents: Mapping[int, bytes | None],
    change: Callable[[bytes], bytes] = bytes,
) -> int:
    """Replace references, and pack the events that need them again.

    The new reference has the given content; for None it has the content of the first event that
    needs it. Every event is packed after `change`; return how many that changed.
    """
    query = select(body_references).where(among(body_references.c.id, list(contents)))
    old: dict[int, Row[Any]] = {}
    new: dict[int, Reference] = {}
    for row in connection.execute(query).all():
        content = contents[row.id]
        if content is None:
            old[row.id] = row
            continue
        reference = reference_of(row.key, row.until, bytes(row.source), content)
        if reference.id != row.id:
            old[row.id] = row
            new[row.id] = reference
    if not old:
        return 0
    keep_writers_out(connection)
    raise_epoch(connection)
    insert_references(connection, new.values())
    changed = _pack_again(connection, old, new, change)
    connection.execute(delete(body_references).where(among(body_references.c.id, list(old))))
    return changed


def drop_unneeded(connection: Connection) -> int:
    """Delete the references that no stored event can need, and return their number."""
    query = select(body_references.c.id).where(unneeded_references()).limit(1)
    if connection.execute(query).first() is None:
        return 0
    keep_writers_out(connection)
    raise_epoch(connection)
    return drop_references(connection)


def write_body(connection: Connection, key: EventKey, reference_id: int, frame: bytes) -> None:
    """Change the stored body of one event."""
    received_at, hash_ = key
    event = (raw_events.c.received_at == received_at, raw_events.c.hash == hash_)
    changes = {"body": frame, "reference_id": reference_id}
    connection.execute(update(raw_events).where(*event).values(changes))


def _references_made_of(
    connection: Connection, hashes: Sequence[bytes]
) -> Iterator[tuple[int, bytes]]:
    """Yield the id of each reference that was made of one of these events, and the event's hash."""
    columns = body_references.c
    for page in pages(hashes):
        query = select(columns.id, columns.source).where(columns.source.in_(page))
        for row in connection.execute(query).all():
            yield row.id, bytes(row.source)


def _pack_again(
    connection: Connection,
    old: Mapping[int, Row[Any]],
    new: dict[int, Reference],
    change: Callable[[bytes], bytes],
) -> int:
    """Pack every event that needs an old reference against the new one.

    Events that cannot be read stay as they are.
    """
    compressors: LeastUsed[zstandard.ZstdCompressor] = LeastUsed(COMPRESSOR_BYTES)
    changed = 0
    for row, body in Expansion(connection).expanded(_events_that_need(connection, list(old))):
        if isinstance(body, DamagedError):
            continue
        new_body = change(body)
        changed += new_body != body
        reference = new.get(row.reference_id)
        if reference is None:
            before = old[row.reference_id]
            reference = reference_of(before.key, before.until, bytes(row.hash), new_body)
            new[row.reference_id] = reference
            insert_references(connection, [reference])
        compressor = compressors.get(reference.id)
        if compressor is None:
            compressor = reference.compressor()
        frame = compressor.compress(new_body)
        compressors.put(reference.id, compressor, compressor.memory_size())
        write_body(connection, (row.received_at, bytes(row.hash)), reference.id, frame)
    return changed


def _events_that_need(connection: Connection, ids: Sequence[int]) -> Iterator[Row[Any]]:
    key = (raw_events.c.received_at, raw_events.c.hash)
    query = select(raw_events).where(among(raw_events.c.reference_id, ids))
    for page in pages_of(connection, query, *key):
        yield from page
