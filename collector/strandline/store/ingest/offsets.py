"""The stored offset and owner of each partition: the fence that makes the consumer exactly once.

`claim` makes a partition one owner's. `advance` moves its offset in the transaction of the batch,
by compare-and-set on offset and owner. An owner that was overtaken cannot commit any more, because
its compare fails.
"""

from dataclasses import dataclass
from functools import cache
from typing import Any

from sqlalchemy import Connection, Insert, and_, bindparam, case, select, update
from sqlalchemy.dialects import postgresql, sqlite

from strandline.errors import FencedError
from strandline.store.schema.received_tables import offsets

# A consumer that waits for a partition asks these again and again, so they are built once.
_OF_PARTITION = and_(
    offsets.c.topic == bindparam("of_topic"),
    offsets.c.partition_id == bindparam("of_number"),
    offsets.c.group_name == bindparam("of_group"),
)
_OWNED = and_(_OF_PARTITION, offsets.c.token == bindparam("mine"))
_LOCKED = select(offsets).where(_OF_PARTITION).with_for_update()
_OWNER = select(offsets.c.token).where(_OF_PARTITION)
_POSITION = select(offsets.c.next_offset).where(_OWNED)
_OWN = update(offsets).where(_OF_PARTITION).values(token=bindparam("new"))
_LEAVE = update(offsets).where(_OWNED).values(token="")
_ADVANCE = (
    update(offsets)
    .where(_OWNED, offsets.c.next_offset == bindparam("old"))
    .values(next_offset=bindparam("new"))
)
_SUSPECT = (
    update(offsets)
    .where(_OF_PARTITION)
    .values(
        suspected_offset=bindparam("suspected"),
        crashes=case(
            (offsets.c.suspected_offset == bindparam("suspected"), offsets.c.crashes + 1), else_=1
        ),
    )
    .returning(offsets.c.crashes)
)
_CLEAR = update(offsets).where(_OF_PARTITION).values(suspected_offset=None, crashes=0)


@dataclass(frozen=True, order=True)
class Partition:
    """A partition as one consumer group sees it."""

    topic: str
    number: int
    group: str


@dataclass(frozen=True)
class Claim:
    """The next offset of a claimed partition.

    abandoned: the owner before did not release it, so it may have died.
    """

    next_offset: int
    abandoned: bool


def claim(connection: Connection, partition: Partition, token: str, beginning: int) -> Claim:
    """Give the partition to the owner `token`, at `beginning` if it was never taken before."""
    row = {
        "topic": partition.topic,
        "partition_id": partition.number,
        "group_name": partition.group,
        "next_offset": beginning,
        "token": token,
    }
    if connection.execute(_insert(connection.dialect.name), row).rowcount == 1:
        return Claim(beginning, abandoned=False)
    stored = connection.execute(_LOCKED, _key(partition)).one()
    connection.execute(_OWN, _key(partition) | {"new": token})
    return Claim(stored.next_offset, abandoned=stored.token not in ("", token))


def is_held(connection: Connection, partition: Partition, token: str) -> bool:
    """Return whether another owner holds the partition."""
    owner = connection.scalar(_OWNER, _key(partition))
    return owner not in (None, "", token)


def advance(
    connection: Connection, partition: Partition, token: str, expected: int, next_offset: int
) -> None:
    """Move the offset from `expected`; raise FencedError if the transaction must not commit."""
    moved = _key(partition) | {"mine": token, "old": expected, "new": next_offset}
    if connection.execute(_ADVANCE, moved).rowcount != 1:
        raise FencedError(partition.topic, partition.number)


def limit_idleness(connection: Connection, seconds: int) -> None:
    """Let PostgreSQL end this transaction once its process has been silent for so long."""
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(f"SET LOCAL idle_in_transaction_session_timeout = '{seconds}s'")


def position_of(connection: Connection, partition: Partition, token: str) -> int | None:
    """Return the stored next offset, or None if `token` is not the owner."""
    position: int | None = connection.scalar(_POSITION, _key(partition) | {"mine": token})
    return position


def release(connection: Connection, partition: Partition, token: str) -> None:
    """Leave the partition in good order, unless it has another owner."""
    connection.execute(_LEAVE, _key(partition) | {"mine": token})


def mark_attempt(connection: Connection, partition: Partition, offset: int) -> int:
    """Note that the record at `offset` is about to be taken alone.

    Return how often that was tried before without an end.
    """
    suspected = _key(partition) | {"suspected": offset}
    attempts: int = connection.execute(_SUSPECT, suspected).scalar_one()
    return attempts - 1


def clear_mark(connection: Connection, partition: Partition) -> None:
    """Suspect no record of the partition any more."""
    connection.execute(_CLEAR, _key(partition))


@cache
def _insert(dialect: str) -> Insert:
    inserts: Any = postgresql if dialect == "postgresql" else sqlite
    insert: Insert = inserts.insert(offsets).on_conflict_do_nothing()
    return insert


def _key(partition: Partition) -> dict[str, Any]:
    return {"of_topic": partition.topic, "of_number": partition.number, "of_group": partition.group}
