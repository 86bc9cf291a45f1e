"""What is stored as zstd frames: raw events, and large bodies that are stored once.

An event is packed against an earlier one of its kind (`references`). One that has none before it is
packed alone, and after some hundred of those a dictionary is trained on them: their frames get half
as large. A frame is never without what it was packed with: that is written in the transaction of
the first frame that needs it.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

import zstandard
from sqlalchemy import Connection, Row, select

from strandline.core.changes.memory import BoundedCache
from strandline.core.openlineage.names import id_of
from strandline.errors import DamagedError
from strandline.store.schema.tables import dictionaries
from strandline.store.sql.id_lists import among
from strandline.store.sql.least_used import LeastUsed
from strandline.store.sql.references import LEVEL, Body, Packed, References, checked
from strandline.store.sql.small_bodies import MARK, SmallPacker, small_expander

SAMPLES = 400
SAMPLE_SIZE = 64 << 10
DICTIONARY_SIZE = 96 << 10
EXPANSION_BYTES = 32 << 20
SMALL = 20_000  # packed small bodies that a writer remembers
AT_ONCE = 200  # rows that are looked at for their dictionaries together


class Trained(NamedTuple):
    """A dictionary and its compressor."""

    id: int
    body: bytes
    compressor: zstandard.ZstdCompressor


class Compression:
    """The compressor of one writer."""

    def __init__(self) -> None:
        self._plain = zstandard.ZstdCompressor(level=LEVEL)
        self._samples: list[bytes] = []
        self._trained: Trained | None = None
        self._stored = False
        self._pending = False
        self._doubtful = False
        self._remembered = BoundedCache(SMALL)
        self.small = SmallPacker()
        self.references = References()

    def pack(self, connection: Connection, bodies: Sequence[Body]) -> list[Packed]:
        """The id of the dictionary used (0: none) and the frame of each.

        What they need is written.
        """
        self.references.look_up(connection, bodies)
        packed = [self.references.pack(body, self._compress) for body in bodies]
        self._store(connection)
        self.references.store(connection)
        return packed

    def _compress(self, body: bytes) -> Packed:
        if self._trained is None:
            self._sample(body)
        if self._trained is None:
            return 0, self._plain.compress(body)
        return self._trained.id, self._trained.compressor.compress(body)

    def shrink(self, body: bytes) -> bytes:
        """The frame of a body that is stored once and read often: without a dictionary."""
        return self._plain.compress(body)

    def shrink_small(self, hash_: bytes, body: bytes) -> bytes:
        """What is stored of a small body with this hash.

        Most facets say in every event what they said in the last one.
        """
        found: bytes | None = self._remembered.get(hash_)
        if found is None:
            found = self.small.pack(body)
            self._remembered.put(hash_, found)
        return found

    def _store(self, connection: Connection) -> None:
        """Write the dictionary unless a committed transaction did."""
        if self._trained is None or self._stored:
            return
        if not _is_held(connection, self._trained.id):
            statement = f"INSERT INTO dictionaries (id, body) VALUES ({_marks(connection)}) ON CONFLICT DO NOTHING"
            connection.exec_driver_sql(statement, (self._trained.id, self._trained.body))
        self._pending = True

    def commit(self) -> None:
        """What was stored is stored."""
        self._stored, self._pending = self._stored or self._pending, False
        self.references.commit()

    def discard(self) -> None:
        """What was stored is not."""
        self._pending = False
        self.references.discard()

    def forget(self) -> None:
        """Somebody may have deleted the dictionary, or references: look again."""
        self._doubtful, self._stored = self._doubtful or self._stored, False
        self.references.forget()

    def look(self, connection: Connection) -> None:
        """Train another dictionary if somebody took away the one that was stored.

        There was a reason.
        """
        if (
            self._doubtful
            and self._trained is not None
            and not _is_held(connection, self._trained.id)
        ):
            self._trained = None
        self._doubtful = False

    def _sample(self, body: bytes) -> None:
        if len(body) <= SAMPLE_SIZE:
            self._samples.append(body)
        if len(self._samples) >= SAMPLES:
            self._trained, self._samples = _train(self._samples), []


def _is_held(connection: Connection, id_: int) -> bool:
    return (
        connection.execute(select(dictionaries.c.id).where(dictionaries.c.id == id_)).first()
        is not None
    )


def _train(samples: list[bytes]) -> Trained | None:
    try:
        trained = zstandard.train_dictionary(DICTIONARY_SIZE, list(samples), level=LEVEL)
    except zstandard.ZstdError:  # too little in common
        return None
    body = trained.as_bytes()
    # PostgreSQL and SQLite know it by its content, so two writers that learned the same share it.
    compressor = zstandard.ZstdCompressor(level=LEVEL, dict_data=trained)
    return Trained(id_of("dictionary", body.hex()), body, compressor)


def _marks(connection: Connection) -> str:
    return "%s, %s" if connection.dialect.name == "postgresql" else "?, ?"


def expand(stored: bytes) -> bytes:
    """The body that `shrink` or `shrink_small` made a frame of.

    One that was stored as it came is given back as it is.

    >>> expand(Compression().shrink(b'{"fields": []}')), expand(b"{}")
    (b'{"fields": []}', b'{}')
    """
    if stored[:4] == zstandard.FRAME_HEADER:
        return zstandard.decompress(stored)
    return small_expander()(bytes(stored)) if stored[:4] == MARK else bytes(stored)


def expander() -> Callable[[bytes], bytes]:
    """`expand` for many bodies in one thread: twenty times as fast, as it is prepared once."""
    decompress, expand_small = zstandard.ZstdDecompressor().decompress, small_expander()

    def expanded(stored: bytes) -> bytes:
        if stored[:4] == zstandard.FRAME_HEADER:
            return decompress(stored)
        return expand_small(bytes(stored)) if stored[:4] == MARK else bytes(stored)

    return expanded


class Expansion:
    """Reads frames again; a dictionary is read once, unless too many others were needed since."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._alone = zstandard.ZstdDecompressor()
        self._decompressors: LeastUsed[zstandard.ZstdDecompressor] = LeastUsed(EXPANSION_BYTES)

    def expand(self, dictionary_id: int, frame: bytes) -> bytes:
        """The body of a frame; a DamagedError where it cannot be read, or not with what is stored."""
        decompressor = self._decompressor(dictionary_id)
        try:
            return decompressor.decompress(frame)
        except zstandard.ZstdError as error:
            raise DamagedError(
                f"a frame of dictionary {dictionary_id} is damaged: {error}"
            ) from error

    def _decompressor(self, dictionary_id: int) -> zstandard.ZstdDecompressor:
        found = self._decompressors.get(dictionary_id) if dictionary_id else self._alone
        if found is None:
            self._read([dictionary_id])
            found = self._decompressors.get(dictionary_id)
        if found is None:
            raise DamagedError(f"dictionary {dictionary_id} is missing")
        return found

    def expanded(self, rows: Iterable[Row[Any]]) -> Iterator[tuple[Row[Any], bytes | DamagedError]]:
        """Rows of raw_events with their bodies, or why one cannot be read.

        Dictionaries are read for many rows at once.
        """
        remaining = iter(rows)
        while page := list(islice(remaining, AT_ONCE)):
            self.prepare({row.dictionary_id for row in page})
            for row in page:
                yield row, self._expanded(row)

    def _expanded(self, row: Row[Any]) -> bytes | DamagedError:
        try:
            return self.expand(row.dictionary_id, row.body)
        except DamagedError as error:
            return DamagedError(f"event {bytes(row.hash).hex()} cannot be read: {error}")

    def prepare(self, ids: Iterable[int]) -> None:
        """Read those dictionaries that are still to be read.

        What is wrong with one is reported when it is needed.
        """
        unread = [one for one in ids if one and self._decompressors.get(one) is None]
        self._read(unread, damaged_too=False)

    def damaged(self, ids: Iterable[int]) -> set[int]:
        """Which of these dictionaries are missing or damaged."""
        found: set[int] = set()
        for one in sorted(set(ids) - {0}):
            try:
                self._decompressor(one)
            except DamagedError:
                found.add(one)
        return found

    def _read(self, ids: Sequence[int], *, damaged_too: bool = True) -> None:
        query = select(dictionaries).where(among(dictionaries.c.id, ids))
        for row in self._connection.execute(query).all() if ids else ():
            try:
                dictionary = dictionary_of(row)
            except DamagedError:
                if damaged_too:
                    raise
                continue
            decompressor = zstandard.ZstdDecompressor(dict_data=dictionary)
            self._decompressors.put(
                row.id, decompressor, decompressor.memory_size() + 2 * len(dictionary)
            )


def dictionary_of(row: Row[Any]) -> zstandard.ZstdCompressionDict:
    """What frames are read with.

    A DamagedError if the row is a reference and not what was written.
    """
    if row.key is None:
        return zstandard.ZstdCompressionDict(bytes(row.body))
    return checked(row).dictionary
