"""The hierarchy of runs: applications, DAGs and streaming queries, and the runs below them.

A run names its parent and maybe a root. What is taken for the root may have a parent that only its
own events know of, such as a Spark application whose task tells of its DAG. So the way to the root
goes on from there to the top.
"""

from collections.abc import Collection, Iterable
from functools import cache
from typing import Any, NamedTuple

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Select,
    Text,
    bindparam,
    case,
    distinct,
    func,
    select,
)

from strandline.core.changes.extraction import SINK, SOURCE
from strandline.core.openlineage import run_states as states
from strandline.store.lineage.empty_writes import FAILED, created_nothing, only_defined
from strandline.store.lineage.failures import errors_of
from strandline.store.lineage.lookup import node_text
from strandline.store.lineage.nested_commands import nested_runs
from strandline.store.lineage.recent_runs import with_relations
from strandline.store.lineage.run_state import iso, run_owners
from strandline.store.schema.dataset_tables import datasets
from strandline.store.schema.relation_tables import relations
from strandline.store.schema.run_tables import jobs, run_parents, run_queries, runs
from strandline.store.sql.id_lists import among, among_given

Answer = dict[str, Any]
LEVELS = 5  # a DAG, its task, the application, its statements: and one to spare
MOST_BELOW = 10_000  # runs
MOST_FAILURES = 20


def runs_below(connection: Connection, above: Iterable[int]) -> dict[int, int]:
    """The runs below these, each with the one of these that it is below.

    The newest, if there are very many.
    """
    runs: dict[int, int] = {}
    top = starts = {run: run for run in above}
    for _ in range(LEVELS):
        rows = connection.execute(_children(), {"runs": list(top)}) if top else ()
        top = {run: top[parent] for run, parent in rows if run not in runs and run not in starts}
        runs |= top
        if len(runs) >= MOST_BELOW:
            break
    return runs


@cache
def _children() -> Select[Any]:
    named = select(run_parents.c.run_id, run_parents.c.parent_run_id)
    return (
        named.where(among_given(run_parents.c.parent_run_id, "runs"))
        .order_by(run_parents.c.at.desc())
        .limit(MOST_BELOW)
    )


def jobs_of(connection: Connection, runs: Collection[int]) -> list[int]:
    """The jobs that these runs, and what they touched, belong to."""
    return list(connection.scalars(_jobs(), {"runs": list(runs)})) if runs else []


@cache
def _jobs() -> Select[Any]:
    return select(run_owners.c.job_id).distinct().where(among_given(run_owners.c.run_id, "runs"))


def topmost_runs(connection: Connection, chosen: Select[Any]) -> set[int]:
    """Return those of these runs (their ids) that are not below another of them.

    Runs of other kinds may be between the two, such as a task that completed although its
    application failed.
    """
    runs: set[int] = set(connection.scalars(chosen))
    topmost, above = set(runs), {run: run for run in runs}
    for _ in range(LEVELS):
        rows = connection.execute(_parents(), {"runs": list(set(above.values()))}) if above else ()
        parents: dict[int, int] = dict(map(tuple, rows))
        above = {run: parents[one] for run, one in above.items() if one in parents}
        topmost -= {run for run, parent in above.items() if parent in runs}
        above = {run: parent for run, parent in above.items() if run in topmost}
    return topmost


@cache
def _parents() -> Select[Any]:
    columns = run_parents.c.run_id, run_parents.c.parent_run_id
    return select(*columns).where(among_given(run_parents.c.run_id, "runs"))


def children_answer(connection: Connection, run: int) -> Answer | None:
    """The runs below a run, by job, and which of them failed with what error.

    None where there are none.
    """
    runs = runs_below(connection, [run])
    below = runs.keys() - nested_runs(connection, runs)
    if not below:
        return None
    rows = connection.execute(_by_job(), {"runs": list(below)}).all()
    of_jobs = [
        {
            "id": node_text("job", row.namespace, row.name),
            "runs": row.runs,
            "failed": row.failed,
            "newestAt": iso(row.at),
        }
        for row in rows
    ]
    failures = connection.execute(_failures(), {"runs": list(below)}).all()
    errors = errors_of(connection, [row.id for row in failures])
    return {
        "runs": sum(row.runs for row in rows),
        "failed": sum(row.failed for row in rows),
        "jobs": of_jobs,
        "failures": [_failure(row, errors.get(row.id)) for row in failures],
    }


def _failure(row: Any, error: str | None) -> Answer:
    job = {"namespace": row.namespace, "name": row.name}
    return {
        "runId": row.run_id,
        "job": job,
        "state": states.NAMES[row.state],
        "endedAt": iso(row.ended_at),
        "error": error,
    }


@cache
def _by_job() -> Select[Any]:
    """A micro-batch counts for its query's job; the query's own run is no child beside them."""
    owned = run_owners.join(runs, runs.c.id == run_owners.c.run_id).join(
        jobs, jobs.c.id == run_owners.c.job_id
    )
    failed = func.sum(case((runs.c.state == states.FAIL, 1), else_=0))
    return (
        select(
            jobs.c.namespace, jobs.c.name, func.count().label("runs"), failed.label("failed"),
            func.max(runs.c.newest_at).label("at"),
        )
        .select_from(owned)
        .where(among_given(runs.c.id, "runs"), runs.c.query == 0)
        .group_by(jobs.c.namespace, jobs.c.name)
        .order_by(jobs.c.namespace, jobs.c.name)
    )  # fmt: skip


@cache
def _failures() -> Select[Any]:
    return (
        select(
            runs.c.id, runs.c.run_id, runs.c.state, runs.c.ended_at, jobs.c.namespace, jobs.c.name
        )
        .join(jobs, jobs.c.id == runs.c.job_id)
        .where(among_given(runs.c.id, "runs"), runs.c.state == states.FAIL)
        .order_by(runs.c.ended_at.desc(), runs.c.id)
        .limit(MOST_FAILURES)
    )


def touched_by(connection: Connection, runs: Collection[int]) -> tuple[list[str], list[str]]:
    """All that these runs read, and all that they wrote."""
    rows = connection.execute(_touched(), {"runs": list(runs)}).all()
    reads, writes = (
        sorted(
            node_text("dataset", row.namespace, row.name) for row in rows if row.direction == way
        )
        for way in (SOURCE, SINK)
    )
    return reads, writes


@cache
def _touched() -> Select[Any]:
    canonical = datasets.alias("canonical")
    joined = with_relations(runs.join(run_owners, run_owners.c.run_id == runs.c.id))
    return (
        select(relations.c.direction, canonical.c.namespace, canonical.c.name)
        .distinct()
        .select_from(joined.join(canonical, canonical.c.id == datasets.c.canonical_id))
        .where(
            among_given(relations.c.run_id, "runs"),
            ~created_nothing(),
            ~only_defined(past=False),
        )
    )


def query_answer(connection: Connection, job: int) -> Answer | None:
    """Return how far a streaming query is whose micro-batches are runs: None for any other job.

    A batch that came again after a kill, or whose writes are several runs, is one. Of several
    queries of one name (each new checkpoint is another) it is the newest.
    """
    query = connection.scalar(_newest_query(), {"job": job})
    if query is None:
        return None
    row = connection.execute(_progress(), {"query": query}).one()
    return {
        "queryId": query,
        "newestBatch": row.newest,
        "batches": row.batches,
        "failedBatches": row.failed,
    }


@cache
def _newest_query() -> Select[Any]:
    of_job = select(runs.c.id).where(
        runs.c.job_id == bindparam("job", type_=BigInteger), runs.c.query == 1
    )
    newest = of_job.order_by(runs.c.newest_at.desc(), runs.c.id.desc()).limit(1).scalar_subquery()
    return select(run_queries.c.query_id).where(run_queries.c.owner_id == newest).limit(1)


@cache
def _progress() -> Select[Any]:
    done = case((runs.c.state == states.COMPLETE, run_queries.c.batch_id))
    failed = case((runs.c.state.in_(FAILED), run_queries.c.batch_id))
    counts = (func.max(done).label("newest"), func.count(distinct(done)).label("batches"))
    batches = run_queries.join(runs, runs.c.id == run_queries.c.run_id)
    columns: tuple[ColumnElement[Any], ...] = (
        *counts,
        func.count(distinct(failed)).label("failed"),
    )
    return (
        select(*columns)
        .select_from(batches)
        .where(run_queries.c.query_id == bindparam("query", type_=Text))
    )


LEVELS_ABOVE = 20  # a hierarchy has three or four; one of parents in a circle has no end


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
    for _ in range(LEVELS_ABOVE if how == "root" else 0):
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
