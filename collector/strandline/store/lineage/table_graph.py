"""The graph of datasets and jobs in a database, as a walk takes it.

Jobs are read ahead of the walk, which then makes the steps level by level.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain

from sqlalchemy import Connection

from strandline.core.changes.extraction import SINK, SOURCE
from strandline.core.walk import MOST_NODES, Direction, Walk, WalkStep, walk
from strandline.store.lineage.hidden import Looked
from strandline.store.lineage.job_steps import Leave, Reason, by_job
from strandline.store.lineage.known_jobs import KnownJob, KnownJobs, stated_of
from strandline.store.lineage.nested_commands import without_nested
from strandline.store.lineage.relations import with_known_runs
from strandline.store.lineage.run_state import View
from strandline.store.lineage.stated_edges import newest_readers


@dataclass(slots=True)
class TableGraph:
    """Datasets and jobs. `reasons` has the newest of all steps that a walk asked for.

    `jobs` are the starts of the walk that are jobs.
    """

    connection: Connection
    view: View
    jobs: frozenset[int] = frozenset()
    known: KnownJobs | None = None
    starts: frozenset[int] | None = None  # of the walk; None: all nodes
    reasons: dict[WalkStep[int], Reason] = field(default_factory=dict)
    looked: Looked = field(default_factory=Looked)

    def __post_init__(self) -> None:
        self.view = with_known_runs(self.connection, self.view)
        if self.known is None:
            self.known = KnownJobs(self.connection, self.view)

    def walk(
        self,
        starts: Sequence[int],
        direction: Direction,
        depth: int | None = None,
        most: int = MOST_NODES,
    ) -> Walk[int]:
        """Walk from some nodes; see core.walk.walk."""
        assert self.known is not None
        others = [start for start in starts if start not in self.jobs]
        jobs = [start for start in starts if start in self.jobs]
        self.starts = frozenset(starts)
        for way in direction.ways:
            self.known.look_ahead(others, jobs, way, depth, most)
        return walk(self, starts, direction, depth, most)

    def steps(self, nodes: Sequence[int], way: Direction, limit: int) -> Sequence[WalkStep[int]]:
        """Return the steps that leave these nodes; see core.walk.Graph."""
        known = self._jobs_at(nodes, way, limit)
        edges = [edge for job in known.values() for edge in job.edges]
        shown = without_nested(self.connection, edges, self.jobs)
        relations = {id_: job.relations for id_, job in known.items()}
        if len(shown) < len(edges):
            relations = by_job(shown)
        leave = Leave(frozenset(nodes), way, self.starts)
        leaving = chain(
            self._definitions(nodes, way, limit),
            *(of_job.steps(known[id_].stated, leave) for id_, of_job in relations.items()),
        )
        steps: dict[WalkStep[int], None] = {}
        for step, reason in leaving:  # the runs of a job may each have the same step into a view
            if step not in steps and len(steps) == limit:
                break
            steps[step] = None
            earlier = self.reasons.get(step)
            if earlier is None or not step.is_view or reason.seen.at > earlier.seen.at:
                self.reasons[step] = reason
        self.looked.add(nodes, self.jobs, way, edges, steps.keys())
        return list(steps)

    def _definitions(
        self, nodes: Sequence[int], way: Direction, limit: int
    ) -> Iterator[tuple[WalkStep[int], Reason]]:
        """Yield the steps into the views among these nodes, from what any reader says they show."""
        assert self.known is not None
        if way is not Direction.UPSTREAM:
            return
        views = self.known.views_among(nodes)
        newest = newest_readers(self.connection, views, self.view.at if self.view.past else None)
        readers = self.known.called({job for _, job in newest})
        if not {run for run, _ in newest} <= stated_of(readers.values()).views.keys():
            # A newest run does not count in this view; older ones of other jobs may.
            readers = self.known.called(self.known.touching(views, SOURCE, limit))
        for job in readers.values():
            yield from job.relations.definitions(job.stated, views)

    def _jobs_at(self, nodes: Sequence[int], way: Direction, limit: int) -> dict[int, KnownJob]:
        """Return the jobs among these nodes, and those that touch the datasets among them."""
        assert self.known is not None
        direction = SINK if way is Direction.UPSTREAM else SOURCE
        starts = self.jobs.intersection(nodes)
        others = [node for node in nodes if node not in starts]
        names = self.known.touching(others, direction, limit) if others else []
        return self.known.called([*starts, *names])
