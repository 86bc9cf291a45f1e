"""The graph of datasets and jobs in a database, and walks through it from the nodes of a question.

Jobs are read ahead of a walk, which then makes the steps level by level.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from sqlalchemy import Connection

from strandline.core.changes.extraction import SOURCE
from strandline.core.walk import MOST_NODES, Direction, Walk, WalkStep, walk
from strandline.store.lineage.hidden_edges import Key, Looked
from strandline.store.lineage.hidden_nodes import hidden_beside, seen_jobs
from strandline.store.lineage.hierarchy import Above, above, jobs_of, runs_below
from strandline.store.lineage.job_steps import Leave, Reason, by_job
from strandline.store.lineage.known_jobs import KnownJobs, stated_of
from strandline.store.lineage.lookup import Node
from strandline.store.lineage.nested_commands import without_nested
from strandline.store.lineage.recent_runs import JobEdge
from strandline.store.lineage.relations import jobs_called, recent_runs_named
from strandline.store.lineage.run_state import View, iso
from strandline.store.lineage.stated_edges import newest_readers

Answer = dict[str, Any]
Steps = Sequence[tuple[WalkStep[int], Reason]]


@dataclass(frozen=True, slots=True)
class Question:
    """A question about one or several nodes.

    `depth` is the number of jobs on the way, None for all. `collapse` is none, parent or root. A
    job that is asked for with collapse, or that touches nothing itself, stands for all that ran
    below it.
    """

    node: Node
    view: View
    direction: Direction = Direction.BOTH
    depth: int | None = None
    most: int = MOST_NODES
    collapse: str = "none"
    others: tuple[Node, ...] = ()  # further nodes to start from
    dependencies: tuple[str, ...] = ()  # between columns: only edges of these; none: all

    @property
    def starts(self) -> tuple[Node, ...]:
        """All nodes that are asked for, each once."""
        return tuple(dict.fromkeys((self.node, *self.others)))


@dataclass(slots=True)
class TableGraph:
    """Datasets and jobs. `reasons` has the newest of all steps that a walk asked for.

    `jobs` are the starts of the walk that are jobs.
    """

    known: KnownJobs
    jobs: frozenset[int] = frozenset()
    starts: frozenset[int] | None = None  # of the walk; None: all nodes
    reasons: dict[WalkStep[int], Reason] = field(default_factory=dict)
    looked: Looked = field(default_factory=Looked)

    def walk(
        self,
        starts: Sequence[int],
        direction: Direction,
        depth: int | None = None,
        most: int = MOST_NODES,
    ) -> Walk[int]:
        """Walk from some nodes; see core.walk.walk."""
        others = [start for start in starts if start not in self.jobs]
        jobs = [start for start in starts if start in self.jobs]
        self.starts = frozenset(starts)
        for way in direction.ways:
            self.known.look_ahead(others, jobs, way, depth, most)
        return walk(self, starts, direction, depth, most)

    def steps(self, nodes: Sequence[int], way: Direction, limit: int) -> Sequence[WalkStep[int]]:
        """Return the steps that leave these nodes; see core.walk.Graph."""
        known = self.known.around(nodes, self.jobs, way, limit)
        edges = [edge for job in known.values() for edge in job.edges]
        shown = without_nested(self.known.connection, edges, self.jobs)
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
        if way is not Direction.UPSTREAM:
            return
        views = self.known.views_among(nodes)
        view = self.known.view
        newest = newest_readers(self.known.connection, views, view.at if view.past else None)
        readers = self.known.called({job for _, job in newest})
        if not {run for run, _ in newest} <= stated_of(readers.values()).views.keys():
            # A newest run does not count in this view; older ones of other jobs may.
            readers = self.known.called(self.known.touching(views, SOURCE, limit))
        for job in readers.values():
            yield from job.relations.definitions(job.stated, views)


@dataclass(frozen=True, slots=True)
class WalkedTables:
    """A walk between tables with the jobs that an answer shows: those above others in their place.

    `higher` maps owning runs to what is shown in their place.
    """

    graph: TableGraph
    found: Walk[int]
    distances: Mapping[int, int]
    steps: Steps
    higher: Mapping[int, Above]

    def outcome(
        self, connection: Connection, view: View, shown: Iterable[int]
    ) -> tuple[Answer, set[Key]]:
        """Return the answer's fields about its size, and the edges that it leaves out."""
        hidden = self.graph.looked.hidden(connection, view)
        return outcome(self.found, view, len(hidden), hidden_beside(connection, shown)), hidden


def walk_tables(connection: Connection, question: Question, known: KnownJobs) -> WalkedTables:
    """Walk between tables and jobs from the nodes of a question."""
    wholes = [_StartingJobs.of(connection, question, node, known) for node in question.starts]
    starts = list(dict.fromkeys(start for whole in wholes for start in whole.jobs or [whole.node]))
    start_jobs = frozenset(job for whole in wholes for job in whole.jobs)
    graph = TableGraph(known, start_jobs)
    walked = graph.walk(starts, question.direction, question.depth, question.most)
    return as_shown(connection, graph, walked, question, wholes)


def as_shown(
    connection: Connection,
    graph: TableGraph,
    walked: Walk[int],
    question: Question,
    wholes: Sequence["_StartingJobs"] = (),
) -> WalkedTables:
    """Return a walk with the jobs above others in their place, as a question wants it."""
    steps: Steps = [(step, graph.reasons[step]) for step in walked.steps]
    distances = walked.nodes
    higher: dict[int, Above] = {}
    if question.collapse != "none" or any(whole.below for whole in wholes):
        owners = {relation.owner for _, reason in steps for relation in relations_in(reason)}
        higher = above(connection, owners, question.collapse)
        for whole in wholes:
            higher |= whole.above(owners)
        higher = _seen_above(connection, higher)
    for whole in wholes:
        distances = whole.joined(distances)
    if higher or any(whole.below for whole in wholes):
        distances, steps = _collapsed(distances, steps, higher)
    return WalkedTables(graph, walked, distances, steps, higher)


def _seen_above(connection: Connection, higher: Mapping[int, Above]) -> dict[int, Above]:
    """A job above that the key does not see stands for nothing."""
    visible = seen_jobs(connection, {run.job for run in higher.values()})
    return {owner: run for owner, run in higher.items() if run.job in visible}


@dataclass(frozen=True, slots=True)
class _StartingJobs:
    """The jobs that a walk starts from.

    The one asked for, and where it is shown for all that ran below it, those.

    below: the run of the asked job that each of the runs is below.
    """

    node: int
    jobs: list[int]
    below: Mapping[int, int]

    @classmethod
    def of(
        cls, connection: Connection, question: Question, node: Node, known: KnownJobs
    ) -> "_StartingJobs":
        if node.kind != "job":
            return cls(node.id, [], {})
        jobs = jobs_called(connection, node.id)
        if question.collapse == "none" and known.called([node.id])[node.id].edges:
            return cls(node.id, jobs, {})
        below = runs_below(connection, recent_runs_named(connection, node.id, question.view))
        return cls(node.id, list(dict.fromkeys([*jobs, *jobs_of(connection, below)])), below)

    def above(self, owners: Iterable[int]) -> dict[int, Above]:
        """The asked job in the place of each owner that ran below it."""
        return {
            owner: Above(self.below[owner], self.node) for owner in owners if owner in self.below
        }

    def joined(self, distances: Mapping[int, int]) -> dict[int, int]:
        """The distances without the jobs that the asked one stands for."""
        if not self.jobs:
            return dict(distances)
        others = {job for job in self.jobs if job != self.node} if self.below else set()
        return {node: distance for node, distance in distances.items() if node not in others} | {
            self.node: 0
        }


def jobs_for(connection: Connection, node: Node, known: KnownJobs) -> list[int]:
    """Return the jobs that a job stands for.

    Itself, and where it touches nothing all that ran below its last runs.
    """
    return _StartingJobs.of(connection, Question(node, known.view), node, known).jobs


def outcome(walked: Walk[Any], view: View, hidden: int, unseen: int) -> Answer:
    """Return the size of the walk's graph, its moment, and the numbers of what is hidden.

    unseen: how many nodes beside it are in namespaces that the key does not see.
    """
    shown = {"complete": walked.complete, "truncatedBy": walked.truncated_by, "asOf": iso(view.at)}
    left_out = {"nodes": len(walked.left_out), "edges": hidden}
    if not unseen:
        return shown | {"hidden": left_out}
    shown |= {"complete": False, "truncatedBy": walked.truncated_by or "access"}
    return shown | {"hidden": left_out | {"access": unseen}}


def relations_in(reason: Reason) -> Iterable[JobEdge]:
    """The relations that a step stands on."""
    return (side for side in (reason.read, reason.written) if side is not None)


def _collapsed(
    distances: Mapping[int, int], steps: Steps, higher: Mapping[int, Above]
) -> tuple[dict[int, int], Steps]:
    """The same with every job replaced by the job above the run that the step is known from."""
    shown: list[tuple[WalkStep[int], Reason]] = []
    instead: dict[int, set[int]] = {}
    for step, reason in steps:
        if step.is_view:
            shown.append((step, reason))
            continue
        owner = next(side.owner for side in (reason.written, reason.read) if side is not None)
        job = higher[owner].job if owner in higher else step.via
        shown.append((WalkStep(step.source, job, step.target), reason))
        instead.setdefault(step.via, set()).add(job)
    nodes: dict[int, int] = {}
    for node, distance in distances.items():
        for node_shown in instead.get(node, {node}):
            nodes[node_shown] = min(distance, nodes.get(node_shown, distance))
    for step, _ in shown:
        nodes.setdefault(step.via, 1)
    return nodes, shown
