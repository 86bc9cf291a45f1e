"""The store in numbers, for metrics: runs, letters, size, age.

It is cheap enough to be asked twice a minute.
"""

from dataclasses import dataclass

from sqlalchemy import Connection, func, select, text

from strandline.core.openlineage.run_states import FAIL
from strandline.store.lineage.hierarchy import topmost_runs
from strandline.store.lineage.nested_commands import IS_NAMED_AS_INNER, nested_runs
from strandline.store.lineage.run_state import StateColumns
from strandline.store.schema.export_tables import export_targets
from strandline.store.schema.received_tables import (
    EXPORT_CHANGES,
    numbers,
    raw_events,
    set_aside,
)
from strandline.store.schema.run_tables import jobs, runs
from strandline.store.sql.id_lists import among

DAY = 86_400_000_000


@dataclass(frozen=True, slots=True)
class RunCounts:
    """Runs that go on, and those that were lost or failed within a day."""

    running: int
    lost: int
    failed: int


@dataclass(frozen=True, slots=True)
class StoreSize:
    """The size and age of the store.

    Moments are in microseconds; without events they are None.
    """

    database_bytes: int
    dead_letters: int
    unread_events: int
    oldest_event: int | None
    newest_event: int | None


@dataclass(frozen=True, slots=True)
class TargetState:
    """The number of changes that an export target lacks, and its failures.

    Changes that the target does not want are counted, too.
    """

    name: str
    behind: int
    failures: int


def target_states(connection: Connection) -> list[TargetState]:
    """Every target that is exported to."""
    behind = numbers.c.seq - export_targets.c.cursor
    query = select(export_targets.c.name, behind, export_targets.c.failures).join(
        numbers, numbers.c.name == EXPORT_CHANGES
    )
    return [TargetState(*row) for row in connection.execute(query.order_by(export_targets.c.name))]


def run_counts(connection: Connection, now: int) -> RunCounts:
    """Count the runs of each kind at a moment; a run below another of its kind is no second one.

    The join with jobs lets a key count only the runs of jobs that it sees.
    """
    with_job = runs.join(jobs, jobs.c.id == runs.c.job_id)
    state = StateColumns.of(connection.dialect.name)
    open_runs = (
        select(runs.c.id).select_from(state.joined(with_job)).where(runs.c.ended_at.is_(None))
    )
    running = open_runs.where(state.is_running(now))
    lost = open_runs.where(state.is_lost(now), state.silence.c.silent_at >= now - DAY)
    has_failed = (runs.c.state == FAIL, runs.c.newest_at > now - DAY, runs.c.ended_at >= now - DAY)
    failed = select(runs.c.id).select_from(with_job).where(*has_failed)
    maybe_inner = connection.scalars(failed.where(IS_NAMED_AS_INNER)).all()
    nested = nested_runs(connection, maybe_inner)
    outer = failed.where(~among(runs.c.id, nested)) if nested else failed
    return RunCounts(*(len(topmost_runs(connection, query)) for query in (running, lost, outer)))


def store_size(connection: Connection) -> StoreSize:
    """Return how much is kept, and since when."""
    received = (
        select(func.min(raw_events.c.received_at)),
        select(func.max(raw_events.c.received_at)),
    )
    oldest, newest = (connection.execute(query).scalar_one() for query in received)
    return StoreSize(
        database_bytes(connection),
        _count_set_aside(connection, "dead"),
        _count_set_aside(connection, "unread"),
        oldest,
        newest,
    )


def database_bytes(connection: Connection) -> int:
    """The size of the database; of an SQLite file without its log, which is folded into it."""
    if connection.dialect.name == "postgresql":
        return int(
            connection.execute(text("SELECT pg_database_size(current_database())")).scalar_one()
        )
    pages, size = (
        connection.execute(text(f"PRAGMA {of}")).scalar_one() for of in ("page_count", "page_size")
    )
    return int(pages) * int(size)


def _count_set_aside(connection: Connection, kind: str) -> int:
    return connection.execute(select(func.count()).where(set_aside.c.kind == kind)).scalar_one()
