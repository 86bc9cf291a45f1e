"""Records that are no events: read, and taken away once they turned out to be events after all."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, delete, select

from strandline.store.intake import Record
from strandline.store.tables import dead_letters

PAGE = 500


@dataclass(frozen=True)
class DeadLetter:
    """A record with its reason; one that came by HTTP or from a file has no topic."""

    id: bytes
    record: Record
    reason: str


def all_dead_letters(connection: Connection) -> Iterator[Sequence[DeadLetter]]:
    """Every dead letter, oldest first, in portions; ones that are removed meanwhile disturb nothing."""
    after = (-1, b"")
    columns = dead_letters.c
    while True:
        later = (columns.received_at > after[0]) | ((columns.received_at == after[0]) & (columns.id > after[1]))
        query = select(dead_letters).where(later).order_by(columns.received_at, columns.id).limit(PAGE)
        rows = connection.execute(query).all()
        if not rows:
            return
        yield [DeadLetter(row.id, _record(row), row.reason) for row in rows]
        after = (rows[-1].received_at, rows[-1].id)


def remove(connection: Connection, letters: Sequence[DeadLetter]) -> None:
    """Take letters away."""
    connection.execute(delete(dead_letters).where(dead_letters.c.id.in_([letter.id for letter in letters])))


def _record(row: Any) -> Record:
    received_at = datetime.fromtimestamp(row.received_at / 1_000_000, UTC)
    if not row.topic:
        return Record(row.body, received_at)
    return Record(row.body, received_at, row.topic, row.partition_id, row.record_offset)
