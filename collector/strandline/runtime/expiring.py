"""The thread in which a server drops what is older than STRANDLINE_RETENTION_DAYS: a day at a time, never more often."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from sqlalchemy import Connection, Engine, func, select

from strandline.core.openlineage.times import micros_of
from strandline.runtime.periodic import Turns
from strandline.store.ingest.retention import Expired, expire, has_old_records, keep_writers_out
from strandline.store.schema.tables import raw_events
from strandline.store.sql.shared_settings import agree, agreed

LOOK_SECONDS = 3600.0
A_DAY = timedelta(days=1)


def expire_old(engine: Engine, days: int, now: datetime) -> Expired | None:
    """Drop what is older than so many days, unless there is less than a day of it: then None."""
    before = now - timedelta(days=days)
    with engine.begin() as connection:
        keep_writers_out(connection)  # before anything is read: two servers that look at once would wait for each other
        return expire(connection, before) if _is_due(connection, before) else None


def _is_due(connection: Connection, before: datetime) -> bool:
    """Whether anything is a day older than that: events at any time, all else once a day, as it is not looked up but read."""
    cutoff = micros_of(before - A_DAY)
    oldest = connection.scalar(select(func.min(raw_events.c.received_at)))
    if oldest is not None and oldest < cutoff:
        return True
    if int(agreed(connection).get("looked_before", cutoff)) > cutoff:
        return False
    agree(connection, "looked_before", str(micros_of(before)))
    return has_old_records(connection, cutoff)


def expiring(engine: Engine, days: int, complain: Callable[[str], None]) -> Turns:
    """Looks at once and then every hour until stopped."""

    def look() -> None:
        expire_old(engine, days, datetime.now(UTC))

    return Turns("expiring", look, LOOK_SECONDS, complain, at_once=True)
