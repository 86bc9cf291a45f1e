"""Dropping what is older than STRANDLINE_RETENTION_DAYS, a day at a time, in a server's thread.

Ages count from the older of the database's clock and the newest event, so that a wrong clock alone
deletes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from sqlalchemy import Connection, Engine, func, select

from strandline.core.openlineage.times import micros_of, moment_of
from strandline.errors import RefusedError
from strandline.metrics import Metrics
from strandline.runtime.periodic import Turns
from strandline.store.catalog.gauges import database_bytes
from strandline.store.ingest.retention import (
    Expired,
    clock_of,
    count_events,
    expire,
    has_old_records,
    keep_writers_out,
)
from strandline.store.ingest.space import give_owed_back, give_room_back
from strandline.store.schema.received_tables import raw_events
from strandline.store.sql.engine import read_from
from strandline.store.sql.shared_settings import agree, agreed

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

Tell = Callable[[Expired, int], None]  # what was dropped, and how many bytes that gave back
LOOK_SECONDS = 3600.0
A_DAY, MICROSECOND = timedelta(days=1), timedelta(microseconds=1)
WAITING = "retention_waits_since"  # in store_settings: a moment in microseconds, or empty


def expire_old(engine: Engine, days: int, *, execute: bool = False) -> Expired | None:
    """Drop what is older than so many days; return None if there is less than a day of it.

    If that is more than half of the events, the clock may be wrong: raise RefusedError unless
    `execute` is set, or the same was refused a day ago.
    """
    with engine.begin() as connection:
        # First, or two servers that look at once would wait for each other.
        keep_writers_out(connection)
        clock = clock_of(connection)
        before = moment_of(clock.now) - timedelta(days=days)
        due = _is_due(connection, before)
        old, all_events = count_events(connection, micros_of(before)) if due else (0, 0)
        if 2 * old <= all_events or execute or _has_waited(connection, clock.database):
            _wait_no_longer(connection)
            return expire(connection, before) if due else None
    raise RefusedError(
        f"{old} of {all_events} events are older than {days} days and would be dropped:"
        " check the database's clock; they are dropped in a day,"
        " or at once by strandline retention --execute",
        code="more_than_half",
    )


def _wait_no_longer(connection: Connection) -> None:
    if agreed(connection).get(WAITING):
        agree(connection, WAITING, "")


def _has_waited(connection: Connection, now: int) -> bool:
    """Return whether a day has gone by since dropping was first refused; note the first time."""
    since = int(agreed(connection).get(WAITING) or now + 1)
    if since > now:  # it is the first time, or the clock was ahead then
        agree(connection, WAITING, str(now))
        return False
    return now - since >= A_DAY / MICROSECOND


def _is_due(connection: Connection, before: datetime) -> bool:
    """Return whether anything is a day older than that.

    Events are looked up each time; everything else is read, so once a day.
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
    """Return the thread that looks at once and then every hour until it is stopped.

    `tell` gets what was dropped and how many bytes that gave back. Without `days` nothing is too
    old; then the thread only gives back the space that a stopped `forget` left.
    """

    def look() -> None:
        give_owed_back(engine)
        if days is not None:
            expire_and_tell(engine, days, tell)

    return Turns("expiring", look, LOOK_SECONDS, complain, at_once=True)


def expire_and_tell(engine: Engine, days: int, tell: Tell, *, execute: bool = False) -> None:
    """Drop what is old, give its room back, and report what was dropped, if anything was."""
    size = _size(engine)
    expired = expire_old(engine, days, execute=execute)
    if expired is None:
        return
    give_room_back(engine, [table for table, rows in expired.rows.items() if rows])
    tell(expired, max(0, size - _size(engine)))


def telling(metrics: Metrics, log: FilteringBoundLogger) -> Tell:
    """Return a function that counts what was dropped, and logs it as a line."""

    def tell(expired: Expired, returned: int) -> None:
        rows = {table: count for table, count in sorted(expired.rows.items()) if count}
        for table, count in rows.items():
            metrics.expired_rows.labels(table).inc(count)
        metrics.returned_bytes.inc(returned)
        log.info("expired", rows=rows, days=list(expired.partitions), returned_bytes=returned)

    return tell


def _size(engine: Engine) -> int:
    with read_from(engine) as connection:
        return database_bytes(connection)
