"""Runs of a command that another command consists of.

Lists, graphs and the search show the outer one alone.

The stock Spark listener reports a CREATE or REPLACE TABLE .. AS SELECT twice under one application:
as `APP.atomic_create_table_as_select.DB_TABLE`, and within its time as
`APP.append_data.CATALOG_DB_TABLE` (or an overwrite), with the same inputs and output. A plain
INSERT has the inner one's name too, so it is runs that are nested, never a name.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

from sqlalchemy import Connection, Select, or_, select

from strandline.core.changes.extraction import SINK
from strandline.core.openlineage.names import id_of
from strandline.store.lineage.recent_runs import JobEdge
from strandline.store.lineage.run_state import MOMENT
from strandline.store.schema.run_tables import jobs, run_parents, runs
from strandline.store.sql.each import for_each
from strandline.store.sql.id_lists import among_given

INNER = ("append_data", "overwrite_by_expression")
IS_NAMED_AS_INNER = or_(*(jobs.c.name.contains(f".{kind}.", autoescape=True) for kind in INNER))
"""The condition that a job's runs may be a part of another's command, by its name."""
MOST_LOOKED_AT = 50  # of the latest runs of a job
OUTER = tuple(
    f"{atomic}{verb}_table_as_select"
    for atomic in ("atomic_", "")
    for verb in ("create", "replace")
)


class NestedCommand(NamedTuple):
    """A run that has ended: its application, job, time and state."""

    run: int
    application: int
    job: int
    started: int
    ended: int
    state: int

    def holds(self, other: "NestedCommand") -> bool:
        """Return true if the other is a part of this one.

        A part with another end is shown for itself.
        """
        is_within = self.started <= other.started and other.ended <= self.ended
        return is_within and (self.application, self.state) == (other.application, other.state)


def without_nested(
    connection: Connection, job_edges: Collection[JobEdge], runs: Collection[int] = ()
) -> list[JobEdge]:
    """The relations without those of nested runs, but for those of jobs that were asked for."""
    shared = _written_by_several(job_edges)
    if not shared:
        return list(job_edges)
    runs_of = {
        job_edge.run
        for job_edge in job_edges
        if job_edge.dataset in shared and job_edge.direction == SINK and job_edge.job not in runs
    }
    nested = nested_runs(connection, runs_of)
    return [job_edge for job_edge in job_edges if job_edge.run not in nested]


def _written_by_several(job_edges: Iterable[JobEdge]) -> set[int]:
    """The datasets that more than one job writes."""
    writer: dict[int, int] = {}
    return {
        job_edge.dataset
        for job_edge in job_edges
        if job_edge.direction == SINK
        and writer.setdefault(job_edge.dataset, job_edge.job) != job_edge.job
    }


def nested_runs(
    connection: Connection, among: Collection[int], moment: int | None = None
) -> set[int]:
    """Those of these runs that are nested in another run.

    At a past moment, if both had ended by then.
    """
    rows = _ended(connection, _inner(), {"runs": list(among)}, moment) if among else []
    inner = {row[0]: NestedCommand(*row[:6]) for row in rows}
    outer = {row[0]: frozenset(_outer_jobs(row.namespace, row.name)) for row in rows}
    holding: dict[int, list[NestedCommand]] = defaultdict(list)
    above = list({run.application for run in inner.values()})
    wanted = {"jobs": list(set().union(*outer.values())), "above": above}
    for row in _ended(connection, _outer(), wanted, moment) if inner else ():
        holding[row.job_id].append(NestedCommand(*row))
    return {
        run
        for run, command in inner.items()
        if any(holder.holds(command) for job in outer[run] for holder in holding.get(job, ()))
    }


def _ended(
    connection: Connection, query: Select[Any], parameters: Mapping[str, Any], moment: int | None
) -> list[Any]:
    """The commands that had ended by a past moment, or all."""
    return [
        row
        for row in connection.execute(query, parameters)
        if moment is None or row.ended_at <= moment
    ]


def nested_jobs(
    connection: Connection, named: Iterable[tuple[int, str]], moment: int | None = None
) -> set[int]:
    """Return those of these jobs (id and name) whose newest runs are all nested.

    Of a past moment, the newest by then.
    """
    inner = [job for job, name in named if any(f".{kind}." in name for kind in INNER)]
    if not inner:
        return set()
    query = _newest(connection.dialect.name, moment is not None)
    runs_of: dict[int, set[int]] = defaultdict(set)
    for job, run in connection.execute(query, {"jobs": inner, "moment": moment}):
        runs_of[job].add(run)
    nested = nested_runs(connection, set().union(*runs_of.values()), moment)
    return {job for job, newest in runs_of.items() if newest <= nested}


def _outer_jobs(namespace: str, name: str) -> Iterator[int]:
    """The ids of the jobs that a command of this name may be a part of.

    Their tables are called without the catalog.
    """
    for kind in INNER:
        application, command, table = name.partition(f".{kind}.")
        parts = table.split("_") if command else []
        for start in range(1, len(parts)):
            for outer in OUTER:
                yield id_of("job", namespace, f"{application}.{outer}.{'_'.join(parts[start:])}")


@cache
def _newest(dialect: str, past: bool) -> Select[Any]:
    """The latest runs of each of these jobs; of the past those that had begun."""
    run = runs.alias("run")
    begun = [run.c.first_at <= MOMENT] if past else []
    of_job = select(run.c.id).where(run.c.job_id == jobs.c.id, run.c.newest_at.is_not(None), *begun)
    last = for_each(
        dialect, jobs.c.id, "jobs", of_job.order_by(run.c.newest_at.desc()).limit(MOST_LOOKED_AT)
    )
    return select(runs.c.job_id, runs.c.id).where(runs.c.id.in_(last))


@cache
def _commands() -> Select[Any]:
    columns = (
        runs.c.id,
        run_parents.c.parent_run_id,
        runs.c.job_id,
        runs.c.started_at,
        runs.c.ended_at,
        runs.c.state,
    )
    joined = runs.join(run_parents, run_parents.c.run_id == runs.c.id)
    ended = (runs.c.started_at.is_not(None), runs.c.ended_at.is_not(None))
    return (
        select(*columns).select_from(joined).where(*ended, runs.c.streaming == 0, runs.c.spark == 1)
    )


@cache
def _inner() -> Select[Any]:
    of_job = (
        _commands()
        .join(jobs, jobs.c.id == runs.c.job_id)
        .add_columns(jobs.c.namespace, jobs.c.name)
    )
    return of_job.where(among_given(runs.c.id, "runs"), IS_NAMED_AS_INNER)


@cache
def _outer() -> Select[Any]:
    return _commands().where(
        among_given(runs.c.job_id, "jobs"), among_given(run_parents.c.parent_run_id, "above")
    )
