"""Findings of `strandline check` in a store that answers.

docs/how-to/troubleshoot.md has a remedy for each.

Each look is one question that changes nothing. What belongs to one job alone (a run that failed, a
skipped barrier) is no fault of the collector's operation and is left to alerts.
"""

import shutil
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

from sqlalchemy import Connection, Engine, func, select, text

from strandline.alerts.conditions import Trouble, model_troubles, store_troubles
from strandline.core.versions.strong_weak import ago
from strandline.runtime.follower import Follower
from strandline.settings import PREFIX, Settings
from strandline.store.schema.export_tables import export_parked, export_targets
from strandline.store.schema.received_tables import raw_events
from strandline.store.sql.engine import POOL, file_of, reading

MICRO, DAY = 1_000_000, 86_400
NEARLY_FULL = 512 << 20  # bytes: below 32 MiB nothing is stored
FAILURES = 5  # in a row, as the alert has it
LATE_DAYS = 3  # retention works in whole days
CLOCK_SECONDS, AHEAD_SECONDS = 5.0, 60.0
STALE_SECONDS = 3600
MOST = 3  # of one kind that are named
OPERATIONAL = ("dead_letters", "unread_events", "lost", "staleness", "held")


def store_findings(engine: Engine, settings: Settings) -> Iterator[str]:
    """Every fault of a store whose schema is right."""
    with reading(engine).connect() as connection:
        for look in LOOKS:
            yield from look(connection, settings)
    yield from _troubles(engine, settings)


def _disk(connection: Connection, _: Settings) -> Iterator[str]:
    """PostgreSQL does not say how much room its disk has."""
    file = file_of(connection.engine.url)
    if file is None:
        return
    folder = file.absolute().parent
    if (free := shutil.disk_usage(folder).free) < NEARLY_FULL:
        yield (
            f"the folder {folder} is nearly full: {free >> 20} MiB are left, and below 32 "
            "nothing is stored"
        )


def _connections(connection: Connection, _: Settings) -> Iterator[str]:
    if connection.dialect.name != "postgresql":
        return
    query = (
        "SELECT current_setting('max_connections')::int"
        " - current_setting('superuser_reserved_connections')::int,"
        " (SELECT sum(numbackends) FROM pg_stat_database)::int"
    )
    allowed, used = connection.execute(text(query)).one()
    if allowed - used < POOL:
        yield (
            f"{used} of PostgreSQL's {allowed} connections are in use: processes without one "
            "wait and retry"
        )


def _clocks(connection: Connection, _: Settings) -> Iterator[str]:
    """Yield a fault if PostgreSQL's clock differs from the clock that noted receipts.

    The other clock is a server's or a broker's.
    """
    if connection.dialect.name == "postgresql":
        began = time.time()
        theirs = float(
            connection.execute(text("SELECT extract(epoch FROM clock_timestamp())")).scalar_one()
        )
        off = theirs - began if theirs < began else max(0.0, theirs - time.time())
        if abs(off) > CLOCK_SECONDS:
            yield (
                f"PostgreSQL's clock is {abs(off):.0f} s "
                f"{'ahead of' if off > 0 else 'behind'} this machine's"
            )
    newest = connection.scalar(select(func.max(raw_events.c.received_at)))
    if newest is not None and (ahead := newest / MICRO - time.time()) > AHEAD_SECONDS:
        yield (
            f"the newest event's time of receipt is {ago(ahead)} ahead of this machine's "
            "clock: check the clocks of the broker and the servers"
        )


def _retention(connection: Connection, settings: Settings) -> Iterator[str]:
    oldest = connection.scalar(select(func.min(raw_events.c.received_at)))
    if settings.retention_days is None or oldest is None:
        return
    age = (time.time() - oldest / MICRO) / DAY
    if age > settings.retention_days + LATE_DAYS:
        yield (
            f"the oldest event is {age:.0f} days old, and "
            f"{PREFIX}RETENTION_DAYS is {settings.retention_days}:"
            " nothing expires (no process with this setting runs, or its log says why)"
        )


def _exports(connection: Connection, _: Settings) -> Iterator[str]:
    for row in connection.execute(select(export_targets).order_by(export_targets.c.name)):
        if row.failures > FAILURES:
            yield (
                f"the export to {row.name} has failed {row.failures} times in a row: {row.problem}"
            )
    counted = select(export_parked.c.target, func.count()).group_by(export_parked.c.target)
    for target, count in connection.execute(counted.order_by(export_parked.c.target)):
        yield f"{target} has refused {count} changes, which are parked: strandline exports parked"


def _troubles(engine: Engine, settings: Settings) -> Iterator[str]:
    """Yield the problems that alerts would report now, a few of each kind."""
    now = datetime.now(UTC).timestamp()
    with Follower(engine).as_written() as model:
        troubles, of_tables = model_troubles(
            model, settings.alert_staleness_seconds or STALE_SECONDS, now
        )
    with reading(engine).connect() as connection:
        troubles += store_troubles(connection, of_tables, now)
    for rule in OPERATIONAL:
        yield from _few([trouble for trouble in troubles if trouble.rule == rule])


def _few(troubles: list[Trouble]) -> Iterator[str]:
    yield from (trouble.text for trouble in troubles[:MOST])
    if len(troubles) > MOST:
        yield f"{len(troubles) - MOST} more like that"


LOOKS: tuple[Callable[[Connection, Settings], Iterator[str]], ...] = (
    *(_disk, _connections, _clocks, _retention, _exports),
)
