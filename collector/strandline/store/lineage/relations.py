"""The datasets that jobs read and write.

Known (by a job's last runs), by its latest run alone, or live; now or as of a moment.

Asked level by level: the jobs that touch these datasets, then all that those jobs touch. What is
known is found by each job's last runs, now or of the moment (sightings.py), what runs by all that
have not ended.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    CompoundSelect,
    Connection,
    FromClause,
    Integer,
    Select,
    and_,
    bindparam,
    func,
    or_,
    select,
    true,
    union,
)

from strandline.store.lineage.empty_writes import created_nothing, owners
from strandline.store.lineage.hidden_nodes import deleted_jobs, seen_jobs
from strandline.store.lineage.recent_runs import (
    JobEdge,
    Sighting,
    job_edges,
    latest_runs,
    of_latest_run,
    of_recent_runs,
    recent_runs_of,
    sightings,
    with_relations,
)
from strandline.store.lineage.run_state import MOMENT, StateColumns, View, run_owners
from strandline.store.lineage.sightings import MOST_BELOW, as_of, last_sightings, past_sightings
from strandline.store.schema.dataset_tables import datasets
from strandline.store.schema.received_tables import store_settings
from strandline.store.schema.relation_tables import job_relations, relations
from strandline.store.schema.run_tables import run_parents, run_queries, runs
from strandline.store.sql.id_lists import among_given

MOST_ROWS = 100_000  # of one level of what runs: what follows is cut
RECENT_RUNS = (
    10  # owning runs before the latest application, where the store does not say otherwise
)


def jobs_touching(
    connection: Connection, dataset_ids: Sequence[int], direction: int, limit: int
) -> list[int]:
    """Jobs, as named by their events, that ever read (direction 0) or wrote (1) these datasets."""
    parameters = {"dataset_ids": list(dataset_ids), "direction": direction, "most": limit}
    return list(connection.scalars(_touching(), parameters).all())


def all_jobs_touching(connection: Connection, dataset_id: int, at_once: int) -> Iterator[list[int]]:
    """All jobs that ever read or wrote a dataset, so many at a time, by their ids."""
    parameters = {"dataset_ids": [dataset_id], "most": at_once, "after": -1}  # no id is negative
    while page := list(connection.scalars(_touching_after(), parameters).all()):
        yield page
        parameters["after"] = page[-1]


@cache
def _touching() -> Select[Any]:
    of_direction = job_relations.c.direction == bindparam("direction")
    return _jobs_of_datasets().where(of_direction).limit(bindparam("most", type_=Integer))


@cache
def _touching_after() -> Select[Any]:
    after = job_relations.c.job_id > bindparam("after", type_=BigInteger)
    page = _jobs_of_datasets().where(after).order_by(job_relations.c.job_id)
    return page.limit(bindparam("most", type_=Integer))


def _jobs_of_datasets() -> Select[Any]:
    names = select(datasets.c.id).where(among_given(datasets.c.canonical_id, "dataset_ids"))
    jobs = select(job_relations.c.job_id).distinct()
    return jobs.where(job_relations.c.dataset_id.in_(names))


def jobs_called(connection: Connection, job_id: int) -> list[int]:
    """Return the job of this name.

    Where all that was reported under it is another's (stock Spark renames jobs on the way), return
    those.
    """
    owners = owning_jobs(connection, [job_id])[job_id]
    return [job_id] if job_id in owners else [job_id, *sorted(owners)]


def owning_jobs(connection: Connection, names: Collection[int]) -> dict[int, set[int]]:
    """Map names of jobs to the jobs that own the runs which were reported under them."""
    owners: dict[int, set[int]] = {name: set() for name in names}
    for name, owner in connection.execute(_owning_jobs(), {"job_ids": list(names)}).all():
        owners[name].add(owner)
    return owners


def job_edges_of(connection: Connection, view: View, job_ids: Sequence[int]) -> list[JobEdge]:
    """Return all edges of these jobs and of those that runs of these names belong to.

    Each edge stands under the job that it belongs to. Which runs of a job count is decided by all
    that is reported for it, under whatever name. So the answer is the same from wherever one came
    to the job.
    """
    return job_edges_with_open_jobs(connection, view, job_ids)[0]


def job_edges_with_open_jobs(
    connection: Connection, view: View, job_ids: Sequence[int]
) -> tuple[list[JobEdge], set[int]]:
    """Return the same, and the jobs with a batch run that writes and has not ended."""
    count = recent_run_count(connection) if view.runs is None else view.runs
    sightings = _sightings_of(connection, view, job_ids, count)
    deleted = deleted_jobs(connection, {sighting.job for sighting in sightings}, view)
    if deleted:
        sightings = [sighting for sighting in sightings if sighting.job not in deleted]
    open_jobs = {sighting.job for sighting in sightings if sighting.may_be_lost}
    recent = recent_runs_of(sightings, count)
    if view.newest:
        sightings = of_latest_run(sightings, latest_runs(connection, recent.keys(), view))
    elif not view.live:
        sightings = of_recent_runs(sightings, recent)
    if not view.live:
        sightings = [sighting for sighting in sightings if not sighting.wrote_nothing]
    return job_edges(sightings, recent), open_jobs


def _sightings_of(
    connection: Connection, view: View, job_ids: Collection[int], most: int
) -> list[Sighting]:
    """Return the datasets of these jobs' last runs, or of the running ones."""
    if not (view.live or view.past):
        return last_sightings(connection, job_ids, most, view.at)
    owners = owning_jobs(connection, job_ids)
    jobs = seen_jobs(connection, set(job_ids).union(*owners.values()))
    names = names_of_jobs(connection, jobs)
    if not view.live:
        return past_sightings(connection, names, jobs, most, view.at)
    parameters = {"job_ids": list(names), "jobs": list(jobs), "moment": view.at}
    rows = connection.execute(_live_sightings(connection.dialect.name, view.past), parameters).all()
    return [
        as_of(sighting, view.at if view.past else None) for sighting in map(Sighting._make, rows)
    ]


def with_known_runs(connection: Connection, view: View) -> View:
    """The same view for a walk, which asks once how many runs are known, not once a level."""
    return replace(view, runs=recent_run_count(connection)) if view.runs is None else view


def recent_runs_named(connection: Connection, job_id: int, view: View) -> list[int]:
    """Return the recent runs of a job that reads and writes nothing itself, or its latest.

    They are those below its newest application and the last few before. A run that is only named as
    a parent counts too.
    """
    count = recent_run_count(connection) if view.runs is None else view.runs
    age = func.coalesce(runs.c.newest_at, runs.c.child_received_at).desc(), runs.c.id.desc()
    known = or_(runs.c.newest_at.is_not(None), runs.c.child_received_at > 0)
    begun = runs.c.first_at <= view.at if view.past else known
    of_job = select(runs.c.id).where(runs.c.job_id == job_id, begun).order_by(*age)
    last = list(connection.scalars(of_job.limit(1 if view.newest else count + 1)))
    if view.newest or not last:
        return last
    application = select(run_parents.c.parent_run_id).where(run_parents.c.run_id == last[0])
    beside = of_job.join(run_parents, run_parents.c.run_id == runs.c.id).where(
        run_parents.c.parent_run_id == application.scalar_subquery()
    )
    return list(dict.fromkeys([*connection.scalars(beside.limit(MOST_BELOW)), *last]))


def recent_run_count(connection: Connection) -> int:
    """Return how many owning runs before the latest application are known.

    STRANDLINE_RECENT_RUNS, as the server has it.
    """
    value = connection.scalar(_known_runs())
    return RECENT_RUNS if value is None else int(value)


@cache
def _known_runs() -> Select[Any]:
    return select(store_settings.c.value).where(store_settings.c.key == "recent_runs")


def names_of_jobs(connection: Connection, job_ids: Iterable[int]) -> set[int]:
    """Return the final names of the runs whose relations count as these jobs'.

    A run counts as it is, or as its micro-batches.
    """
    return {
        *job_ids,
        *(name for names in names_by_job(connection, job_ids).values() for name in names),
    }


def names_by_job(connection: Connection, job_ids: Iterable[int]) -> dict[int, set[int]]:
    """Return the names of each job's micro-batches, where they have names of their own."""
    names_of: dict[int, set[int]] = {}
    for job, name in connection.execute(_batches_of(), {"jobs": list(job_ids)}):
        if name != job:
            names_of.setdefault(job, set()).add(name)
    return names_of


@cache
def _owning_jobs() -> Select[Any]:
    named = job_relations.join(run_owners, run_owners.c.run_id == job_relations.c.run_id)
    return (
        select(job_relations.c.job_id, run_owners.c.job_id)
        .distinct()
        .select_from(named)
        .where(among_given(job_relations.c.job_id, "job_ids"))
    )


@cache
def _batches_of() -> CompoundSelect[Any]:
    """The names of the micro-batches whose relations count as these jobs'."""
    of_parent = run_parents.join(
        runs, and_(runs.c.id == run_parents.c.run_id, runs.c.streaming == 1, runs.c.spark == 1)
    )
    of_query = run_queries.join(runs, runs.c.id == run_queries.c.run_id)
    of_owner = of_query.join(owners, owners.c.id == run_queries.c.owner_id)
    ways: tuple[tuple[FromClause, ColumnElement[int]], ...] = (
        (of_parent, run_parents.c.parent_job_id),
        (of_query, run_queries.c.job_id),  # of rows from before queries had runs
        (of_owner, owners.c.job_id),
    )
    named = (
        select(job.label("job"), runs.c.job_id.label("name"))
        .select_from(those)
        .where(among_given(job, "jobs"), runs.c.announced == 0)
        for those, job in ways
    )
    return union(*named)


@cache
def _live_sightings(dialect: str, past: bool) -> Select[Any]:
    """Select the relations of running runs.

    The runs come before their relations: most have ended, and their relations need no look; nor do
    the runs above those that sent an end themselves. Now, a start or end counts even if its clock
    is ahead; at a past moment it counts if it came by then.
    """
    owner = runs.alias("owner_itself")
    state = StateColumns.of(dialect, owner)
    started = func.coalesce(owner.c.started_at, runs.c.started_at)
    begun = started <= MOMENT if past else started.is_not(None)
    joined = runs.join(run_owners, run_owners.c.run_id == runs.c.id)
    joined = joined.join(
        owner, and_(owner.c.id == run_owners.c.owner_id, begun, _no_end(owner, past))
    )
    of_jobs = among_given(runs.c.job_id, "job_ids"), among_given(run_owners.c.job_id, "jobs")
    running = _no_end(state.end, past), state.silence.c.silent_at >= MOMENT
    valid = ~created_nothing(past), relations.c.first_at <= MOMENT if past else true()
    query = sightings(past).select_from(with_relations(state.joined(joined)))
    return query.where(*of_jobs, *valid, *running).limit(MOST_ROWS)


def _no_end(of: FromClause, past: bool) -> ColumnElement[bool]:
    none = of.c.ended_at.is_(None)
    return or_(none, of.c.ended_at > MOMENT) if past else none
