"""How far each partition was taken, and by whom: the fence that makes the consumer exactly once.

`claim` makes a partition one owner's; `advance` moves its offset in the batch's own transaction, by compare-and-set on
offset and owner. Whoever was overtaken cannot commit any more: its compare fails, and with it its batch.
"""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, delete, insert, select, update
from sqlalchemy.dialects import postgresql, sqlite

from strandline.errors import FencedError
from strandline.store.schema.tables import crash_marks, offsets


@dataclass(frozen=True, order=True)
class Partition:
    """A partition as one consumer group sees it."""

    topic: str
    number: int
    group: str


@dataclass(frozen=True)
class Claim:
    """What an owner finds: the next offset, and whether the owner before it left without saying so (it may have died)."""

    next_offset: int
    abandoned: bool


def claim(connection: Connection, partition: Partition, token: str, beginning: int) -> Claim:
    """Make the partition `token`'s, from wherever it was taken to (`beginning` if it never was)."""
    dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
    new = {**_key(partition), "next_offset": beginning, "token": token}
    if connection.execute(dialect.insert(offsets).values(new).on_conflict_do_nothing()).rowcount == 1:
        return Claim(beginning, abandoned=False)
    found = connection.execute(select(offsets).where(_is(partition)).with_for_update()).one()
    connection.execute(update(offsets).where(_is(partition)).values(token=token))
    return Claim(found.next_offset, abandoned=found.token not in ("", token))


def is_held(connection: Connection, partition: Partition, token: str) -> bool:
    """Whether somebody else owns the partition, and has not left it in good order."""
    owner = connection.scalar(select(offsets.c.token).where(_is(partition)))
    return owner not in (None, "", token)


def advance(connection: Connection, partition: Partition, token: str, expected: int, next_offset: int) -> None:
    """Move the offset from `expected`, or raise FencedError: then the transaction must not commit."""
    is_mine = and_(_is(partition), offsets.c.token == token, offsets.c.next_offset == expected)
    if connection.execute(update(offsets).where(is_mine).values(next_offset=next_offset)).rowcount != 1:
        raise FencedError(partition.topic, partition.number)


def limit_idleness(connection: Connection, seconds: int) -> None:
    """Let PostgreSQL end this transaction, and free its locks, once its process has been silent for so long."""
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(f"SET LOCAL idle_in_transaction_session_timeout = '{seconds}s'")


def position_of(connection: Connection, partition: Partition, token: str) -> int | None:
    """The next offset as stored, or None where `token` is not the owner (any more)."""
    mine = select(offsets.c.next_offset).where(_is(partition), offsets.c.token == token)
    position: int | None = connection.scalar(mine)
    return position


def release(connection: Connection, partition: Partition, token: str) -> None:
    """Say that the partition was left in good order; nothing if it has another owner by now."""
    connection.execute(update(offsets).where(_is(partition), offsets.c.token == token).values(token=""))


def mark_attempt(connection: Connection, partition: Partition, offset: int) -> int:
    """Note that the record at `offset` is about to be taken alone; returns how often that was tried before."""
    is_marked = _is(partition, crash_marks)
    found = connection.execute(select(crash_marks).where(is_marked)).first()
    before: int = found.crashes if found is not None and found.record_offset == offset else 0
    connection.execute(delete(crash_marks).where(is_marked))
    connection.execute(insert(crash_marks).values(**_key(partition), record_offset=offset, crashes=before + 1))
    return before


def clear_mark(connection: Connection, partition: Partition) -> None:
    """Forget the mark: no record of the partition is suspected any more."""
    connection.execute(delete(crash_marks).where(_is(partition, crash_marks)))


def _key(partition: Partition) -> dict[str, Any]:
    return {"topic": partition.topic, "partition_id": partition.number, "group_name": partition.group}


def _is(partition: Partition, table: Any = offsets) -> ColumnElement[bool]:
    return and_(*(table.c[name] == value for name, value in _key(partition).items()))
