"""The jobs that a question comes by, each read once."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple, Protocol

from sqlalchemy import Connection, Integer, Select, TextClause, bindparam, select, text

from strandline.core.changes.extraction import SINK, SOURCE
from strandline.core.walk import Direction
from strandline.store.lineage.job_steps import JobRelations, StatedSources, by_job, stated_sources
from strandline.store.lineage.recent_runs import JobEdge
from strandline.store.lineage.relations import (
    job_edges_with_open_jobs,
    owning_jobs,
    with_known_runs,
)
from strandline.store.lineage.run_state import View
from strandline.store.lineage.stated_edges import views_among
from strandline.store.schema.dataset_tables import datasets
from strandline.store.schema.relation_tables import job_relations
from strandline.store.sql.engine import by_index
from strandline.store.sql.id_lists import among_given

JOBS_PER_LOAD = 2_000


class KnownJob(NamedTuple):
    """The edges of one job, and the jobs that own runs which were reported under its name.

    `is_open` marks a job with a batch run that has not ended: silence alone may undo its writes.
    """

    edges: tuple[JobEdge, ...]
    relations: JobRelations
    stated: StatedSources
    owners: tuple[int, ...]
    is_open: bool


def stated_of(jobs: Iterable[KnownJob]) -> StatedSources:
    """Return the sources that runs of all these jobs state, and the views that they read."""
    stated = StatedSources({}, {})
    for job in jobs:
        stated.of_sinks.update(job.stated.of_sinks)
        stated.views.update(job.stated.views)
    return stated


class SharedJobs(Protocol):
    """Jobs that outlive a question."""

    def among(self, ids: Collection[int]) -> dict[int, KnownJob]:
        """Return those of these jobs that are kept."""

    def keep(self, jobs: Mapping[int, KnownJob]) -> None:
        """Keep jobs that this question read."""


@dataclass(slots=True)
class KnownJobs:
    """The jobs that a question has read, from the database or from jobs that outlive it."""

    connection: Connection
    view: View
    shared: SharedJobs | None = None
    jobs: dict[int, KnownJob] = field(default_factory=dict)
    at: tuple[dict[int, list[int]], dict[int, list[int]]] = field(default_factory=lambda: ({}, {}))
    views: dict[int, bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.view = with_known_runs(self.connection, self.view)

    @property
    def state_columns(self) -> bool:
        """True if events state columns or sources for a sink of one of these jobs."""
        return any(job.stated.of_sinks for job in self.jobs.values())

    def look_ahead(
        self,
        datasets: Collection[int],
        jobs: Collection[int],
        way: Direction,
        depth: int | None,
        most: int,
    ) -> None:
        """Read at once the jobs within a number of steps of some datasets and jobs.

        At most so many nodes are looked up; a walk that needs more reads the rest level by level.
        """
        near, far = (SINK, SOURCE) if way is Direction.UPSTREAM else (SOURCE, SINK)
        starts = [*((0, id_) for id_ in datasets), *((1, id_) for id_ in jobs)]
        if not starts:
            return
        levels = {"levels": depth} if depth is not None else {}
        query = _reached(self.connection.dialect.name, len(starts), depth is not None)
        bound = {"near": near, "far": far, "most": most, **levels}
        for place, (kind, id_) in enumerate(starts):
            bound |= {f"kind{place}": kind, f"id{place}": id_}
        reached = self.connection.execute(query, bound).all()
        near_datasets = [row.id for row in reached if row.kind == 0]
        self._find_jobs(near_datasets, near)
        if way is Direction.UPSTREAM:
            self.views_among(near_datasets)
        names = {name for jobs_at in self.at[near].values() for name in jobs_at}
        self.called([*jobs, *names])

    def called(self, names: Collection[int]) -> dict[int, KnownJob]:
        """Return the jobs of these names and the owners of runs that were reported under them."""
        self._load(names)
        known = {name: self.jobs[name] for name in names}
        known |= {owner: self.jobs[owner] for name in names for owner in self.jobs[name].owners}
        return known

    def touching(self, ids: Collection[int], direction: int, limit: int) -> list[int]:
        """Return names of jobs that ever read (direction 0) or wrote (1) these datasets."""
        self._find_jobs(ids, direction)
        names = dict.fromkeys(name for id_ in ids for name in self.at[direction][id_])
        return list(names)[:limit]

    def around(
        self, nodes: Collection[int], jobs: Collection[int], way: Direction, limit: int
    ) -> dict[int, KnownJob]:
        """Return the jobs that steps leave some nodes by: of a job among `jobs` itself."""
        near = SINK if way is Direction.UPSTREAM else SOURCE
        starts = [node for node in nodes if node in jobs]
        others = [node for node in nodes if node not in jobs]
        return self.called([*starts, *self.touching(others, near, limit)])

    def views_among(self, ids: Collection[int]) -> list[int]:
        """Return those of these datasets that a run read as views."""
        if missing := [id_ for id_ in ids if id_ not in self.views]:
            self.views.update(dict.fromkeys(missing, False))
            self.views.update(dict.fromkeys(views_among(self.connection, missing), True))
        return [id_ for id_ in ids if self.views[id_]]

    def _find_jobs(self, ids: Collection[int], direction: int) -> None:
        jobs_at = self.at[direction]
        missing = [id_ for id_ in ids if id_ not in jobs_at]
        if not missing:
            return
        jobs_at.update((id_, []) for id_ in missing)
        bound = {"ids": missing, "direction": direction}
        for id_, job in self.connection.execute(_jobs_at(), bound).all():
            jobs_at[id_].append(job)

    def _load(self, names: Collection[int]) -> None:
        missing = [name for name in names if name not in self.jobs]
        if missing and self.shared is not None:
            remembered = self.shared.among(missing)
            remembered |= self.shared.among(
                {owner for job in remembered.values() for owner in job.owners}
            )
            self.jobs |= remembered
        missing = [
            name
            for name in {*names, *(o for n in names if n in self.jobs for o in self.jobs[n].owners)}
            if name not in self.jobs
        ]
        for start in range(0, len(missing), JOBS_PER_LOAD):
            by_index(self.connection)
            loaded = load_jobs(self.connection, self.view, missing[start : start + JOBS_PER_LOAD])
            self.jobs |= loaded
            if self.shared is not None:
                self.shared.keep(loaded)


def load_jobs(connection: Connection, view: View, names: Collection[int]) -> dict[int, KnownJob]:
    """Read the jobs of these names, and those that own runs reported under them."""
    owners: dict[int, set[int]] = defaultdict(set)
    wanted, new = set[int](), set(names)
    while new:
        for name, of_name in owning_jobs(connection, new).items():
            owners[name] |= of_name - {name}
        wanted |= new
        new = {owner for name in new for owner in owners[name]} - wanted
    edges, open_jobs = job_edges_with_open_jobs(connection, view, list(wanted))
    stated: dict[int, StatedSources] = defaultdict(lambda: StatedSources({}, {}))
    job_of_run = {edge.run: edge.job for edge in edges}
    of_runs = stated_sources(connection, edges)
    for use, sources in of_runs.of_sinks.items():
        stated[job_of_run[use[0]]].of_sinks[use] = sources
    for run, views in of_runs.views.items():
        stated[job_of_run[run]].views[run] = views
    of_job: dict[int, list[JobEdge]] = defaultdict(list)
    for edge in edges:
        of_job[edge.job].append(edge)
    relations = by_job(edges)
    return {
        id_: KnownJob(
            tuple(of_job[id_]),
            relations.get(id_) or JobRelations(),
            stated[id_],
            tuple(sorted(owners[id_])),
            id_ in open_jobs,
        )
        for id_ in wanted
    }


@cache
def _jobs_at() -> Select[Any]:
    joined = job_relations.join(datasets, datasets.c.id == job_relations.c.dataset_id)
    return (
        select(datasets.c.canonical_id, job_relations.c.job_id)
        .distinct()
        .select_from(joined)
        .where(
            among_given(datasets.c.canonical_id, "ids"),
            job_relations.c.direction == bindparam("direction", type_=Integer),
        )
    )


# From datasets (kind 0) to the jobs (kind 1) that touch them on the near side, and on to the
# datasets on their far side. Without a depth each node is reached once; with one, once a level.
_REACHED = {
    "sqlite": """
WITH RECURSIVE reached (kind, id{level}) AS (
  SELECT * FROM (VALUES {starts})
   UNION
  SELECT 1, near.job_id{same}
    FROM reached
    JOIN datasets named ON named.canonical_id = reached.id
    JOIN job_relations near ON near.dataset_id = named.id AND near.direction = :near
   WHERE reached.kind = 0 {within}
   UNION
  SELECT 0, named.canonical_id{next}
    FROM reached
    JOIN job_relations far ON far.job_id = reached.id AND far.direction = :far
    JOIN datasets named ON named.id = far.dataset_id
   WHERE reached.kind = 1
   LIMIT :most)
SELECT DISTINCT kind, id FROM reached
""",
    "postgresql": """
WITH RECURSIVE reached (kind, id{level}) AS (
  SELECT * FROM (VALUES {starts}) start
   UNION
  SELECT hop.kind, hop.id{next_if_dataset}
    FROM reached
   CROSS JOIN LATERAL (
         SELECT 1 AS kind, near.job_id AS id
           FROM datasets named
           JOIN job_relations near ON near.dataset_id = named.id AND near.direction = :near
          WHERE reached.kind = 0 AND named.canonical_id = reached.id {within}
          UNION ALL
         SELECT 0, named.canonical_id
           FROM job_relations far
           JOIN datasets named ON named.id = far.dataset_id
          WHERE reached.kind = 1 AND far.job_id = reached.id AND far.direction = :far) hop)
SELECT DISTINCT kind, id FROM (SELECT kind, id FROM reached LIMIT :most) first
""",
}


@cache
def _reached(dialect: str, starts: int, has_depth: bool) -> TextClause:
    level = ", 0" if has_depth else ""
    values = ", ".join(
        f"(CAST(:kind{place} AS INTEGER), CAST(:id{place} AS BIGINT){level})"
        for place in range(starts)
    )
    return text(
        _REACHED[dialect].format(
            starts=values,
            level=", level" if has_depth else "",
            same=", reached.level" if has_depth else "",
            next=", reached.level + 1" if has_depth else "",
            next_if_dataset=", reached.level + 1 - hop.kind" if has_depth else "",
            within="AND reached.level < :levels" if has_depth else "",
        )
    )
