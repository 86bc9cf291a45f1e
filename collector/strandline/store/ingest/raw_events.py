"""Events as received: which are known, the redacted bodies, dead letters.

And reading them back in the order of receipt.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from operator import itemgetter
from typing import Any, NamedTuple

from sqlalchemy import Connection, Row, Table, delete, text, tuple_
from sqlalchemy import select as select_

from strandline.core.openlineage.times import micros_of, moment_of
from strandline.errors import DamagedError
from strandline.store.schema.received_tables import event_keys, raw_events, set_aside
from strandline.store.sql.compression import Expansion
from strandline.store.sql.upsert import insert_values, values_of

DAY = 86_400 * 10**6
PARTITION_LOCK = 0x7061_7274
PAGE = 500
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
    """An event read back: body as stored, which is as received but for its secrets."""

    hash: bytes
    received_at: int
    body: bytes


def claim(connection: Connection, keys: Sequence[tuple[bytes, int]]) -> set[bytes]:
    """Note the hashes of events with their time of receipt.

    Gives the hashes that were not known.
    """
    if not keys:
        return set()
    columns = ("hash", "received_at")
    if connection.dialect.name == "postgresql":
        statement = f"INSERT INTO event_keys ({', '.join(columns)}) {insert_values(event_keys, columns, 'postgresql')}"
        arrays = values_of(connection, event_keys, columns, sorted(keys))
        result = connection.exec_driver_sql(
            f"{statement} ON CONFLICT DO NOTHING RETURNING hash", arrays
        )
        return {bytes(row[0]) for row in result}
    return set(_claim_on_sqlite(connection, keys))


def _claim_on_sqlite(connection: Connection, keys: Sequence[tuple[bytes, int]]) -> Iterator[bytes]:
    """SQLite has one writer at a time, so asking first is safe, and cheaper than RETURNING a row at a time."""
    hashes = [key[0] for key in keys]
    stored: set[bytes] = set()
    for start in range(0, len(hashes), PAGE):
        page = hashes[start : start + PAGE]
        marks = ", ".join("?" * len(page))
        found = connection.exec_driver_sql(
            f"SELECT hash FROM event_keys WHERE hash IN ({marks})", tuple(page)
        )
        stored.update(row[0] for row in found)
    new = [key for key in keys if key[0] not in stored]
    if new:
        connection.exec_driver_sql("INSERT INTO event_keys (hash, received_at) VALUES (?, ?)", new)
    yield from (key[0] for key in new)


def release(connection: Connection, hashes: Sequence[bytes]) -> None:
    """Forget that these events are known."""
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
    """Make the partition of raw_events for a day (days since 1970) where the database has partitions."""
    if connection.dialect.name != "postgresql":
        return
    connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": PARTITION_LOCK})
    connection.exec_driver_sql(
        f"CREATE TABLE IF NOT EXISTS {partition_name(day)} PARTITION OF raw_events "
        f"FOR VALUES FROM ({day * DAY}) TO ({(day + 1) * DAY})"
    )


def partition_name(day: int) -> str:
    """The partition of a day: raw_events_20261231."""
    date = moment_of(0) + timedelta(days=day)
    return f"raw_events_{date:%Y%m%d}"


def partition_days(connection: Connection) -> list[int]:
    """The days (since 1970) that have a partition, on PostgreSQL."""
    query = (
        "SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = 'raw_events'::regclass"
    )
    names = sorted(name for (name,) in connection.execute(text(query)))
    return [
        (datetime.strptime(f"{name[-8:]}+0000", "%Y%m%d%z") - moment_of(0)).days for name in names
    ]


def events_of(
    connection: Connection, since: int = micros_of(moment_of(0)) - 2**62
) -> Iterator[Stored]:
    """All stored events in the order of receipt, a page at a time."""
    expansion = Expansion(connection)
    after: tuple[int, bytes] = (since, b"")
    key = tuple_(raw_events.c.received_at, raw_events.c.hash)
    while True:
        query = select_(raw_events).where(key > after).order_by(*key.clauses).limit(PAGE)
        rows: Sequence[Row[tuple[object, ...]]] = connection.execute(query).all()
        for row, body in expansion.expanded(rows):
            if isinstance(body, DamagedError):
                raise body
            yield Stored(bytes(row.hash), row.received_at, body)
        if len(rows) < PAGE:
            return
        after = (rows[-1].received_at, bytes(rows[-1].hash))
