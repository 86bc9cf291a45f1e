"""Records that could not be taken: setting one aside, and reading them to take them again.

A dead record is no event; a later program may know better. An unread one is an event that a fault
of ours kept from being read or stored.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import Connection, delete, func, select

from strandline.core.openlineage.events import trimmed
from strandline.core.openlineage.facets import content_hash
from strandline.core.openlineage.times import moment_of
from strandline.store.ingest.raw_events import insert_set_aside
from strandline.store.ingest.take import Outcome, Record, dead_letter, unread_event, unread_outcome
from strandline.store.schema.received_tables import set_aside
from strandline.store.sql.table_pages import pages_of

Kind = Literal["dead", "unread"]


@dataclass(frozen=True)
class WaitingRecord:
    """A record that was set aside, as it was received but for its secrets."""

    id: bytes
    record: Record


def keep_dead(connection: Connection, record: Record, reason: str) -> Outcome:
    """Set a record aside as dead without looking into it."""
    if record.place:
        reason = f"{reason} (at {record.place})"
    outcome = Outcome("dead", content_hash(trimmed(record.value)), reason)
    insert_set_aside(connection, [dead_letter(record, outcome)])
    return outcome


def keep_unread(connection: Connection, record: Record, error: Exception) -> Outcome:
    """Set a record aside as unread without looking into it."""
    outcome = unread_outcome(record.hash or content_hash(trimmed(record.value)), error)
    insert_set_aside(connection, [unread_event(record, outcome)])
    return outcome


def count_set_aside(connection: Connection, kind: Kind, since: int = 0) -> int:
    """Count the records of a kind that were received after a moment."""
    of_kind = (set_aside.c.kind == kind, set_aside.c.received_at > since)
    return connection.execute(select(func.count()).where(*of_kind)).scalar_one()


def pages_of_records(connection: Connection, kind: Kind) -> Iterator[list[WaitingRecord]]:
    """Yield the records of a kind in pages, oldest first; those of a page may be removed."""
    columns = set_aside.c
    query = select(set_aside).where(columns.kind == kind)
    for page in pages_of(connection, query, columns.received_at, columns.id):
        yield [WaitingRecord(bytes(row.id), _record(row, kind)) for row in page]


def remove_records(connection: Connection, kind: Kind, ids: Collection[bytes]) -> None:
    """Remove records that were taken."""
    if ids:
        taken = (set_aside.c.kind == kind, set_aside.c.id.in_(ids))
        connection.execute(delete(set_aside).where(*taken))


def _record(row: Any, kind: Kind) -> Record:
    record = Record(bytes(row.body), moment_of(row.received_at))
    if row.topic:
        record = record._replace(
            topic=row.topic, partition=row.partition_id, offset=row.record_offset
        )
    if kind == "unread":  # its body is without secrets, so its hash cannot be computed again
        record = record._replace(hash=bytes(row.id))
    return record
