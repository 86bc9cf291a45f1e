"""The thread in which a server drops what is older than STRANDLINE_RETENTION_DAYS, a day at a time, and gives its room back."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from sqlalchemy import Connection, Engine, func, select

from strandline.core.openlineage.times import micros_of
from strandline.metrics import Metrics
from strandline.runtime.periodic import Turns
from strandline.store.catalog.gauges import database_bytes
from strandline.store.ingest.retention import Expired, expire, has_old_records, keep_writers_out
from strandline.store.ingest.space import give_owed_back, give_room_back
from strandline.store.schema.received_tables import raw_events
from strandline.store.sql.engine import read_from
from strandline.store.sql.shared_settings import agree, agreed

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

Tell = Callable[[Expired, int], None]  # what was dropped, and how many bytes that gave back
LOOK_SECONDS = 3600.0
A_DAY = timedelta(days=1)


def expire_old(engine: Engine, days: int, now: datetime) -> Expired | None:
    """Drop what is older than so many days, unless there is less than a day of it: then None."""
    before = now - timedelta(days=days)
    with engine.begin() as connection:
        keep_writers_out(
            connection
        )  # before anything is read: two servers that look at once would wait for each other
        return expire(connection, before) if _is_due(connection, before) else None


def _is_due(connection: Connection, before: datetime) -> bool:
    """Whether anything is a day older than that.

    Events at any time, all else once a day, as it is not looked up but read.
    """
    cutoff = micros_of(before - A_DAY)
    oldest = connection.scalar(select(func.min(raw_events.c.received_at)))
    if oldest is not None and oldest < cutoff:
        return True
    if int(agreed(connection).get("looked_before", cutoff)) > cutoff:
        return False
    agree(connection, "looked_before", str(micros_of(before)))
    return has_old_records(connection, cutoff)


def expiring(
    engine: Engine, days: int | None, tell: Tell, complain: Callable[[str], None]
) -> Turns:
    """Looks at once and then every hour until stopped.

    `tell` gets what was dropped and how many bytes that gave back.

    Without `days` nothing is too old, and only the space is given back that a forgetting owes that
    was stopped.
    """

    def look() -> None:
        give_owed_back(engine)
        if days is not None:
            expire_and_tell(engine, days, datetime.now(UTC), tell)

    return Turns("expiring", look, LOOK_SECONDS, complain, at_once=True)


def expire_and_tell(engine: Engine, days: int, now: datetime, tell: Tell) -> None:
    """Drop what is old, give its room back, and tell what that was.

    What is not old enough is not told of.
    """
    before = _size(engine)
    if (found := expire_old(engine, days, now)) is None:
        return
    give_room_back(engine, [table for table, rows in found.rows.items() if rows])
    tell(found, max(0, before - _size(engine)))


def telling(metrics: Metrics, log: FilteringBoundLogger) -> Tell:
    """Counts what was dropped, and logs it as a line."""

    def tell(found: Expired, returned: int) -> None:
        rows = {table: count for table, count in sorted(found.rows.items()) if count}
        for table, count in rows.items():
            metrics.expired_rows.labels(table).inc(count)
        metrics.returned_bytes.inc(returned)
        log.info("expired", rows=rows, days=list(found.partitions), returned_bytes=returned)

    return tell


def _size(engine: Engine) -> int:
    with read_from(engine) as connection:
        return database_bytes(connection)
