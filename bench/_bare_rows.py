"""The floor of what is stored.

An event's key, its compressed body and one row of 80 bytes, with a key each, and nothing else.

They are written as the store writes (an array a column, a statement a table, a commit a batch), so
what is more than this is what the store says about an event, not how it says it.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count

import zstandard
from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Engine,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    Table,
)

from bench._machine import cpu_micros, stored_bytes
from bench.events import key_of
from strandline.core.openlineage.facets import content_hash
from strandline.store.sql.upsert import insert_values, values_of

_TABLES = MetaData()
_NUMBERS = ("run", "dataset", "first_at", "newest_at", "order_at", "at")
KEYS = Table(
    "bare_keys", _TABLES, Column("hash", LargeBinary, primary_key=True), Column("at", BigInteger)
)
BODIES = Table(
    "bare_bodies",
    _TABLES,
    Column("at", BigInteger),
    Column("hash", LargeBinary),
    Column("event_time", BigInteger),
    Column("reference_id", BigInteger),
    Column("body", LargeBinary),
    PrimaryKeyConstraint("at", "hash"),
)
ROWS = Table(
    "bare_rows",
    _TABLES,
    *(Column(name, BigInteger) for name in _NUMBERS),
    PrimaryKeyConstraint("run", "dataset"),
)


@dataclass(frozen=True)
class Bare:
    """Processor time and bytes an event, collector's side and database together."""

    micros: float
    stored: float


def bare_rows(engine: Engine, server: int, events: Sequence[bytes], size: int) -> Bare:
    """Write them in batches of a size.

    Each body is compressed against the first of its job, as the store does it.
    """
    _TABLES.create_all(engine)
    url = engine.url.render_as_string(hide_password=False)
    packers: dict[bytes, zstandard.ZstdCompressor] = {}
    for body in events:
        if (key := key_of(body)) not in packers:
            packers[key] = _packer(body)
    packs = [packers[key_of(body)].compress for body in events]
    numbers, stored = count(), stored_bytes(url)
    with engine.connect() as connection:
        before, own = cpu_micros(server), time.thread_time()
        for start in range(0, len(events), size):
            batch = events[start : start + size]
            at = next(numbers)
            hashes = [content_hash(body) for body in batch]
            _insert(connection, KEYS, sorted((hash_, at) for hash_ in hashes))
            _insert(
                connection,
                BODIES,
                sorted(
                    (at, hash_, at, 1, pack(body))
                    for hash_, body, pack in zip(
                        hashes, batch, packs[start : start + size], strict=True
                    )
                ),
            )
            _insert(connection, ROWS, [(next(numbers), 1, at, at, at, at) for _ in batch])
            connection.commit()
        spent = (time.thread_time() - own) * 1e6 + cpu_micros(server) - before
    return Bare(spent / len(events), (stored_bytes(url) - stored) / len(events))


def _packer(body: bytes) -> zstandard.ZstdCompressor:
    like = zstandard.ZstdCompressionDict(body, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
    like.precompute_compress(level=1)
    return zstandard.ZstdCompressor(level=1, dict_data=like)


def _insert(connection: Connection, table: Table, rows: Sequence[tuple[object, ...]]) -> None:
    columns = [column.name for column in table.columns]
    values = insert_values(table, columns, connection.dialect.name)
    statement = f"INSERT INTO {table.name} ({', '.join(columns)}) {values}"
    connection.exec_driver_sql(statement, values_of(connection, table, columns, rows))
