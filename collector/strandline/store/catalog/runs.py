"""Runs: lists of them, the latest of each job, and runs by their ids.

At a past moment a run is as it had been heard of by then. What it belongs to does not change with
time: its job, the run above it, whether it streams. Of a run that was heard of again later it is
left out when it had last been heard of (`updatedAt`).
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

from sqlalchemy import (
    CompoundSelect,
    Connection,
    Select,
    and_,
    or_,
    select,
    union_all,
)

from strandline.core.openlineage.names import is_of_one_job, run_id_of, run_name
from strandline.errors import NotFoundError
from strandline.store.catalog.filters import Filter, may_be_of
from strandline.store.lineage.failures import outcomes
from strandline.store.lineage.lookup import Node
from strandline.store.lineage.nested_commands import nested_runs
from strandline.store.lineage.run_state import (
    MOMENT,
    PastRun,
    RunState,
    iso,
    past_runs,
    rows_of_runs,
    run_state,
    with_state,
)
from strandline.store.schema.run_tables import jobs, run_parents, runs
from strandline.store.sql.each import for_each
from strandline.store.sql.id_lists import among, among_given
from strandline.store.sql.namespaces_like import in_namespaces
from strandline.store.sql.pages import Key, Order

Answer = dict[str, Any]

SHARED_RUN_ID = "several jobs reported this run id; each has a run of its own"


def runs_page(
    connection: Connection,
    job: Node | None,
    criteria: Filter,
    now: int,
    limit: int,
    after: Key | None,
    parent: str | None = None,
) -> Answer:
    """Runs, the newest first, of one job, of a namespace's jobs or of all.

    Of a past moment those come first that were heard of again later.

    parent: the id of a run; only the runs directly below it. NotFoundError if there is none.
    """
    of_job = [] if job is None else [runs.c.job_id == job.id]
    # A parent of which no event came has no place among the newest.
    heard_of = runs.c.newest_at.is_not(None)
    of_namespace = in_namespaces(connection, jobs, criteria.namespace)
    query = select(runs.c.id).join(jobs, jobs.c.id == runs.c.job_id)
    query = query.where(runs.c.design == 0, heard_of, *of_job, *of_namespace, *may_be_of(criteria))
    if parent is not None:
        above = [row.id for row in runs_called(connection, parent)]
        if not above:
            raise NotFoundError(f"unknown run: {parent!r}")
        below = select(run_parents.c.run_id).where(among(run_parents.c.parent_run_id, above))
        query = query.where(runs.c.id.in_(below))

    def shown(page: Sequence[Any]) -> Iterator[Answer | None]:
        rows = _rows_of(connection, [row.id for row in page])
        answers = _run_answers(connection, rows, criteria, now, with_nested=job is not None)
        return (answers.get(row.id) for row in page)

    order = Order((runs.c.newest_at, runs.c.id), descending=True)
    return order.filtered(connection, query, limit, after, shown, few=criteria.leaves_few)


def _run_answers(
    connection: Connection, rows: Sequence[Any], criteria: Filter, now: int, *, with_nested: bool
) -> dict[int, Answer]:
    """Return runs that a filter admits, as a list shows them."""
    moment = criteria.as_of
    if moment is None:
        states = {row.id: run_state(row, now) for row in rows}
    else:
        past = past_runs(connection, [row.id for row in rows], moment)
        states = {id_: run.state for id_, run in past.items()}
    failed = {id_: state.state == "FAIL" for id_, state in states.items()}
    more = outcomes(connection, failed, moment)
    nested = () if with_nested else nested_runs(connection, list(states), moment)
    return {
        row.id: _answer(row, states[row.id], moment) | more[row.id]
        for row in rows
        if row.id in states and criteria.admits(states[row.id]) and row.id not in nested
    }


def _rows_of(connection: Connection, ids: Sequence[int]) -> list[Any]:
    """Return all that lists show of those of these runs that are still there."""
    return list(connection.execute(_runs(connection.dialect.name).where(among(runs.c.id, ids))))


def run_answer(row: Any, now: int) -> Answer:
    """Return a run as lists show it; the row is one of `runs_called`'s."""
    return _answer(row, run_state(row, now), None)


def _answer(row: Any, state: RunState, moment: int | None) -> Answer:
    answer = state.answer() | _belonging(row) | times_heard(row, moment)
    if not is_of_one_job(row.id, row.run_id):
        answer["notice"] = SHARED_RUN_ID
    return answer


def _belonging(row: Any) -> Answer:
    """Return whose a run is."""
    parent = None
    if (
        row.parent_run is not None and row.parent_name is not None
    ):  # without a name: the key does not see its job
        job = {"namespace": row.parent_namespace, "name": row.parent_name}
        parent = {"runId": row.parent_run, "job": job}
    job = {"namespace": row.job_namespace, "name": row.job_name}
    return {"job": job, "parent": parent, "streaming": bool(row.streaming)}


def times_heard(row: Any, moment: int | None) -> Answer:
    """Return when events told first and last of a run, job or dataset, as far as is certain.

    At a past moment, of what was heard of again later, nobody knows when it was last heard of.
    """
    if moment is None:
        return {"createdAt": iso(row.first_at), "updatedAt": iso(row.newest_at)}
    first, last = (row.first_at, row.newest_at) if (row.first_at or 0) <= moment else (None, None)
    created = {"createdAt": iso(first)}
    return created | {"updatedAt": iso(last)} if (last or 0) <= moment else created


def runs_called(connection: Connection, run_id: str) -> Sequence[Any]:
    """Return the runs of this id: mostly one, but several jobs may have used the same id."""
    same = or_(runs.c.run_id == run_name(run_id), runs.c.id == run_id_of(run_id, "", ""))
    return connection.execute(_runs(connection.dialect.name).where(same, runs.c.design == 0)).all()


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


def runs_by_id(connection: Connection, ids: Iterable[int]) -> dict[int, Any]:
    """Rows of runs with what a state needs, and namespace and name of each one's job."""
    query = _runs_with_jobs(connection.dialect.name).where(among(runs.c.id, ids))
    return {row.id: row for row in connection.execute(query)}


def _runs(dialect: str) -> Select[Any]:
    parents, parent_jobs = runs.alias("parents"), jobs.alias("parent_jobs")
    return (
        _runs_with_jobs(dialect)
        .add_columns(parents.c.run_id.label("parent_run"))
        .add_columns(
            parent_jobs.c.namespace.label("parent_namespace"),
            parent_jobs.c.name.label("parent_name"),
        )
        .outerjoin(run_parents, run_parents.c.run_id == runs.c.id)
        .outerjoin(parents, parents.c.id == run_parents.c.parent_run_id)
        .outerjoin(parent_jobs, parent_jobs.c.id == run_parents.c.parent_job_id)
    )


def _runs_with_jobs(dialect: str) -> Select[Any]:
    return (
        with_state(dialect)
        .add_columns(jobs.c.namespace.label("job_namespace"), jobs.c.name.label("job_name"))
        .join(jobs, jobs.c.id == runs.c.job_id)
    )


class JobRun(NamedTuple):
    """The latest run of a job, and when it was last heard of, by a past moment if there is one."""

    id: int
    state: RunState
    heard_at: int


def latest_run_of_each(
    connection: Connection, job_ids: Sequence[int], now: int, moment: int | None = None
) -> dict[int, JobRun]:
    """Map each job to its latest run, now or at a past moment.

    At a past moment a run that was under way counts as heard of then.
    """
    if moment is None:
        rows = rows_of_runs(connection, newest_run_ids(connection, job_ids).values()).values()
        return {row.job_id: JobRun(row.id, run_state(row, now), row.newest_at) for row in rows}
    then = _latest_then(connection, job_ids, moment)
    return {job: JobRun(run.id, run.state, run.heard_at) for job, run in then.items()}


def _latest_then(connection: Connection, job_ids: Sequence[int], moment: int) -> dict[int, PastRun]:
    parameters = {"jobs": list(job_ids), "moment": moment}
    rows = connection.execute(_newest_then(connection.dialect.name), parameters).all()
    states = past_runs(connection, [row.id for row in rows], moment)
    newest: dict[int, PastRun] = {}
    for job, run in rows:
        newest[job] = max(newest.get(job, states[run]), states[run], key=lambda row: row.place)
    return newest


def newest_run_ids(
    connection: Connection, job_ids: Sequence[int], moment: int | None = None
) -> dict[int, int]:
    """The id of the latest run of each job, now or at a past moment."""
    if moment is not None:
        return {job: run.id for job, run in _latest_then(connection, job_ids, moment).items()}
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


@cache
def _newest_then(dialect: str) -> CompoundSelect[Any]:
    """Select the runs of these jobs that were heard of last by a moment, and those running then."""
    run, last = runs.alias("run"), runs.alias("last")
    of_job = (run.c.job_id == jobs.c.id, run.c.design == 0, run.c.newest_at <= MOMENT)
    newest = for_each(
        dialect,
        jobs.c.id,
        "jobs",
        select(run.c.id).where(*of_job).order_by(run.c.newest_at.desc()).limit(1),
    )
    as_new = and_(
        runs.c.job_id == last.c.job_id, runs.c.newest_at == last.c.newest_at, runs.c.design == 0
    )
    heard_last = select(runs.c.job_id, runs.c.id).join(last, as_new).where(last.c.id.in_(newest))
    going_on = (
        among_given(runs.c.job_id, "jobs"),
        runs.c.newest_at > MOMENT,
        runs.c.first_at <= MOMENT,
        runs.c.design == 0,
    )
    return union_all(heard_last, select(runs.c.job_id, runs.c.id).where(*going_on))
