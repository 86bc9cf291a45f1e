"""Which jobs read and write which datasets: known (by a job's last runs), by its newest run alone, or live; now or as of
a moment.

Asked level by level: the jobs that touch these datasets, then all that those jobs touch. What is known now is found by
each job's last runs (last_runs.py), what runs, and the past, by all of them.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
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

from strandline.store.lineage.hidden_nodes import seen_jobs
from strandline.store.lineage.last_runs import last_touches
from strandline.store.lineage.touches import (
    Related,
    Seen,
    Touch,
    is_undone,
    known_of,
    made_nothing,
    newest_of,
    owners,
    related,
    run_ends,
    run_owners,
    run_silences,
    touched,
    touching,
    windows_of,
)
from strandline.store.schema.tables import (
    datasets,
    job_relations,
    relations,
    run_parents,
    run_queries,
    runs,
    store_settings,
)
from strandline.store.sql.each import of_each
from strandline.store.sql.id_lists import among_given

__all__ = [
    "KNOWN_RUNS",
    "Related",
    "Seen",
    "View",
    "all_jobs_touching",
    "is_undone",
    "jobs_called",
    "jobs_touching",
    "known_runs",
    "last_runs",
    "names_of_jobs",
    "relations_of",
    "run_ends",
    "run_owners",
    "run_silences",
    "with_known_runs",
]

MOMENT = bindparam("moment", type_=BigInteger)
MOST_ROWS = 100_000  # of one level: what follows is cut
KNOWN_RUNS = 10  # owning runs before the newest application, where the store does not say otherwise


@dataclass(frozen=True, slots=True)
class View:
    """What is asked for: `live`, or of each job its `newest` run alone, or else all that is known, at a moment in
    microseconds; `past`: the moment is not now.

    runs: how many runs before the newest application are known; None: as many as the store says.
    """

    at: int
    live: bool = False
    past: bool = False
    newest: bool = False
    runs: int | None = None


def jobs_touching(connection: Connection, dataset_ids: Sequence[int], direction: int, limit: int) -> list[int]:
    """Jobs, as named by their events, that ever read (direction 0) or wrote (1) these datasets."""
    given = {"dataset_ids": list(dataset_ids), "direction": direction, "most": limit}
    return list(connection.scalars(_touching(), given).all())


def all_jobs_touching(connection: Connection, dataset_id: int, at_once: int) -> Iterator[list[int]]:
    """All jobs that ever read or wrote a dataset, so many at a time, by their ids."""
    given = {"dataset_ids": [dataset_id], "most": at_once, "after": -1}  # no id is negative
    while page := list(connection.scalars(_touching_after(), given).all()):
        yield page
        given["after"] = page[-1]


@cache
def _touching() -> Select[Any]:
    names = select(datasets.c.id).where(among_given(datasets.c.canonical_id, "dataset_ids"))
    return (
        select(job_relations.c.job_id)
        .distinct()
        .where(job_relations.c.dataset_id.in_(names), job_relations.c.direction == bindparam("direction"))
        .limit(bindparam("most", type_=Integer))
    )


@cache
def _touching_after() -> Select[Any]:
    names = select(datasets.c.id).where(among_given(datasets.c.canonical_id, "dataset_ids"))
    return (
        select(job_relations.c.job_id)
        .distinct()
        .where(job_relations.c.dataset_id.in_(names), job_relations.c.job_id > bindparam("after", type_=BigInteger))
        .order_by(job_relations.c.job_id)
        .limit(bindparam("most", type_=Integer))
    )


def jobs_called(connection: Connection, job_id: int) -> list[int]:
    """The job of this name; and where all that was reported under it is another's (stock Spark renames jobs on the way), those."""
    others = list(connection.scalars(_belongs_to(), {"job_ids": [job_id]}))
    return [job_id] if job_id in others else [job_id, *sorted(others)]


def relations_of(connection: Connection, view: View, job_ids: Sequence[int]) -> list[Related]:
    """All relations of these jobs and of those that runs of these names belong to, each under the job that it belongs to.

    Which of a job's relations are its newest is decided by all that is reported for it, under whatever name: so the answer is
    the same from wherever one came to the job.
    """
    most = known_runs(connection) if view.runs is None else view.runs
    touches = _touches_of(connection, view, job_ids, most)
    if view.past:
        touches = [_as_of(one, view.at) for one in touches]
    windows = windows_of(touches, most)
    if not view.live:
        touches = [one for one in touches if not one.is_void]
        touches = newest_of(touches) if view.newest else known_of(touches, windows)
    return related(touches, windows)


def _touches_of(connection: Connection, view: View, job_ids: Collection[int], most: int) -> list[Touch]:
    """What the runs of these jobs touched: all of them where the view asks for a moment or for live runs."""
    if not (view.live or view.past):
        return last_touches(connection, job_ids, max(most, KNOWN_RUNS) if view.newest else most)
    others = connection.scalars(_belongs_to(), {"job_ids": list(job_ids)}).all()
    jobs = seen_jobs(connection, {*job_ids, *others})
    given = {"job_ids": list(names_of_jobs(connection, jobs)), "jobs": list(jobs), "moment": view.at}
    query = _touches(connection.dialect.name, view.live, view.past)
    return list(map(Touch._make, connection.execute(query, given).all()))


def with_known_runs(connection: Connection, view: View) -> View:
    """The same view for a walk, which asks once how many runs are known, not once a level."""
    return replace(view, runs=known_runs(connection)) if view.runs is None else view


def last_runs(connection: Connection, job_id: int, view: View) -> list[int]:
    """The last runs of a job, by the newest first: as many as are known of it, or the newest alone."""
    runs_known = known_runs(connection) if view.runs is None else view.runs
    begun = [runs.c.first_at <= view.at] if view.past else []
    of_job = select(runs.c.id).where(runs.c.job_id == job_id, runs.c.newest_at.is_not(None), *begun)
    last = of_job.order_by(runs.c.newest_at.desc(), runs.c.id.desc()).limit(1 if view.newest else runs_known + 1)
    return list(connection.scalars(last))


def known_runs(connection: Connection) -> int:
    """How many owning runs before the newest application are known: STRANDLINE_KNOWN_RUNS, as the server has it."""
    value = connection.scalar(_known_runs())
    return KNOWN_RUNS if value is None else int(value)


@cache
def _known_runs() -> Select[Any]:
    return select(store_settings.c.value).where(store_settings.c.key == "known_runs")


def names_of_jobs(connection: Connection, job_ids: Iterable[int]) -> set[int]:
    """What the runs are called in the end whose relations count as these jobs': as they are, or as their micro-batches."""
    return {*job_ids, *(name for names in names_by_job(connection, job_ids).values() for name in names)}


def names_by_job(connection: Connection, job_ids: Iterable[int]) -> dict[int, set[int]]:
    """Of each of these jobs what its micro-batches are called, where they have names of their own."""
    found: dict[int, set[int]] = {}
    for job, name in connection.execute(_batches_of(), {"jobs": list(job_ids)}):
        if name != job:
            found.setdefault(job, set()).add(name)
    return found


@cache
def _belongs_to() -> Select[Any]:
    """Whose the runs are that were reported under these names."""
    named = job_relations.join(run_owners, run_owners.c.run_id == job_relations.c.run_id)
    return (
        select(run_owners.c.job_id).distinct().select_from(named).where(among_given(job_relations.c.job_id, "job_ids"))
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
def _touches(dialect: str, live: bool, past: bool) -> Select[Any]:
    """Made once: to build it takes longer than to answer it. What is cut are the relations of the oldest runs."""
    ended = runs.c.ended_at <= MOMENT if past else true()
    void = and_(made_nothing(relations, runs), ended)
    joined, running = _running(dialect, past) if live else (_owned(), [])
    valid = among_given(runs.c.job_id, "job_ids"), *_valid(past), *running
    query = touching(void).select_from(touched(joined)).where(*valid)
    query = query.where(among_given(run_owners.c.job_id, "jobs"))
    return (query if live else query.order_by(runs.c.newest_at.desc())).limit(MOST_ROWS)


def _as_of(one: Touch, moment: int) -> Touch:
    """What came after the moment was not heard yet."""
    return one._replace(at=min(one.at, moment), run_at=min(one.run_at, moment))


def _owned() -> FromClause:
    return runs.join(run_owners, run_owners.c.run_id == runs.c.id)


def _valid(past: bool) -> list[ColumnElement[bool]]:
    """Now what has begun or ended has done so, also by a clock that is ahead; of the past it is asked whether by then."""
    failed = is_undone(relations, runs)
    if past:
        failed = and_(failed, runs.c.ended_at <= MOMENT)
    begun = [relations.c.first_at <= MOMENT] if past else []
    return [~failed, *begun]


def _running(dialect: str, past: bool) -> tuple[FromClause, list[ColumnElement[bool]]]:
    """Runs that run. They come before their relations: most of a job's have ended, and what those touched needs no look."""
    owner = run_owners.c.owner_id
    ends, silences = of_each(dialect, run_ends, owner), of_each(dialect, run_silences, owner)
    joined = _owned().join(ends, ends.c.run_id == owner).join(silences, silences.c.run_id == owner)
    started, ended = func.coalesce(owners.c.started_at, runs.c.started_at), ends.c.ended_at
    return joined, [
        started <= MOMENT if past else started.is_not(None),
        or_(ended.is_(None), ended > MOMENT) if past else ended.is_(None),
        silences.c.silent_at >= MOMENT,
    ]
