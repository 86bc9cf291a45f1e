"""Reference frames: an event is packed against an earlier body of the same job and event type, and takes some 70 bytes.

A reference is such a body, kept in `dictionaries` beside those that were trained. It is packed alone, so nothing else is needed to
read it, and it does not hang on the event that it came with: that may be deleted, archived or expired. It serves events
received before `until`, which retention therefore need not look for. Its id is a hash of all that it is: a damaged one is found out.
"""

import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

import zstandard
from sqlalchemy import ColumnElement, Connection, delete, func, select, text

from strandline.core.changes.memory import BoundedCache
from strandline.errors import DamagedError
from strandline.store.schema.tables import dictionaries, raw_events
from strandline.store.sql.id_lists import among
from strandline.store.sql.least_used import LeastUsed

LEVEL = 1
DAY = 86_400 * 10**6
SPAN_DAYS = 30  # a reference serves the day it was made on and the 29 after it
LARGEST = 128 << 10  # of bodies that are packed so
HELD_BYTES, COMPRESSOR_BYTES = 64 << 20, 32 << 20
KEYS = 200_000
PAGE = 500
NEVER = 2**62  # later than any moment of receipt
PATIENCE, MOST_PATIENCE = 4, 256
TYPES = (None, "START", "RUNNING", "COMPLETE", "FAIL", "ABORT", "OTHER")

_INSERT = text(
    "INSERT INTO dictionaries (id, body, key, until, source) VALUES (:id, :body, :key, :until, :source) ON CONFLICT DO NOTHING"
)
Packed = tuple[int, bytes]  # the id of a dictionary and a frame
PackAlone = Callable[[bytes], Packed]


class Body(NamedTuple):
    """A body to pack. key: what it resembles (`key_of`); source: the hash of its event."""

    key: int
    source: bytes
    received_at: int
    content: bytes


class Reference(NamedTuple):
    """A row of `dictionaries` that is an earlier body; `body` is its content packed alone."""

    id: int
    key: int
    until: int
    source: bytes
    body: bytes
    content: bytes

    @property
    def dictionary(self) -> zstandard.ZstdCompressionDict:
        """Its content, to pack with and to read with."""
        return zstandard.ZstdCompressionDict(self.content, dict_type=zstandard.DICT_TYPE_RAWCONTENT)

    def compressor(self) -> zstandard.ZstdCompressor:
        """What packs with it."""
        dictionary = self.dictionary
        dictionary.precompute_compress(level=LEVEL)
        return zstandard.ZstdCompressor(level=LEVEL, dict_data=dictionary)


def key_of(entity_id: int, event_type: str | None) -> int:
    """What events of one job, or one dataset, and one type share.

    >>> key_of(64, "START"), key_of(64, None)
    (65, 64)
    """
    return entity_id ^ TYPES.index(event_type)


def reference_of(body: Body) -> Reference:
    """The reference that a body makes."""
    until = (body.received_at // DAY + SPAN_DAYS) * DAY
    return made_reference(body.key, until, body.source, body.content)


def made_reference(key: int, until: int, source: bytes, content: bytes) -> Reference:
    """A reference with its id."""
    body = zstandard.ZstdCompressor(level=LEVEL).compress(content)
    return Reference(_id_of(key, until, source, body), key, until, source, body, content)


def _id_of(key: int, until: int, source: bytes, body: bytes) -> int:
    whole = struct.pack(">qq", key, until) + source + body
    return int.from_bytes(blake2b(whole, digest_size=8).digest(), "big") >> 1


def checked(row: Any) -> Reference:
    """The reference in a row; a DamagedError if it is not what was written."""
    body = bytes(row.body)
    try:
        hash_ = _id_of(row.key, row.until, bytes(row.source), body)
        content = zstandard.decompress(body) if hash_ == row.id else b""
    except (zstandard.ZstdError, struct.error, TypeError) as error:
        raise DamagedError(f"reference {row.id} is damaged: {error}") from error
    if hash_ != row.id:
        raise DamagedError(f"reference {row.id} is damaged: its content has the hash {hash_}")
    return Reference(row.id, row.key, row.until, bytes(row.source), body, content)


def stored_references(connection: Connection) -> Iterator[tuple[int, Reference | DamagedError]]:
    """All references by their ids, a page at a time, or why one cannot be read."""
    columns, after = dictionaries.c, -1
    query = select(dictionaries).where(columns.key.is_not(None)).order_by(columns.id).limit(PAGE)
    while rows := connection.execute(query.where(columns.id > after)).all():
        for row in rows:
            try:
                yield row.id, checked(row)
            except DamagedError as error:
                yield row.id, error
        after = rows[-1].id


def insert_references(connection: Connection, references: Iterable[Reference]) -> None:
    """Write references; one that is there already stays as it is."""
    if rows := [one._asdict() for one in references]:
        connection.execute(_INSERT, rows)


def unneeded_references() -> ColumnElement[bool]:
    """Those for events older than any that is stored: nobody has to look at what needs each."""
    oldest = select(func.min(raw_events.c.received_at)).scalar_subquery()
    return dictionaries.c.until <= func.coalesce(oldest, NEVER)


def drop_references(connection: Connection) -> int:
    """Delete the references that no stored event can need; gives how many.

    Writers have to be kept out, and to forget.
    """
    return connection.execute(delete(dictionaries).where(unneeded_references())).rowcount


class _Held:
    """A reference that a writer packs with, and how well it has done."""

    def __init__(self, reference: Reference, patience: int = PATIENCE) -> None:
        self.id, self.until = reference.id, reference.until
        self.dictionary = reference.dictionary
        self.dictionary.precompute_compress(level=LEVEL)
        self._share = len(reference.body) / max(1, len(reference.content)) / 2
        self._misses, self.patience = 0, patience

    @property
    def size(self) -> int:
        """Bytes that it takes: its content twice, and tables for the compressor."""
        return 4 * len(self.dictionary) + (16 << 10)

    def is_poor(self, content: bytes, frame: bytes) -> bool:
        """Whether packing has won less than half."""
        return len(frame) > len(content) * self._share + 64

    def has_missed_often(self, *, poor: bool) -> bool:
        """Whether it is time for another.

        It has been of no use so many times one after the other.
        """
        self._misses = self._misses + 1 if poor else 0
        return self._misses >= self.patience


class References:
    """The references of one writer, the most used ones in memory.

    The first body of its kind is packed alone, the second becomes a reference: what comes once
    leaves none.
    """

    def __init__(
        self, held_bytes: int = HELD_BYTES, compressor_bytes: int = COMPRESSOR_BYTES
    ) -> None:
        self._held: LeastUsed[_Held] = LeastUsed(held_bytes)
        self._compressors: LeastUsed[zstandard.ZstdCompressor] = LeastUsed(compressor_bytes)
        self._met = BoundedCache(
            KEYS
        )  # keys of which a body was packed while no reference was held
        self._new: list[Reference] = []
        self._pending: list[int] = []  # keys of references that this transaction stores

    @property
    def size(self) -> int:
        """Bytes of memory that references and compressors take."""
        return self._held.size + self._compressors.size

    def look_up(self, connection: Connection, bodies: Sequence[Body]) -> None:
        """Read what is stored for bodies of kinds that this writer has no reference for, and has not met."""
        wanted = {
            body.key
            for body in bodies
            if self._held.get(body.key) is None and not self._met.get(body.key)
        }
        if not wanted:
            return
        since = min(body.received_at for body in bodies)
        columns = dictionaries.c
        query = select(dictionaries).where(
            among(columns.key, sorted(wanted)), columns.until > since
        )
        for row in connection.execute(query.order_by(columns.until, columns.id)):
            try:
                self._hold(checked(row))
            except DamagedError:  # what was packed with it is lost; what comes gets another
                continue

    def pack(self, body: Body, alone: PackAlone) -> Packed:
        """The id of a reference and the frame of a body, or what packing it alone gives."""
        if not body.content or len(body.content) > LARGEST:
            return alone(body.content)
        held = self._held.get(body.key)
        if held is None and not self._met.get(body.key):
            self._met.put(body.key, True)
            return alone(body.content)
        if held is None or held.until <= body.received_at:
            return self._packed(self._make(body), body.content)
        packed = self._packed(held, body.content)
        poor = held.is_poor(body.content, packed[1])
        if held.has_missed_often(poor=poor):
            return self._packed(
                self._make(body, min(2 * held.patience, MOST_PATIENCE)), body.content
            )
        return min(packed, alone(body.content), key=lambda one: len(one[1])) if poor else packed

    def _packed(self, held: _Held, content: bytes) -> Packed:
        compressor = self._compressors.get(held.id)
        if compressor is not None:
            return held.id, compressor.compress(content)
        compressor = zstandard.ZstdCompressor(level=LEVEL, dict_data=held.dictionary)
        frame = compressor.compress(content)
        self._compressors.put(held.id, compressor, compressor.memory_size())
        return held.id, frame

    def _make(self, body: Body, patience: int = PATIENCE) -> _Held:
        reference = reference_of(body)
        self._new.append(reference)
        self._pending.append(body.key)
        return self._hold(reference, patience)

    def _hold(self, reference: Reference, patience: int = PATIENCE) -> _Held:
        self._met.put(reference.key, False)  # looked for again, should it have to go from memory
        held = _Held(reference, patience)
        return self._held.put(reference.key, held, held.size)

    def store(self, connection: Connection) -> None:
        """Write the references that bodies of this transaction are packed with."""
        new, self._new = self._new, []
        insert_references(connection, new)

    def commit(self) -> None:
        """What was stored is stored."""
        self._pending.clear()

    def discard(self) -> None:
        """What was stored is not."""
        for key in self._pending:
            self._held.remove(key)
        self._pending.clear()
        self._new.clear()

    def forget(self) -> None:
        """Somebody may have deleted references: look for each again."""
        self._held.clear()
        self._compressors.clear()
        self._met = BoundedCache(KEYS)
