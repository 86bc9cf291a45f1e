"""The parent run and job of a run.

Its parent, or the root of the whole hierarchy (a statement's Airflow DAG).

A run names its parent and maybe a root. What is taken for the root may have a parent that only its
own events know of, such as a Spark application whose task tells of its DAG. So the way goes on from
there to the top.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

from sqlalchemy import Connection, select

from strandline.store.schema.run_tables import jobs, run_parents, runs
from strandline.store.sql.id_lists import among

LEVELS = 20  # a hierarchy has three or four; one of parents in a circle has no end


class Above(NamedTuple):
    """A run that others belong to, and its job."""

    run: int
    job: int


def above(connection: Connection, below: Iterable[int], how: str) -> dict[int, Above]:
    """The run above each of these: how = parent or root.

    Those that belong to nobody are missing.
    """
    if how == "none":
        return {}
    parents = _next(connection, below, how)
    return _topmost(connection, parents) if how == "root" else parents


def _topmost(connection: Connection, parents: dict[int, Above]) -> dict[int, Above]:
    for _ in range(LEVELS):
        higher = _next(connection, {parent.run for parent in parents.values()}, "root")
        if not higher:
            break
        parents = {run: higher.get(parent.run, parent) for run, parent in parents.items()}
    return parents


def _next(connection: Connection, below: Iterable[int], how: str) -> dict[int, Above]:
    over = run_parents.c.root_run_id if how == "root" else run_parents.c.parent_run_id
    query = select(run_parents.c.run_id, over, runs.c.job_id).join(runs, runs.c.id == over)
    rows = connection.execute(
        query.where(among(run_parents.c.run_id, below), over != run_parents.c.run_id)
    )
    return {run: Above(*rest) for run, *rest in rows}


def parent_jobs(connection: Connection, below: Iterable[int]) -> dict[int, dict[str, Any]]:
    """Return the names of the job of the run above each of these runs that has one."""
    query = (
        select(run_parents.c.run_id, jobs.c.namespace, jobs.c.name)
        .join(jobs, jobs.c.id == run_parents.c.parent_job_id)
        .where(among(run_parents.c.run_id, below))
    )
    return {
        row.run_id: {"namespace": row.namespace, "name": row.name}
        for row in connection.execute(query)
    }
