"""Events that a fault of ours kept from being read or stored.

Kept as they came, and taken again by the next program.
"""

from collections.abc import Iterator, Sequence

from sqlalchemy import Connection, delete, func, select, tuple_

from strandline.core.openlineage.events import trimmed
from strandline.core.openlineage.facets import content_hash
from strandline.core.openlineage.times import moment_of
from strandline.store.ingest.raw_events import insert_unread_events
from strandline.store.ingest.take import Outcome, Record, unread_event, unread_outcome
from strandline.store.schema.tables import unread_events

PAGE = 500


def keep(connection: Connection, record: Record, error: Exception) -> Outcome:
    """Set a record aside without looking into it."""
    outcome = unread_outcome(record.hash or content_hash(trimmed(record.value)), error)
    insert_unread_events(connection, [unread_event(record, outcome)])
    return outcome


def unread_count(connection: Connection) -> int:
    """How many events are kept unread."""
    return connection.scalar(select(func.count()).select_from(unread_events)) or 0


def pages_of_unread(connection: Connection) -> Iterator[Sequence[Record]]:
    """Every event that is kept unread, oldest first, in pages.

    Removing those of a page disturbs none of the next.
    """
    key = tuple_(unread_events.c.received_at, unread_events.c.hash)
    query = select(unread_events).order_by(*key.clauses).limit(PAGE)
    rows = connection.execute(query).all()
    while rows:
        yield [
            Record(
                bytes(row.body),
                moment_of(row.received_at),
                row.topic or None,
                row.partition_id if row.topic else None,
                row.record_offset if row.topic else None,
                hash=bytes(row.hash),
            )
            for row in rows
        ]
        rows = connection.execute(
            query.where(key > tuple_(rows[-1].received_at, rows[-1].hash))
        ).all()


def remove(connection: Connection, hashes: Sequence[bytes]) -> None:
    """Take events away that were read."""
    if hashes:
        connection.execute(delete(unread_events).where(unread_events.c.hash.in_(hashes)))
