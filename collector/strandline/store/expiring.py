"""The thread in which a server drops what is older than STRANDLINE_RETENTION_DAYS: a day at a time, never more often."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from sqlalchemy import Engine, func, select

from strandline.core.times import micros_of
from strandline.store.retention import Expired, expire, keep_writers_out
from strandline.store.tables import raw_events
from strandline.store.turns import Turns

LOOK_SECONDS = 3600.0
A_DAY = timedelta(days=1)


def expire_old(engine: Engine, days: int, now: datetime) -> Expired | None:
    """Drop what is older than so many days, unless there is less than a day of it: then None."""
    before = now - timedelta(days=days)
    with engine.begin() as connection:
        keep_writers_out(connection)  # before anything is read: two servers that look at once would wait for each other
        oldest = connection.scalar(select(func.min(raw_events.c.received_at)))
        if oldest is None or oldest >= micros_of(before - A_DAY):
            return None
        return expire(connection, before)


def expiring(engine: Engine, days: int, complain: Callable[[str], None]) -> Turns:
    """Looks at once and then every hour until stopped."""

    def look() -> None:
        expire_old(engine, days, datetime.now(UTC))

    return Turns("expiring", look, LOOK_SECONDS, complain, at_once=True)
