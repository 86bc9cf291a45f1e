"""Jobs that a plan to roll tables back knows nothing of.

They read or write these tables, and carry no barriers.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from functools import cache
from typing import Any, NamedTuple

from sqlalchemy import Connection, Select, select

from strandline.core.changes.extraction import SINK, SOURCE
from strandline.core.openlineage.names import named
from strandline.core.versions.facts import Job, Table
from strandline.core.versions.model import Model
from strandline.store.lineage.lookup import ids_of_names
from strandline.store.schema.dataset_tables import datasets
from strandline.store.schema.relation_tables import job_relations
from strandline.store.schema.run_tables import jobs, runs
from strandline.store.sql.each import of_each
from strandline.store.sql.id_lists import among_given
from strandline.store.versions.live_writers import run_lives
from strandline.store.versions.lookup import call


class OutsideJob(NamedTuple):
    """A job outside a plan: which of its tables it writes and reads, and what it makes of them.

    Nothing takes those others back, nor the job's own place in what it reads.
    """

    job: Job
    writes: tuple[Table, ...]
    reads: tuple[Table, ...]
    makes: tuple[Table, ...]
    runs: bool


def outside_answer(outside_job: OutsideJob) -> dict[str, Any]:
    """Such a job as JSON shows it."""
    tables = {"writes": outside_job.writes, "reads": outside_job.reads, "makes": outside_job.makes}
    listed = {what: [named(table) for table in entries] for what, entries in tables.items()}
    return {"job": named(outside_job.job), **listed, "running": outside_job.runs}


def jobs_outside(
    connection: Connection, tables: Collection[Table], planned: Collection[Job]
) -> list[OutsideJob]:
    """Return the jobs, by name, that use these tables and are not planned.

    A job counts if it writes one of them, reads one and runs, or reads one and writes others.
    """
    names = _ids_of(connection, tables)
    jobs: dict[Job, _Use] = {}
    for row in connection.execute(_related(connection.dialect.name), {"datasets": list(names)}):
        job = (row.namespace, row.name)
        if job not in planned:
            jobs.setdefault(job, _Use()).add(row, names[row.dataset_id])
    written = _tables_written(connection, set[int]().union(*(use.ids for use in jobs.values())))
    every = (use.as_outside(job, written, tables) for job, use in sorted(jobs.items()))
    return [use for use in every if use.writes or use.makes or use.runs]


class _Use:
    """The use of a plan's tables by a job, under the ids by which events named it."""

    def __init__(self) -> None:
        self.ids: set[int] = set()
        self.tables: tuple[set[Table], set[Table]] = (set(), set())  # by direction
        self.runs = False

    def add(self, row: Any, table: Table) -> None:
        """Note a relation."""
        self.ids.add(row.job_id)
        self.tables[row.direction].add(table)
        self.runs |= bool(row.live)

    def as_outside(
        self, job: Job, written: Mapping[int, set[Table]], planned: Collection[Table]
    ) -> OutsideJob:
        """All of it; what a job writes besides was made of these tables only if it reads one."""
        makes = (
            set[Table]().union(*(written.get(id_, ()) for id_ in self.ids))
            if self.tables[SOURCE]
            else set[Table]()
        )
        writes, reads = (tuple(sorted(self.tables[way])) for way in (SINK, SOURCE))
        return OutsideJob(job, writes, reads, tuple(sorted(makes.difference(planned))), self.runs)


def _ids_of(connection: Connection, tables: Iterable[Table]) -> dict[int, Table]:
    return {id_: table for table in tables for id_ in connection.scalars(ids_of_names(table))}


def _tables_written(connection: Connection, ids: Collection[int]) -> dict[int, set[Table]]:
    tables_of: dict[int, set[Table]] = defaultdict(set)
    for id_, namespace, name in connection.execute(_written(), {"jobs": list(ids)}) if ids else ():
        tables_of[id_].add((namespace, name))
    return tables_of


def in_words(connection: Connection, model: Model, outside: Iterable[OutsideJob]) -> list[str]:
    """A line for each, with tables called as Spark does."""
    jobs = list(outside)
    call(
        connection,
        model,
        {table for job in jobs for table in (*job.writes, *job.reads, *job.makes)},
    )
    return [_line(model, job) for job in jobs]


def _line(model: Model, outside_job: OutsideJob) -> str:
    def called(tables: Iterable[Table]) -> str:
        return ", ".join(map(model.call, tables))

    does = [
        f"{verb} {called(tables)}"
        for verb, tables in (("writes", outside_job.writes), ("reads", outside_job.reads))
        if tables
    ]
    stays = f"; its output stays as it is: {called(outside_job.makes)}" if outside_job.makes else ""
    state = "running" if outside_job.runs else "not running"
    return f"job {outside_job.job[1]} ({state}) {' and '.join(does)}{stays}"


@cache
def _related(dialect: str) -> Select[Any]:
    """Return who read or wrote these datasets, by the latest run that did, and whether it runs."""
    lives = of_each(dialect, run_lives, runs.c.id)
    joined = job_relations.join(runs, runs.c.id == job_relations.c.run_id).join(
        lives, lives.c.run_id == runs.c.id
    )
    columns = (
        job_relations.c.job_id,
        job_relations.c.direction,
        job_relations.c.dataset_id,
        lives.c.live,
    )
    query = select(jobs.c.namespace, jobs.c.name, *columns)
    query = query.select_from(joined.join(jobs, jobs.c.id == lives.c.job_id))
    return query.where(among_given(job_relations.c.dataset_id, "datasets"))


@cache
def _written() -> Select[Any]:
    """Return the outputs of these jobs, named as in events."""
    named = datasets.alias("named")
    joined = job_relations.join(named, named.c.id == job_relations.c.dataset_id)
    joined = joined.join(datasets, datasets.c.id == named.c.canonical_id)
    query = select(job_relations.c.job_id, datasets.c.namespace, datasets.c.name).select_from(
        joined
    )
    return query.where(
        among_given(job_relations.c.job_id, "jobs"), job_relations.c.direction == SINK
    )
