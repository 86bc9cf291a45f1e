"""Changing and deleting stored bodies, whatever else is packed with them.

The one place that knows how.

A body may have become the reference of others (`sql/references`). Whoever changes or deletes it
here takes it out of that reference too; the others are packed with another one, and lose nothing.
Writers are kept out until the transaction ends, so take that lock (`keep_writers_out`) before
anything else is changed in it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import zstandard
from sqlalchemy import Connection, Row, delete, select, tuple_, update

from strandline.errors import DamagedError
from strandline.store.ingest.retention import keep_writers_out
from strandline.store.schema.tables import dictionaries, raw_events
from strandline.store.sql.compression import Compression, Expansion
from strandline.store.sql.id_lists import among
from strandline.store.sql.least_used import LeastUsed
from strandline.store.sql.references import (
    COMPRESSOR_BYTES,
    Reference,
    drop_references,
    insert_references,
    made_reference,
    unneeded_references,
)
from strandline.store.sql.shared_settings import raise_epoch

PAGE = 500
Key = tuple[int, bytes]  # of raw_events: the moment of receipt, and the hash


def replace_bodies(connection: Connection, bodies: Mapping[Key, bytes | None]) -> None:
    """Give stored events these bodies, and delete those that have None.

    Their rows in event_keys are the caller's matter.
    """
    keep_writers_out(connection)
    for page in _pages(list(bodies.items())):
        gone = [key for key, body in page if body is None]
        connection.execute(
            delete(raw_events).where(tuple_(raw_events.c.received_at, raw_events.c.hash).in_(gone))
        )
        for key, body in page:
            if body is not None:
                _write(connection, key, 0, Compression().shrink(body))
    contents = {hash_: body for (_, hash_), body in bodies.items()}
    replace_references(
        connection, {id_: contents[source] for id_, source in _made_of(connection, list(contents))}
    )


def replace_references(
    connection: Connection,
    contents: Mapping[int, bytes | None],
    change: Callable[[bytes], bytes] = bytes,
) -> int:
    """Pack what needs these references with others, and delete them.

    Gives how many bodies `change` has changed.

    The other one has this content, or else (None) that of the first event that needs it.
    """
    rows = connection.execute(
        select(dictionaries).where(among(dictionaries.c.id, list(contents)))
    ).all()
    replacements = {row.id: _other(row, contents[row.id]) for row in rows}
    old = {
        row.id: row for row in rows if (other := replacements[row.id]) is None or other.id != row.id
    }
    if not old:
        return 0
    keep_writers_out(connection)
    raise_epoch(connection)
    new = {id_: one for id_ in old if (one := replacements[id_]) is not None}
    insert_references(connection, new.values())
    changed = _repack(connection, old, new, change)
    connection.execute(delete(dictionaries).where(among(dictionaries.c.id, list(old))))
    return changed


def drop_unneeded(connection: Connection) -> int:
    """Delete the references that are for events older than any that is stored; gives how many."""
    if (
        connection.execute(select(dictionaries.c.id).where(unneeded_references()).limit(1)).first()
        is None
    ):
        return 0
    keep_writers_out(connection)
    raise_epoch(connection)
    return drop_references(connection)


def _other(row: Row[Any], content: bytes | None) -> Reference | None:
    return (
        None if content is None else made_reference(row.key, row.until, bytes(row.source), content)
    )


def _made_of(connection: Connection, hashes: Sequence[bytes]) -> Iterator[tuple[int, bytes]]:
    """The references that were made of these events."""
    for page in _pages(hashes):
        query = select(dictionaries.c.id, dictionaries.c.source).where(
            dictionaries.c.source.in_(page)
        )
        yield from ((row.id, bytes(row.source)) for row in connection.execute(query).all())


def _repack(
    connection: Connection,
    old: Mapping[int, Row[Any]],
    new: dict[int, Reference],
    change: Callable[[bytes], bytes],
) -> int:
    """Pack every event that needs an old reference with the new one.

    What cannot be read any more stays so.
    """
    expansion = Expansion(connection)
    compressors: LeastUsed[zstandard.ZstdCompressor] = LeastUsed(COMPRESSOR_BYTES)
    changed = 0
    for row, body in expansion.expanded(_packed_with(connection, list(old))):
        if isinstance(body, DamagedError):
            continue
        kept = change(body)
        changed += kept != body
        reference = new.get(row.dictionary_id)
        if reference is None:
            before = old[row.dictionary_id]
            reference = made_reference(before.key, before.until, bytes(row.hash), kept)
            new[row.dictionary_id] = reference
            insert_references(connection, [reference])
        compressor = compressors.get(reference.id)
        if compressor is None:
            compressor = reference.compressor()
        frame = compressor.compress(kept)
        compressors.put(reference.id, compressor, compressor.memory_size())
        _write(connection, (row.received_at, bytes(row.hash)), reference.id, frame)
    return changed


def _packed_with(connection: Connection, ids: Sequence[int]) -> Iterator[Row[Any]]:
    """The events that need one of these dictionaries, a page at a time."""
    key = (raw_events.c.received_at, raw_events.c.hash)
    query = (
        select(raw_events).where(among(raw_events.c.dictionary_id, ids)).order_by(*key).limit(PAGE)
    )
    rows = connection.execute(query).all()
    while rows:
        yield from rows
        after = (rows[-1].received_at, bytes(rows[-1].hash))
        rows = connection.execute(query.where(tuple_(*key) > after)).all()


def _write(connection: Connection, key: Key, dictionary_id: int, frame: bytes) -> None:
    this = (raw_events.c.received_at == key[0], raw_events.c.hash == key[1])
    connection.execute(
        update(raw_events).where(*this).values(body=frame, dictionary_id=dictionary_id)
    )


def _pages(items: Sequence[Any]) -> Iterator[list[Any]]:
    remaining = iter(items)
    while page := list(islice(remaining, PAGE)):
        yield page
