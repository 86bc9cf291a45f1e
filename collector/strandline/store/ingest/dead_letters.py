"""Dead letters: adding one for a record that no taking survives, and taking those again that may be events by now."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, delete, select, tuple_

from strandline.core.openlineage.facets import content_hash
from strandline.core.openlineage.times import moment_of
from strandline.store.ingest.raw_events import insert_dead_letters
from strandline.store.ingest.take import Outcome, Record, dead_letter
from strandline.store.schema.tables import dead_letters

PAGE = 500


@dataclass(frozen=True)
class Letter:
    """A dead letter as the record that it was."""

    id: bytes
    record: Record


def bury(connection: Connection, record: Record, reason: str) -> Outcome:
    """Make a dead letter of a record without looking into it."""
    outcome = Outcome(
        "dead",
        content_hash(record.value),
        f"{reason} (at {record.place})" if record.place else reason,
    )
    insert_dead_letters(connection, [dead_letter(record, outcome)])
    return outcome


def pages_of_letters(connection: Connection) -> Iterator[Sequence[Letter]]:
    """Every dead letter, oldest first, in pages.

    Removing those of a page disturbs none of the next.
    """
    key = tuple_(dead_letters.c.received_at, dead_letters.c.id)
    query = select(dead_letters).order_by(*key.clauses).limit(PAGE)
    rows = connection.execute(query).all()
    while rows:
        yield [Letter(bytes(row.id), _record(row)) for row in rows]
        rows = connection.execute(
            query.where(key > tuple_(rows[-1].received_at, rows[-1].id))
        ).all()


def remove(connection: Connection, letters: Sequence[Letter]) -> None:
    """Take letters away."""
    if letters:
        connection.execute(
            delete(dead_letters).where(dead_letters.c.id.in_([letter.id for letter in letters]))
        )


def _record(row: Any) -> Record:
    if not row.topic:
        return Record(bytes(row.body), moment_of(row.received_at))
    return Record(
        bytes(row.body), moment_of(row.received_at), row.topic, row.partition_id, row.record_offset
    )
