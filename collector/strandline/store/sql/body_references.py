"""Event bodies packed against an earlier body of the same job and event type, in some 70 bytes.

The earlier body is the reference: a row of `body_references`. It is packed without a reference of
its own, so one row is enough to read it. It does not depend on the event that it came with, which
may be deleted, archived or expired. It serves events received before `until`; afterwards retention
deletes it without looking for events that need it. Its id is a hash of the row, so damage is
noticed.

A body without a reference is packed against the words of `small_bodies`, with the id ALONE.
"""

import struct
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

import zstandard
from sqlalchemy import ColumnElement, Connection, delete, func, select, text

from strandline.core.changes.memory import BoundedCache
from strandline.errors import DamagedError
from strandline.store.schema.received_tables import body_references, raw_events
from strandline.store.sql.id_lists import among
from strandline.store.sql.least_used import LeastUsed
from strandline.store.sql.small_bodies import COMMON
from strandline.store.sql.table_pages import pages_of

ALONE = 0
LEVEL, LEVEL_ALONE = 1, 3
DAY = 86_400 * 10**6
SPAN_DAYS = 30  # a reference serves the day on which it was made and the next 29
LARGEST = 128 << 10  # bytes of a body that is packed against a reference
REFERENCE_BYTES, COMPRESSOR_BYTES = 64 << 20, 32 << 20
KEYS = 200_000
NEVER = 2**62  # later than any moment of receipt
PATIENCE, MOST_PATIENCE = 4, 256
TYPES = (None, "START", "RUNNING", "COMPLETE", "FAIL", "ABORT", "OTHER")

_INSERT = text(
    "INSERT INTO body_references (id, body, key, until, source)"
    " VALUES (:id, :body, :key, :until, :source) ON CONFLICT DO NOTHING"
)
# Not precomputed: that makes packing these larger bodies slower.
WORDS = zstandard.ZstdCompressionDict(COMMON, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
Packed = tuple[int, bytes]  # the id of a reference, and a frame


class Body(NamedTuple):
    """A body to pack. key: of its kind (`key_of`); source: the hash of its event."""

    key: int
    source: bytes
    received_at: int
    content: bytes


class Reference(NamedTuple):
    """A row of `body_references`, and the content that `body` is a frame of."""

    id: int
    key: int
    until: int
    source: bytes
    body: bytes
    content: bytes

    @property
    def dictionary(self) -> zstandard.ZstdCompressionDict:
        """The content in zstd's form, for packing and reading."""
        return zstandard.ZstdCompressionDict(self.content, dict_type=zstandard.DICT_TYPE_RAWCONTENT)

    def compressor(self) -> zstandard.ZstdCompressor:
        """Return a compressor that packs against this reference.

        A frame has a checksum, so that reading it notices each changed byte.
        """
        dictionary = self.dictionary
        dictionary.precompute_compress(level=LEVEL)
        return zstandard.ZstdCompressor(level=LEVEL, dict_data=dictionary, write_checksum=True)


def key_of(entity_id: int, event_type: str | None) -> int:
    """Return the key of the events that a job or dataset sends with one event type.

    >>> key_of(64, "START"), key_of(64, None)
    (65, 64)
    """
    return entity_id ^ TYPES.index(event_type)


def pack_alone(content: bytes) -> bytes:
    """Return the frame of a body that has no reference.

    >>> len(pack_alone(b'{"_producer": "https://github.com/OpenLineage/OpenLineage/tree/'))
    20
    """
    return compressor_alone().compress(content)


def compressor_alone() -> zstandard.ZstdCompressor:
    """Return the compressor of bodies without a reference, for one thread."""
    return zstandard.ZstdCompressor(level=LEVEL_ALONE, dict_data=WORDS, write_checksum=True)


def reference_of(key: int, until: int, source: bytes, content: bytes) -> Reference:
    """Return the reference with this content."""
    body = pack_alone(content)
    return Reference(_id_of(key, until, source, body), key, until, source, body, content)


def _id_of(key: int, until: int, source: bytes, body: bytes) -> int:
    whole = struct.pack(">qq", key, until) + source + body
    return int.from_bytes(blake2b(whole, digest_size=8).digest(), "big") >> 1


def checked(row: Any) -> Reference:
    """Return the reference in a row; raise DamagedError if the row has changed."""
    body, source = bytes(row.body), bytes(row.source)
    id_ = _id_of(row.key, row.until, source, body)
    if id_ != row.id:
        raise DamagedError(f"reference {row.id} is damaged: its content has the hash {id_}")
    try:
        content = zstandard.ZstdDecompressor(dict_data=WORDS).decompress(body)
    except zstandard.ZstdError as error:
        raise DamagedError(f"reference {row.id} is damaged: {error}") from error
    return Reference(row.id, row.key, row.until, source, body, content)


def stored_references(connection: Connection) -> Iterator[tuple[int, Reference | DamagedError]]:
    """Yield the id of each reference with the reference, or with the reason it is unreadable."""
    for page in pages_of(connection, select(body_references), body_references.c.id):
        for row in page:
            try:
                yield row.id, checked(row)
            except DamagedError as error:
                yield row.id, error


def insert_references(connection: Connection, references: Iterable[Reference]) -> None:
    """Insert references that are not stored yet."""
    if rows := [reference._asdict() for reference in references]:
        connection.execute(_INSERT, rows)


def unneeded_references() -> ColumnElement[bool]:
    """Return the condition for references that only serve events older than any stored one."""
    oldest = select(func.min(raw_events.c.received_at)).scalar_subquery()
    return body_references.c.until <= func.coalesce(oldest, NEVER)


def drop_references(connection: Connection) -> int:
    """Delete the references that no stored event can need, and return their number.

    The caller keeps writers out and raises the epoch.
    """
    return connection.execute(delete(body_references).where(unneeded_references())).rowcount


class _CachedReference:
    """A reference that a writer packs with, and how useful it has been."""

    def __init__(self, reference: Reference, patience: int = PATIENCE) -> None:
        self.id, self.until = reference.id, reference.until
        self.dictionary = reference.dictionary
        self.dictionary.precompute_compress(level=LEVEL)
        self._ratio_alone = len(reference.body) / max(1, len(reference.content))
        self._misses, self.patience = 0, patience

    @property
    def size(self) -> int:
        """Its bytes of memory: the content twice, and the compressor's tables."""
        return 4 * len(self.dictionary) + (16 << 10)

    def is_poor(self, content: bytes, frame: bytes) -> bool:
        """Return whether the frame is larger than half of what packing alone would give."""
        return len(frame) > len(content) * self._ratio_alone / 2 + 64

    def is_worn_out(self, *, poor: bool) -> bool:
        """Count a frame, and return whether too many in a row were poor."""
        self._misses = self._misses + 1 if poor else 0
        return self._misses >= self.patience


class ReferencePacker:
    """Packs the bodies of one writer, and keeps the references used most recently in memory.

    The first body of a kind is packed alone and the second becomes a reference, so that a kind that
    comes once leaves no reference.
    """

    def __init__(
        self, reference_bytes: int = REFERENCE_BYTES, compressor_bytes: int = COMPRESSOR_BYTES
    ) -> None:
        self._references: LeastUsed[_CachedReference] = LeastUsed(reference_bytes)
        self._compressors: LeastUsed[zstandard.ZstdCompressor] = LeastUsed(compressor_bytes)
        self._alone = compressor_alone()
        self._packed_once = BoundedCache(
            KEYS
        )  # keys without a reference of which a body was packed
        self._new: list[Reference] = []  # to be stored in this transaction
        self._uncommitted: list[int] = []  # the keys of references of this transaction

    @property
    def size(self) -> int:
        """Bytes of memory that references and compressors take."""
        return self._references.size + self._compressors.size

    def pack(self, connection: Connection, bodies: Sequence[Body]) -> list[Packed]:
        """Pack bodies, and store the references that they need."""
        self._load(connection, bodies)
        frames = [self._pack(body) for body in bodies]
        insert_references(connection, self._new)
        self._new.clear()
        return frames

    def commit(self) -> None:
        """Keep the references of the transaction, which was committed."""
        self._uncommitted.clear()

    def discard(self) -> None:
        """Forget the references of the transaction, which was rolled back."""
        for key in self._uncommitted:
            self._references.remove(key)
        self._uncommitted.clear()
        self._new.clear()

    def forget(self) -> None:
        """Forget every reference, because the stored ones may be gone."""
        self._references.clear()
        self._compressors.clear()
        self._packed_once = BoundedCache(KEYS)

    def _load(self, connection: Connection, bodies: Sequence[Body]) -> None:
        """Read the stored references for kinds that this writer meets for the first time."""
        keys = {
            body.key
            for body in bodies
            if self._references.get(body.key) is None and not self._packed_once.get(body.key)
        }
        if not keys:
            return
        columns = body_references.c
        since = min(body.received_at for body in bodies)
        query = select(body_references).where(
            among(columns.key, sorted(keys)), columns.until > since
        )
        for row in connection.execute(query.order_by(columns.until, columns.id)):
            try:
                self._cache(checked(row))
            except DamagedError:  # new events get another reference
                continue

    def _pack(self, body: Body) -> Packed:
        if not body.content or len(body.content) > LARGEST:
            return self._pack_alone(body.content)
        reference = self._references.get(body.key)
        if reference is None and not self._packed_once.get(body.key):
            self._packed_once.put(body.key, 1)
            return self._pack_alone(body.content)
        if reference is None or reference.until <= body.received_at:
            return self._pack_against(self._make_reference(body), body.content)
        packed = self._pack_against(reference, body.content)
        poor = reference.is_poor(body.content, packed[1])
        if reference.is_worn_out(poor=poor):
            patience = min(2 * reference.patience, MOST_PATIENCE)
            return self._pack_against(self._make_reference(body, patience), body.content)
        if not poor:
            return packed
        return min(packed, self._pack_alone(body.content), key=lambda packed: len(packed[1]))

    def _pack_alone(self, content: bytes) -> Packed:
        return ALONE, self._alone.compress(content)

    def _pack_against(self, reference: _CachedReference, content: bytes) -> Packed:
        compressor = self._compressors.get(reference.id)
        if compressor is not None:
            return reference.id, compressor.compress(content)
        compressor = zstandard.ZstdCompressor(
            level=LEVEL, dict_data=reference.dictionary, write_checksum=True
        )
        frame = compressor.compress(content)
        self._compressors.put(reference.id, compressor, compressor.memory_size())
        return reference.id, frame

    def _make_reference(self, body: Body, patience: int = PATIENCE) -> _CachedReference:
        until = (body.received_at // DAY + SPAN_DAYS) * DAY
        reference = reference_of(body.key, until, body.source, body.content)
        self._new.append(reference)
        self._uncommitted.append(body.key)
        return self._cache(reference, patience)

    def _cache(self, reference: Reference, patience: int = PATIENCE) -> _CachedReference:
        # If it has to leave the memory, the next body of its kind looks for it in the store.
        self._packed_once.put(reference.key, 0)
        cached = _CachedReference(reference, patience)
        return self._references.put(reference.key, cached, cached.size)
