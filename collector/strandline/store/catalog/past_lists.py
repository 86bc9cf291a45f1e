"""Lists of datasets, jobs and runs as they were at a past moment.

What had been heard of then, as `lists` shows it.

What a run, job or dataset is does not change with time: its name, the run above it, whether it
streams. Nor does the query of a micro-batch, or the name under which a dataset is listed.
Everything else is of the moment, and what the store does not keep of it is left out. Of something
heard of again later these are: when it had last been heard of (`updatedAt`), its `group`, its
`latestSnapshot`, whether it was dropped. `owners` that were stated again later are None.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    CompoundSelect,
    Connection,
    and_,
    bindparam,
    exists,
    or_,
    select,
    union_all,
)

from strandline.core.openlineage.run_states import NAMES, RUNNING
from strandline.store.catalog.filters import Filter
from strandline.store.catalog.owners import job_owners_then, owners_of_datasets
from strandline.store.catalog.past_writes import heard_by, not_made_by, past_writes
from strandline.store.lineage.dropped import drops_then
from strandline.store.lineage.failures import outcomes
from strandline.store.lineage.hierarchy import parent_jobs
from strandline.store.lineage.nested_commands import nested_jobs, nested_runs
from strandline.store.lineage.run_state import PastRun, iso, past_runs
from strandline.store.schema.run_tables import job_groups, jobs, run_parents, runs
from strandline.store.sql.each import for_each
from strandline.store.sql.id_lists import among, among_given

Answer = dict[str, Any]


def had_run(criteria: Filter, moment: int) -> list[ColumnElement[bool]]:
    """Return which runs had begun, and may be of the filter.

    What was heard of again may have been in another state then.
    """
    begun = runs.c.first_at <= moment
    clauses = [begun]
    if criteria.states:
        ranks = [rank for rank, name in enumerate(NAMES) if name in criteria.states]
        clauses.append(
            or_(runs.c.state.in_(ranks), runs.c.state <= RUNNING, runs.c.newest_at > moment)
        )
    if criteria.since is not None:
        clauses.append(or_(runs.c.newest_at >= criteria.since, runs.c.state <= RUNNING))
    if criteria.until is not None:
        clauses.append(runs.c.first_at < criteria.until)
    return clauses


def was_mentioned(moment: int) -> ColumnElement[bool]:
    """Return whether an event had named the job by then, as its own or as one above it."""
    below, of_job = runs.alias("below"), runs.alias("of_job")
    begun = (below.c.id == run_parents.c.run_id, below.c.first_at <= moment)
    as_parent = exists().where(run_parents.c.parent_job_id == jobs.c.id, *begun)
    as_root = exists().where(
        of_job.c.job_id == jobs.c.id, run_parents.c.root_run_id == of_job.c.id, *begun
    )
    return or_(and_(jobs.c.first_at.is_not(None), jobs.c.first_at <= moment), as_parent, as_root)


def runs_then(
    connection: Connection, rows: Sequence[Any], criteria: Filter, moment: int, *, of_job: bool
) -> Iterator[Answer | None]:
    """Yield the answer of each of these rows of runs at the moment.

    None for those that it does not show.
    """
    states = past_runs(connection, [row.id for row in rows], moment)
    failed = {run: state.state.state == "FAIL" for run, state in states.items()}
    more = outcomes(connection, failed, moment)
    nested = () if of_job else nested_runs(connection, [row.id for row in rows], moment)
    for row in rows:
        state = states[row.id].state
        shown = criteria.admits(state) and row.id not in nested
        yield state.answer() | seen_then(row, moment) | more[row.id] if shown else None


def jobs_then(
    connection: Connection, rows: Sequence[Any], criteria: Filter, moment: int
) -> Iterator[Answer | None]:
    """The same for a list of jobs: each with its latest run of then."""
    ids = [row.id for row in rows]
    nested = nested_jobs(connection, [(row.id, row.name) for row in rows], moment)
    newest, groups = (
        newest_runs_then(connection, ids, moment),
        _groups_then(connection, ids, moment),
    )
    more = outcomes(
        connection, {run.id: run.state.state == "FAIL" for run in newest.values()}, moment
    )
    parents = parent_jobs(connection, list(more))
    owners = job_owners_then(connection, ids, partial(_latest_then, connection, moment), moment)
    for row in rows:
        run = newest.get(row.id)
        if row.id in nested or not _is_job_of(criteria, row, run, moment):
            yield None
        else:
            newest_run = None if run is None else run.state.answer() | more[run.id]
            parent = None if run is None else parents.get(run.id)
            belonging = groups[row.id] | {"owners": owners.get(row.id, []), "parent": parent}
            yield seen_then(row, moment) | belonging | {"latestRun": newest_run}


def _is_job_of(criteria: Filter, row: Any, run: PastRun | None, moment: int) -> bool:
    """Return true if the filter takes the job.

    The latest run of the moment decides or, without a state, the job's times.
    """
    if run is not None and criteria.admits(run.state):
        return True
    return not criteria.states and criteria.spans(
        *_span(row, None if run is None else run.heard_at, moment)
    )


def datasets_then(
    connection: Connection, rows: Sequence[Any], criteria: Filter, moment: int
) -> Iterator[Answer | None]:
    """The same for a list of datasets: each with its latest write of then."""
    ids = [row.id for row in rows]
    unmade, writes = not_made_by(connection, ids, moment), past_writes(connection, ids, moment)
    heard = heard_by(connection, ids, moment) if criteria.has_span else {}
    dropped = drops_then(connection, ids, moment)
    owners = owners_of_datasets(connection, ids, moment)
    for row in rows:
        write = writes.get(row.id)
        written = write is not None and criteria.admits(write.run)
        spans = not criteria.states and criteria.spans(*_span(row, heard.get(row.id), moment))
        more = {"latestWrite": None if write is None else write.answer()} | dropped[row.id]
        more["owners"] = owners.get(row.id, [])
        yield seen_then(row, moment) | more if (written or spans) and row.id not in unmade else None


def newest_runs_then(
    connection: Connection, job_ids: Sequence[int], moment: int
) -> Mapping[int, PastRun]:
    """The run of each job that had been heard of last.

    One that was under way counts as heard of at the moment.
    """
    parameters = {"jobs": list(job_ids), "moment": moment}
    rows = connection.execute(_newest_then(connection.dialect.name), parameters).all()
    states = past_runs(connection, [row.id for row in rows], moment)
    newest: dict[int, PastRun] = {}
    for job, run in rows:
        newest[job] = max(newest.get(job, states[run]), states[run], key=lambda row: row.place)
    return newest


def _latest_then(connection: Connection, moment: int, job_ids: Sequence[int]) -> dict[int, int]:
    return {job: run.id for job, run in newest_runs_then(connection, job_ids, moment).items()}


@cache
def _newest_then(dialect: str) -> CompoundSelect[Any]:
    """Select the runs of these jobs that were heard of last by a moment, and those running then."""
    moment = bindparam("moment", type_=BigInteger)
    run, last = runs.alias("run"), runs.alias("last")
    of_job = (run.c.job_id == jobs.c.id, run.c.design == 0, run.c.newest_at <= moment)
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
        runs.c.newest_at > moment,
        runs.c.first_at <= moment,
        runs.c.design == 0,
    )
    return union_all(heard_last, select(runs.c.job_id, runs.c.id).where(*going_on))


def _groups_then(connection: Connection, job_ids: Sequence[int], moment: int) -> dict[int, Answer]:
    """`group` of each job; nothing of one that a later event put into a group."""
    query = select(job_groups.c.job_id, job_groups.c.group_name, job_groups.c.at)
    groups = {
        row.job_id: row
        for row in connection.execute(query.where(among(job_groups.c.job_id, job_ids)))
    }
    of_then = {
        job: {"group": row.group_name} if row.at <= moment else {} for job, row in groups.items()
    }
    return {job: of_then.get(job, {"group": None}) for job in job_ids}


def seen_then(row: Any, moment: int) -> Answer:
    """Return the times at which the row was first and last reported.

    Left out where it was heard of again later.
    """
    first, last = (row.first_at, row.newest_at) if (row.first_at or 0) <= moment else (None, None)
    created = {"createdAt": iso(first)}
    return created | {"updatedAt": iso(last)} if (last or 0) <= moment else created


def _span(row: Any, heard_at: int | None, moment: int) -> tuple[int | None, int | None]:
    """From when to when the row was heard of by then, as far as is certain."""
    if row.first_at is None or row.first_at > moment:
        return heard_at, heard_at
    last = row.newest_at if row.newest_at <= moment else max(row.first_at, heard_at or row.first_at)
    return row.first_at, last
