"""How far each partition was taken, and by whom: the fence that makes the consumer exactly once.

`claim` makes a partition one owner's; `advance` moves its offset in the batch's own transaction, by
compare-and-set on offset and owner. Whoever was overtaken cannot commit any more: its compare
fails, and with it its batch.
"""

from dataclasses import dataclass
from functools import cache
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Insert,
    Table,
    and_,
    bindparam,
    delete,
    insert,
    select,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite

from strandline.errors import FencedError
from strandline.store.schema.tables import crash_marks, offsets


def _is_one(table: Table) -> ColumnElement[bool]:
    """Whether a row is of the partition that `_key` names."""
    names = {"topic": "of_topic", "partition_id": "of_number", "group_name": "of_group"}
    return and_(*(table.c[column] == bindparam(name) for column, name in names.items()))


# A consumer that waits for a partition asks these again and again: they are built once.
_IS_IT, _IS_ITS_MARK = _is_one(offsets), _is_one(crash_marks)
_IS_MINE = and_(_IS_IT, offsets.c.token == bindparam("mine"))
_FOUND = select(offsets).where(_IS_IT).with_for_update()
_OWNER = select(offsets.c.token).where(_IS_IT)
_POSITION = select(offsets.c.next_offset).where(_IS_MINE)
_OWN = update(offsets).where(_IS_IT).values(token=bindparam("new"))
_LEAVE = update(offsets).where(_IS_MINE).values(token="")
_ADVANCE = (
    update(offsets)
    .where(_IS_MINE, offsets.c.next_offset == bindparam("old"))
    .values(next_offset=bindparam("new"))
)
_MARK = select(crash_marks.c.record_offset, crash_marks.c.crashes).where(_IS_ITS_MARK)
_UNMARK = delete(crash_marks).where(_IS_ITS_MARK)


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
    new = {**_columns(partition), "next_offset": beginning, "token": token}
    if connection.execute(_begin(connection.dialect.name), new).rowcount == 1:
        return Claim(beginning, abandoned=False)
    found = connection.execute(_FOUND, _key(partition)).one()
    connection.execute(_OWN, _key(partition) | {"new": token})
    return Claim(found.next_offset, abandoned=found.token not in ("", token))


def is_held(connection: Connection, partition: Partition, token: str) -> bool:
    """Whether somebody else owns the partition, and has not left it in good order."""
    owner = connection.scalar(_OWNER, _key(partition))
    return owner not in (None, "", token)


def advance(
    connection: Connection, partition: Partition, token: str, expected: int, next_offset: int
) -> None:
    """Move the offset from `expected`, or raise FencedError.

    Then the transaction must not commit.
    """
    moved = _key(partition) | {"mine": token, "old": expected, "new": next_offset}
    if connection.execute(_ADVANCE, moved).rowcount != 1:
        raise FencedError(partition.topic, partition.number)


def limit_idleness(connection: Connection, seconds: int) -> None:
    """Let PostgreSQL end this transaction, and free its locks, once its process has been silent for so long."""
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(f"SET LOCAL idle_in_transaction_session_timeout = '{seconds}s'")


def position_of(connection: Connection, partition: Partition, token: str) -> int | None:
    """The next offset as stored, or None where `token` is not the owner (any more)."""
    position: int | None = connection.scalar(_POSITION, _key(partition) | {"mine": token})
    return position


def release(connection: Connection, partition: Partition, token: str) -> None:
    """Say that the partition was left in good order; nothing if it has another owner by now."""
    connection.execute(_LEAVE, _key(partition) | {"mine": token})


def mark_attempt(connection: Connection, partition: Partition, offset: int) -> int:
    """Note that the record at `offset` is about to be taken alone.

    Returns how often that was tried before.
    """
    found = connection.execute(_MARK, _key(partition)).first()
    before: int = found.crashes if found is not None and found.record_offset == offset else 0
    connection.execute(_UNMARK, _key(partition))
    connection.execute(
        insert(crash_marks), _columns(partition) | {"record_offset": offset, "crashes": before + 1}
    )
    return before


def clear_mark(connection: Connection, partition: Partition) -> None:
    """Forget the mark: no record of the partition is suspected any more."""
    connection.execute(_UNMARK, _key(partition))


@cache
def _begin(dialect: str) -> Insert:
    inserts: Any = postgresql if dialect == "postgresql" else sqlite
    beginning: Insert = inserts.insert(offsets).on_conflict_do_nothing()
    return beginning


def _columns(partition: Partition) -> dict[str, Any]:
    return {
        "topic": partition.topic,
        "partition_id": partition.number,
        "group_name": partition.group,
    }


def _key(partition: Partition) -> dict[str, Any]:
    return {"of_topic": partition.topic, "of_number": partition.number, "of_group": partition.group}
