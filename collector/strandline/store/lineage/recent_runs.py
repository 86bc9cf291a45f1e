"""The runs of a job that count, recent or latest, and the edges that they have.

Recent are all owning runs below the job's newest application, and the last few before it. The rule
stands here twice, because retention decides it for all jobs in the database: `recent_runs_of` for
rows in memory, `RECENT_RUNS_SQL` for a whole store. The latest run counts whatever it reported.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from operator import attrgetter
from typing import Any, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Connection,
    FromClause,
    Select,
    and_,
    func,
    literal,
    or_,
    select,
)

from strandline.store.lineage.empty_writes import UNFINISHED, is_batch_write, owners, wrote_nothing
from strandline.store.lineage.run_state import (
    MOMENT,
    View,
    run_owners,
)
from strandline.store.schema.conditions import CREATED_NOTHING
from strandline.store.schema.dataset_tables import datasets
from strandline.store.schema.relation_tables import relations
from strandline.store.schema.run_tables import jobs, run_parents, runs
from strandline.store.sql.each import for_each

above = run_parents.alias("above")


class Seen(NamedTuple):
    """The last sighting of an edge, the runs that had it, the runs that count, and the newest."""

    at: int
    owners: frozenset[int]
    among: frozenset[int]
    newest: frozenset[int]

    def joined(self, other: "Seen") -> "Seen":
        """Return the union of both."""
        if self is other:
            return self
        return Seen(
            max(self.at, other.at),
            self.owners | other.owners,
            self.among | other.among,
            self.newest | other.newest,
        )


NEVER = Seen(0, frozenset(), frozenset(), frozenset())


class JobEdge(NamedTuple):
    """An edge between a job and a dataset, as one run reported it.

    `dataset` is canonical, `named` as the run called it. `owner` is the run that shows it;
    `of_query` says that it is a streaming query, and the run one of its micro-batches.
    """

    job: int
    direction: int
    dataset: int
    named: int
    run: int
    owner: int
    since: int
    at: int = 0
    of_query: bool = False
    seen: Seen = NEVER


def age_of(job_edge: JobEdge) -> tuple[int, int, int]:
    """Return the order of edges: when one was last seen, when first, and its run."""
    return job_edge.at, job_edge.since, job_edge.owner


class Sighting(NamedTuple):
    """A stored relation with the run that owns it.

    `run_at` and `run_since` are the newest and first event of the run. `wrote_nothing` marks a
    write that brought no rows, `may_be_lost` one that silence alone can still undo.
    `may_have_below` marks an application that may have runs below it.
    """

    job: int
    direction: int
    dataset: int
    named: int
    run: int
    owner: int
    since: int
    at: int
    of_query: bool
    application: int
    run_at: int
    run_since: int
    wrote_nothing: bool = False
    may_be_lost: bool = False
    may_have_below: bool = False


class RecentRuns(NamedTuple):
    """The owning runs of a job that are recent, the newest first."""

    owners: Sequence[int]

    @property
    def newest(self) -> int:
        """The newest of them."""
        return self.owners[0]


def has_relations(run_id: ColumnElement[int]) -> ColumnElement[bool]:
    """Return the condition that a run read or wrote a dataset.

    It is looked up run by run: for EXISTS, PostgreSQL may read all runs' relations first.
    """
    some = select(literal(1)).where(relations.c.run_id == run_id).limit(1)
    return some.correlate_except(relations).scalar_subquery().is_not(None)


def with_relations(owned: FromClause) -> FromClause:
    """Join runs and their owners with what they read and wrote."""
    joined = owned.join(relations, relations.c.run_id == runs.c.id)
    joined = joined.join(datasets, datasets.c.id == relations.c.dataset_id)
    joined = joined.outerjoin(owners, owners.c.id == run_owners.c.owner_id)
    return joined.outerjoin(above, above.c.run_id == run_owners.c.owner_id)


def sightings(past: bool) -> Select[Any]:
    """Select the columns of `Sighting`, to be completed by `with_relations`.

    The application of a run is the one above its owner.
    """
    return select(
        run_owners.c.job_id.label("job"),
        relations.c.direction,
        datasets.c.canonical_id.label("dataset"),
        relations.c.dataset_id.label("named"),
        runs.c.id.label("run"),
        run_owners.c.owner_id.label("owner"),
        relations.c.first_at.label("since"),
        relations.c.newest_at.label("at"),
        (func.coalesce(owners.c.query, 0) == 1).label("of_query"),
        func.coalesce(above.c.parent_run_id, run_owners.c.owner_id).label("application"),
        runs.c.newest_at.label("run_at"),
        runs.c.first_at.label("run_since"),
        wrote_nothing(past).label("wrote_nothing"),
        and_(is_batch_write(), runs.c.state.in_(UNFINISHED)).label("may_be_lost"),
        or_(above.c.parent_run_id.is_not(None), owners.c.child_received_at > 0).label(
            "may_have_below"
        ),
    )


_RUN = attrgetter("job", "owner", "application", "run_at", "run_since")


def recent_runs_of(sightings: Iterable[Sighting], count: int) -> dict[int, RecentRuns]:
    """Map each job to its recent runs: all of its newest application, and `count` before."""
    ages: dict[int, dict[int, tuple[int, int, int]]] = defaultdict(dict)
    applications: dict[int, int] = {}
    # A run has several sightings: to take each run once is half the work of a hub.
    for job, owner, application, run_at, run_since in set(map(_RUN, sightings)):
        newest_at, newest_since, _ = ages[job].get(owner, (run_at, run_since, owner))
        ages[job][owner] = max(newest_at, run_at), max(newest_since, run_since), owner
        applications[owner] = application
    return {
        job: RecentRuns(
            _recent(sorted(of_job, key=of_job.__getitem__, reverse=True), applications, count)
        )
        for job, of_job in ages.items()
    }


def _recent(owners: Sequence[int], applications: Mapping[int, int], count: int) -> Sequence[int]:
    """Return the recent ones of a job's owning runs, which are given with the newest first."""
    newest = applications[owners[0]]
    earlier = [owner for owner in owners if applications[owner] != newest]
    dropped = frozenset(earlier[count:])
    return [owner for owner in owners if owner not in dropped]


# The same for all jobs of a store: the runs whose rows retention keeps.
RECENT_RUNS_SQL = f"""
WITH owning AS (
       SELECT owned.run_id, owned.owner_id, owned.job_id, run.newest_at, run.first_at,
              coalesce(above.parent_run_id, owned.owner_id) AS application_id
         FROM run_owners owned
         JOIN runs run ON run.id = owned.run_id
         LEFT JOIN run_parents above ON above.run_id = owned.owner_id
        WHERE EXISTS (SELECT 1 FROM run_relations sink
                       WHERE sink.run_id = run.id
                         AND NOT {CREATED_NOTHING.format(sink="sink", run="run")})),
     owners AS (
       SELECT job_id, owner_id, max(newest_at) AS newest_at, max(first_at) AS first_at,
              min(application_id) AS application_id
         FROM owning
        GROUP BY job_id, owner_id),
     ordered AS (
       SELECT owners.*, first_value(application_id) OVER (
                PARTITION BY job_id
                ORDER BY newest_at DESC, first_at DESC, owner_id DESC) AS newest_id
         FROM owners),
     placed AS (
       SELECT ordered.*, row_number() OVER (
                PARTITION BY job_id, CASE WHEN application_id = newest_id THEN 1 ELSE 0 END
                ORDER BY newest_at DESC, first_at DESC, owner_id DESC) AS place
         FROM ordered)
SELECT owning.run_id
  FROM owning
  JOIN placed ON placed.job_id = owning.job_id AND placed.owner_id = owning.owner_id
 WHERE (placed.application_id = placed.newest_id OR placed.place <= :recent_runs)
   AND (owning.run_id = owning.owner_id
        OR EXISTS (SELECT 1 FROM job_relations newest WHERE newest.run_id = owning.run_id))
"""


def of_recent_runs(
    sightings: Sequence[Sighting], recent: Mapping[int, RecentRuns]
) -> list[Sighting]:
    """Return the inputs and outputs of the recent runs."""
    owners = {job: frozenset(of_job.owners) for job, of_job in recent.items()}
    return [sighting for sighting in sightings if sighting.owner in owners[sighting.job]]


def of_latest_run(
    sightings: Sequence[Sighting], latest: Mapping[int, tuple[int, int, int]]
) -> list[Sighting]:
    """Return the inputs and outputs of each job's latest run, if it reported any.

    `latest` has the latest run of each job, whatever it reported, as (newest event, first event,
    run). A streaming query without events of its own is as new as its micro-batches.
    """
    newest = dict(latest)
    for sighting in sightings:
        age = sighting.run_at, sighting.run_since, sighting.owner
        newest[sighting.job] = max(age, newest.get(sighting.job, age))
    return [sighting for sighting in sightings if sighting.owner == newest[sighting.job][2]]


def job_edges(sightings: Sequence[Sighting], recent: Mapping[int, RecentRuns]) -> list[JobEdge]:
    """Return sightings as edges of jobs, each with what all of them say of its dataset."""
    tallies: dict[tuple[int, int, int], _Tally] = {}
    for sighting in sightings:
        tally = tallies.setdefault(sighting[:3], _Tally())
        tally.owners.add(sighting.owner)
        tally.at = max(tally.at, sighting.at)
    among = {
        job: (frozenset(of_job.owners), frozenset((of_job.newest,)))
        for job, of_job in recent.items()
    }
    seen = {
        key: Seen(tally.at, frozenset(tally.owners), *among[key[0]])
        for key, tally in tallies.items()
    }
    return [JobEdge(*sighting[:9], seen[sighting[:3]]) for sighting in sightings]


@dataclass(slots=True)
class _Tally:
    """The last sighting of a dataset by a job, and the owning runs that had it."""

    at: int = 0
    owners: set[int] = field(default_factory=set)


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
