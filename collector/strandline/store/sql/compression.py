"""What is stored as zstd frames: raw events, and large bodies that are stored once.

After some hundred events a dictionary is trained on them and stored: their frames get half as large. Such a frame is
never without its dictionary: that is written in the transaction of the first frame that needs it.
"""

from typing import NamedTuple

import zstandard
from sqlalchemy import Connection, select

from strandline.core.openlineage.names import id_of
from strandline.store.schema.tables import dictionaries

LEVEL = 1
SAMPLES = 400
SAMPLE_SIZE = 64 << 10
DICTIONARY_SIZE = 96 << 10


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

    def compress(self, body: bytes) -> tuple[int, bytes]:
        """The id of the dictionary used (0: none) and the frame."""
        if self._trained is None:
            self._sample(body)
        if self._trained is None:
            return 0, self._plain.compress(body)
        return self._trained.id, self._trained.compressor.compress(body)

    def shrink(self, body: bytes) -> bytes:
        """The frame of a body that is stored once and read often: without a dictionary."""
        return self._plain.compress(body)

    def store(self, connection: Connection) -> None:
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

    def discard(self) -> None:
        """What was stored is not."""
        self._pending = False

    def forget(self) -> None:
        """Somebody may have deleted the dictionary: look again."""
        self._doubtful, self._stored = self._doubtful or self._stored, False

    def look(self, connection: Connection) -> None:
        """Train another dictionary if somebody took away the one that was stored: there was a reason."""
        if self._doubtful and self._trained is not None and not _is_held(connection, self._trained.id):
            self._trained = None
        self._doubtful = False

    def _sample(self, body: bytes) -> None:
        if len(body) <= SAMPLE_SIZE:
            self._samples.append(body)
        if len(self._samples) >= SAMPLES:
            self._trained, self._samples = _train(self._samples), []


def _is_held(connection: Connection, id_: int) -> bool:
    return connection.execute(select(dictionaries.c.id).where(dictionaries.c.id == id_)).first() is not None


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
    """The body that `shrink` made a frame of; one that was stored as it came is given back as it is.

    >>> expand(Compression().shrink(b'{"fields": []}')), expand(b"{}")
    (b'{"fields": []}', b'{}')
    """
    return zstandard.decompress(stored) if stored[:4] == zstandard.FRAME_HEADER else bytes(stored)


class Expansion:
    """Reads frames again; dictionaries are read once."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._decompressors = {0: zstandard.ZstdDecompressor()}

    def expand(self, dictionary_id: int, frame: bytes) -> bytes:
        """The body of a frame."""
        if dictionary_id not in self._decompressors:
            query = select(dictionaries.c.body).where(dictionaries.c.id == dictionary_id)
            body = zstandard.ZstdCompressionDict(self._connection.execute(query).scalar_one())
            self._decompressors[dictionary_id] = zstandard.ZstdDecompressor(dict_data=body)
        return self._decompressors[dictionary_id].decompress(frame)
