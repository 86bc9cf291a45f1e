"""Events as received: their hashes, their redacted bodies, and reading them back."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from operator import itemgetter
from typing import Any, NamedTuple

from sqlalchemy import Connection, Table, delete, select, text

from strandline.core.openlineage.times import moment_of
from strandline.errors import DamagedError
from strandline.store.schema.received_tables import event_keys, raw_events, set_aside
from strandline.store.sql.compression import Expansion
from strandline.store.sql.table_pages import pages_of
from strandline.store.sql.upsert import insert_values, values_of

DAY = 86_400 * 10**6
PARTITION_LOCK = 0x7061_7274
SQLITE_PARAMETERS = 30_000  # of a statement; SQLite takes 32,766
_KEY = itemgetter(0, 1)  # of a RawEvent: received_at, hash


class RawEvent(NamedTuple):
    """A row of raw_events."""

    received_at: int
    hash: bytes
    event_time: int
    reference_id: int
    body: bytes


class SetAside(NamedTuple):
    """A row of set_aside."""

    kind: str
    id: bytes
    received_at: int
    topic: str
    partition_id: int
    record_offset: int
    reason: str
    body: bytes


class Stored(NamedTuple):
    """An event read back, as it was received but for its secrets."""

    hash: bytes
    received_at: int
    body: bytes


def claim(connection: Connection, keys: Sequence[tuple[bytes, int]]) -> set[bytes]:
    """Store the hashes of events with their times of receipt; return the hashes that are new."""
    if not keys:
        return set()
    if connection.dialect.name == "postgresql":
        columns = ("hash", "received_at")
        values = insert_values(event_keys, columns, "postgresql")
        statement = (
            f"INSERT INTO event_keys (hash, received_at) {values}"
            " ON CONFLICT DO NOTHING RETURNING hash"
        )
        arrays = values_of(connection, event_keys, columns, sorted(keys))
        return {bytes(row[0]) for row in connection.exec_driver_sql(statement, arrays)}
    return _claim_on_sqlite(connection, keys)


def _claim_on_sqlite(connection: Connection, keys: Sequence[tuple[bytes, int]]) -> set[bytes]:
    """Store new hashes; with one writer at a time, asking first is safe and fast."""
    hashes = [hash_ for hash_, _ in keys]
    stored: set[bytes] = set()
    for start in range(0, len(hashes), SQLITE_PARAMETERS):
        page = hashes[start : start + SQLITE_PARAMETERS]
        query = f"SELECT hash FROM event_keys WHERE hash IN ({', '.join('?' * len(page))})"
        stored.update(row[0] for row in connection.exec_driver_sql(query, tuple(page)))
    new = [key for key in keys if key[0] not in stored]
    if new:
        connection.exec_driver_sql("INSERT INTO event_keys (hash, received_at) VALUES (?, ?)", new)
    return {hash_ for hash_, _ in new}


def release(connection: Connection, hashes: Sequence[bytes]) -> None:
    """Forget the hashes of events, so that they may come again."""
    connection.execute(delete(event_keys).where(event_keys.c.hash.in_(hashes)))


def insert_events(connection: Connection, events: Sequence[RawEvent]) -> None:
    """Insert the bodies of new events in the order of their key.

    A batch shares its moment, and its hashes come in any order.
    """
    _insert(connection, raw_events, RawEvent._fields, sorted(events, key=_KEY))


def insert_set_aside(connection: Connection, rows: Sequence[SetAside]) -> None:
    """Set records aside; one that is there already stays as it is."""
    _insert(connection, set_aside, SetAside._fields, rows)


def _insert(
    connection: Connection, table: Table, columns: Sequence[str], rows: Sequence[tuple[Any, ...]]
) -> None:
    if not rows:
        return
    values = insert_values(table, columns, connection.dialect.name)
    statement = f"INSERT INTO {table.name} ({', '.join(columns)}) {values} ON CONFLICT DO NOTHING"
    connection.exec_driver_sql(statement, values_of(connection, table, columns, rows))


def make_partition(connection: Connection, day: int) -> None:
    """Create the partition of raw_events for a day (since 1970) if the database has partitions."""
    if connection.dialect.name != "postgresql":
        return
    connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": PARTITION_LOCK})
    connection.exec_driver_sql(
        f"CREATE TABLE IF NOT EXISTS {partition_name(day)} PARTITION OF raw_events "
        f"FOR VALUES FROM ({day * DAY}) TO ({(day + 1) * DAY})"
    )


def partition_name(day: int) -> str:
    """Return the name of the partition of a day: raw_events_20261231."""
    date = moment_of(0) + timedelta(days=day)
    return f"raw_events_{date:%Y%m%d}"


def partition_days(connection: Connection) -> list[int]:
    """Return the days (since 1970) that have a partition, on PostgreSQL."""
    moments = [
        datetime.strptime(f"{name[-8:]}+0000", "%Y%m%d%z") for name in partition_names(connection)
    ]
    return [(moment - moment_of(0)).days for moment in moments]


def partition_names(connection: Connection) -> list[str]:
    """Return the names of the partitions of raw_events, oldest first, on PostgreSQL."""
    query = (
        "SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = 'raw_events'::regclass"
    )
    return sorted(name for (name,) in connection.execute(text(query)))


def events_of(connection: Connection) -> Iterator[Stored]:
    """Yield the stored events in the order of receipt.

    Raise DamagedError at the first one that cannot be read.
    """
    expansion = Expansion(connection)
    query = select(raw_events)
    for page in pages_of(connection, query, raw_events.c.received_at, raw_events.c.hash):
        for row, body in expansion.expanded(page):
            if isinstance(body, DamagedError):
                raise body
            yield Stored(bytes(row.hash), row.received_at, body)
