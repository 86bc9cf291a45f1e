"""Events that were rejected over HTTP.

Their sender was answered, and whoever looks here sees how many, whose and why.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from operator import itemgetter
from typing import Any

from sqlalchemy import Connection, delete, select, text, tuple_

from strandline.core.openlineage.facets import content_hash
from strandline.core.openlineage.times import moment_of
from strandline.store.schema.received_tables import refused_events
from strandline.store.sql.pages import encode_cursor

MOST_KINDS = 1_000  # pairs of producer and reason: senders make up both
CURSOR = (int, str)
_OF_THE_NEWEST = "CASE WHEN excluded.newest_at >= refused_events.newest_at THEN excluded.{0} ELSE refused_events.{0} END"


@dataclass(frozen=True, slots=True)
class Refused:
    """What was refused of one producer for one reason."""

    producer: str
    reason: str
    count: int
    first_at: int
    newest_at: int
    body: bytes

    def joined(self, other: "Refused") -> "Refused":
        """Both together, whichever came first.

        With the newest body, of two at one moment the other's.
        """
        newest = other if other.newest_at >= self.newest_at else self
        return replace(
            newest, count=self.count + other.count, first_at=min(self.first_at, other.first_at)
        )


def add_refused(connection: Connection, refused: Sequence[Refused]) -> None:
    """Count these, also where newer ones were written before.

    Of too many kinds the oldest are forgotten.
    """
    statement = text(
        "INSERT INTO refused_events (id, producer, reason, count, first_at, newest_at, body)"
        " VALUES (:id, :producer, :reason, :count, :first_at, :newest_at, :body)"
        " ON CONFLICT (id) DO UPDATE SET count = refused_events.count + excluded.count,"
        " first_at = CASE WHEN excluded.first_at < refused_events.first_at THEN excluded.first_at ELSE refused_events.first_at END,"
        f" newest_at = {_OF_THE_NEWEST.format('newest_at')}, body = {_OF_THE_NEWEST.format('body')}"
    )
    rows = [{"id": _id(one)} | asdict(one) for one in refused]
    if rows:
        connection.execute(
            statement, sorted(rows, key=itemgetter("id"))
        )  # two servers do not meet in a deadlock
        kept = select(refused_events.c.id).order_by(*_newest_first()).limit(MOST_KINDS)
        connection.execute(
            delete(refused_events).where(refused_events.c.id.not_in(kept.scalar_subquery()))
        )


def refused_page(
    connection: Connection, limit: int, after: tuple[Any, ...] | None = None
) -> tuple[Sequence[dict[str, Any]], str | None]:
    """At most `limit` kinds of refused events, the newest first, and the cursor of the next page if there is one."""
    query = select(refused_events).order_by(*_newest_first())
    if after is not None:
        key = tuple_(refused_events.c.newest_at, refused_events.c.id)
        query = query.where(key < tuple_(after[0], bytes.fromhex(after[1])))
    rows = connection.execute(query.limit(limit + 1)).all()
    cursor = None
    if len(rows) > limit:
        cursor = encode_cursor([rows[limit - 1].newest_at, bytes(rows[limit - 1].id).hex()])
    return [_answer(row) for row in rows[:limit]], cursor


def _newest_first() -> tuple[Any, ...]:
    return refused_events.c.newest_at.desc(), refused_events.c.id.desc()


def _id(one: Refused) -> bytes:
    return content_hash(f"{one.producer}\0{one.reason}".encode())


def _answer(row: Any) -> dict[str, Any]:
    return {
        "producer": row.producer or None,
        "reason": row.reason,
        "count": row.count,
        "firstAt": moment_of(row.first_at),
        "newestAt": moment_of(row.newest_at),
        "body": bytes(row.body).decode("utf-8", "replace"),
    }
