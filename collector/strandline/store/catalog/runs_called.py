"""Runs by the ids of their rows, or as they are called."""

from collections.abc import Iterable
from typing import Any

from sqlalchemy import Connection, select

from strandline.core.openlineage.names import run_id_of
from strandline.errors import NotFoundError
from strandline.store.catalog.lists import runs_called
from strandline.store.lineage.run_state import with_state
from strandline.store.schema.run_tables import jobs, runs
from strandline.store.sql.id_lists import among


def runs_by_id(connection: Connection, ids: Iterable[int]) -> dict[int, Any]:
    """Rows of runs with what a state needs, and namespace and name of each one's job."""
    query = (
        with_state(connection.dialect.name)
        .add_columns(jobs.c.namespace.label("job_namespace"), jobs.c.name.label("job_name"))
        .join(jobs, jobs.c.id == runs.c.job_id)
        .where(among(runs.c.id, ids))
    )
    return {row.id: row for row in connection.execute(query)}


def run_called(connection: Connection, run_id: str) -> int:
    """The id of the run's row; a NotFoundError for a run that is unknown."""
    row_id: int | None = connection.scalar(
        select(runs.c.id).where(runs.c.id == run_id_of(run_id, "", ""), runs.c.design == 0)
    )
    if row_id is not None:
        return row_id
    rows = runs_called(connection, run_id)
    if not rows:
        raise NotFoundError(f"unknown run: {run_id!r}")
    newest: int = max(rows, key=lambda row: row.newest_at or 0).id
    return newest
