"""Rows of jobs as the Marquez-compatible API lists them, and the last runs of each.

Without deleted ones.
"""

from collections.abc import Collection, Iterable, Sequence
from functools import cache
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, and_, func, or_, select

from strandline.core.openlineage.names import id_of
from strandline.core.openlineage.run_states import (
    ABORT,
    COMPLETE,
    FAIL,
    LOST,
    NONE,
    RUNNING,
    START,
)
from strandline.errors import NotFoundError
from strandline.store.catalog.lists import is_shown
from strandline.store.catalog.runs import newest_run
from strandline.store.lineage.hidden_nodes import job_is_deleted
from strandline.store.lineage.lookup import job_of
from strandline.store.lineage.run_state import StateColumns
from strandline.store.schema.run_tables import jobs, runs
from strandline.store.sql.id_lists import among

# Marquez's states, and the ranks that each stands for; a run that is LOST has ended without
# success.
RANKS = {
    "NEW": (NONE,),
    "RUNNING": (START, RUNNING),
    "COMPLETED": (COMPLETE,),
    "FAILED": (FAIL,),
    "ABORTED": (ABORT, LOST),
}


def jobs_page(
    connection: Connection,
    namespace: str | None,
    states: Collection[str],
    now: int,
    limit: int,
    offset: int,
) -> tuple[Sequence[Any], int]:
    """The jobs of a namespace, or of all, the last heard of first; and how many there are."""
    wanted: list[ColumnElement[bool]] = [is_shown, ~job_is_deleted(jobs.c.id)]
    if namespace is not None:
        wanted.append(jobs.c.namespace_id == id_of("namespace", namespace))
    if states:
        wanted.append(jobs.c.id.in_(_in_state(connection.dialect.name, states, now)))
    total = connection.scalar(select(func.count()).select_from(jobs).where(*wanted)) or 0
    order = func.coalesce(jobs.c.newest_at, 0).desc(), jobs.c.namespace, jobs.c.name
    return connection.execute(
        select(jobs).where(*wanted).order_by(*order).limit(limit).offset(offset)
    ).all(), total


def _in_state(dialect: str, states: Collection[str], now: int) -> Select[Any]:
    """Select the jobs whose newest run is in one of these states at this moment."""
    ranks = [rank for state in states for rank in RANKS[state]]
    columns = StateColumns.of(dialect)
    return (
        select(runs.c.job_id)
        .select_from(columns.joined())
        .where(runs.c.id.in_(newest_run(dialect)), columns.state(now).in_(ranks))
    )


def job_row(connection: Connection, namespace: str, name: str) -> Any:
    """A job's row; a NotFoundError for one that is unknown or deleted."""
    job_id = job_of(connection, namespace, name)
    row = job_rows(connection, [job_id.id]).get(job_id.id)
    if row is None:
        raise NotFoundError(f"deleted job: {name!r} in namespace {namespace!r}")
    return row


def job_rows(connection: Connection, ids: Iterable[int]) -> dict[int, Any]:
    """The rows of these jobs that are not deleted."""
    query = select(jobs).where(among(jobs.c.id, ids), ~job_is_deleted(jobs.c.id))
    return {row.id: row for row in connection.execute(query)}


def newest_of_each(
    connection: Connection, job_ids: Iterable[int], most: int
) -> dict[int, list[int]]:
    """The ids of the latest runs of each job, the newest first."""
    newest: dict[int, list[int]] = {job: [] for job in job_ids}
    for job, run in connection.execute(
        _newest_of_each(connection.dialect.name, most), {"jobs": list(newest)}
    ):
        newest[job].append(run)
    return newest


@cache
def _newest_of_each(dialect: str, most: int) -> Select[Any]:
    last = select(runs.c.job_id, runs.c.id).where(runs.c.id.in_(newest_run(dialect, "jobs", most)))
    return last.order_by(runs.c.newest_at.desc(), runs.c.id.desc())


def runs_of_job(connection: Connection, job: int, limit: int, offset: int) -> tuple[list[int], int]:
    """The ids of a job's runs, the newest first, and how many there are."""
    own = and_(
        runs.c.job_id == job,
        runs.c.design == 0,
        or_(runs.c.newest_at.is_not(None), runs.c.query == 1),
    )
    total = connection.scalar(select(func.count()).select_from(runs).where(own)) or 0
    order = func.coalesce(runs.c.newest_at, 0).desc(), runs.c.id.desc()
    return list(
        connection.scalars(
            select(runs.c.id).where(own).order_by(*order).limit(limit).offset(offset)
        )
    ), total
