"""Events that were refused over HTTP, counted by producer and reason."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from operator import itemgetter
from typing import Any

from sqlalchemy import Connection, delete, select, text, tuple_

from strandline.core.openlineage.facets import content_hash
from strandline.core.openlineage.times import moment_of
from strandline.store.schema.received_tables import refused_events
from strandline.store.sql.pages import encode_cursor

MOST_KINDS = 1_000  # pairs of producer and reason, both of which senders can make up
CURSOR = (int, str)
_NEWER = "CASE WHEN excluded.newest_at >= refused_events.newest_at"
_INSERT = text(f"""
INSERT INTO refused_events (id, producer, reason, count, first_at, newest_at, body)
VALUES (:id, :producer, :reason, :count, :first_at, :newest_at, :body)
ON CONFLICT (id) DO UPDATE SET
       count = refused_events.count + excluded.count,
       first_at = CASE WHEN excluded.first_at < refused_events.first_at
                       THEN excluded.first_at ELSE refused_events.first_at END,
       newest_at = {_NEWER} THEN excluded.newest_at ELSE refused_events.newest_at END,
       body = {_NEWER} THEN excluded.body ELSE refused_events.body END
""")


@dataclass(frozen=True, slots=True)
class Refused:
    """The events that were refused of one producer for one reason."""

    producer: str
    reason: str
    count: int
    first_at: int
    newest_at: int
    body: bytes

    def joined(self, other: "Refused") -> "Refused":
        """Return the sum of both, with the newer body."""
        newest = other if other.newest_at >= self.newest_at else self
        return replace(
            newest, count=self.count + other.count, first_at=min(self.first_at, other.first_at)
        )


def add_refused(connection: Connection, refused: Sequence[Refused]) -> None:
    """Add these counts to the stored ones; if there are too many kinds, delete the oldest."""
    if not refused:
        return
    rows = [{"id": _id(kind)} | asdict(kind) for kind in refused]
    # In the order of their keys, so that two servers do not meet in a deadlock.
    connection.execute(_INSERT, sorted(rows, key=itemgetter("id")))
    newest = select(refused_events.c.id).order_by(*_newest_first()).limit(MOST_KINDS)
    others = refused_events.c.id.not_in(newest.scalar_subquery())
    connection.execute(delete(refused_events).where(others))


def refused_page(
    connection: Connection, limit: int, after: tuple[Any, ...] | None = None
) -> tuple[Sequence[dict[str, Any]], str | None]:
    """Return at most `limit` kinds of refused events, newest first, and the next page's cursor."""
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


def _id(kind: Refused) -> bytes:
    return content_hash(f"{kind.producer}\0{kind.reason}".encode())


def _answer(row: Any) -> dict[str, Any]:
    return {
        "producer": row.producer or None,
        "reason": row.reason,
        "count": row.count,
        "firstAt": moment_of(row.first_at),
        "newestAt": moment_of(row.newest_at),
        "body": bytes(row.body).decode("utf-8", "replace"),
    }
