"""The latest run of a job, whatever it reported."""

from collections.abc import Collection
from functools import cache
from typing import Any, NamedTuple

from sqlalchemy import Connection, Select, and_, select

from strandline.store.lineage.recent_runs import MOMENT
from strandline.store.lineage.run_state import run_owners
from strandline.store.lineage.view import View
from strandline.store.schema.run_tables import jobs, runs
from strandline.store.sql.each import for_each


class LatestRun(NamedTuple):
    """The latest run of a job; of several the greatest is the latest."""

    at: int
    since: int
    run: int


def latest_runs(
    connection: Connection, job_ids: Collection[int], view: View
) -> dict[int, LatestRun]:
    """Map each job to its latest run."""
    if not job_ids:
        return {}
    query = _latest(connection.dialect.name, view.past)
    rows = connection.execute(query, {"jobs": list(job_ids), "moment": view.at})
    return {
        row.job_id: LatestRun(min(row.newest_at, view.at), row.first_at, row.id) for row in rows
    }


@cache
def _latest(dialect: str, past: bool) -> Select[Any]:
    run = runs.alias("run")
    own = run.join(
        run_owners, and_(run_owners.c.run_id == run.c.id, run_owners.c.owner_id == run.c.id)
    )
    last = (
        select(run.c.id)
        .select_from(own)
        .where(
            run.c.job_id == jobs.c.id,
            run_owners.c.job_id == jobs.c.id,
            run.c.newest_at.is_not(None),
            run.c.design == 0,
        )
        .order_by(run.c.newest_at.desc(), run.c.id.desc())
        .limit(1)
    )
    if past:
        last = last.where(run.c.first_at <= MOMENT)
    columns = runs.c.job_id, runs.c.id, runs.c.newest_at, runs.c.first_at
    return select(*columns).where(runs.c.id.in_(for_each(dialect, jobs.c.id, "jobs", last)))
