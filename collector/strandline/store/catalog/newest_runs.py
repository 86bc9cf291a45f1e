"""The latest runs of jobs."""

from collections.abc import Sequence
from functools import cache
from typing import Any

from sqlalchemy import Connection, Select, select

from strandline.store.schema.run_tables import jobs, runs
from strandline.store.sql.each import for_each


def newest_run_ids(connection: Connection, job_ids: Sequence[int]) -> dict[int, int]:
    """The id of the latest run of each job."""
    rows = connection.execute(_newest(connection.dialect.name), {"jobs": list(job_ids)})
    return dict(map(tuple, rows))


@cache
def _newest(dialect: str) -> Select[Any]:
    return select(runs.c.job_id, runs.c.id).where(runs.c.id.in_(newest_run(dialect, "jobs")))


def newest_run(dialect: str, job_id: str | None = None, most: int = 1) -> Select[Any]:
    """The id of the latest run, or of the `most` newest, of each of the given jobs, or of all."""
    run = runs.alias("run")
    of_job = select(run.c.id).where(
        run.c.job_id == jobs.c.id, run.c.newest_at.is_not(None), run.c.design == 0
    )
    last = of_job.order_by(run.c.newest_at.desc(), run.c.id.desc()).limit(most)
    return for_each(dialect, jobs.c.id, job_id, last)
