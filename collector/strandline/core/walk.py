"""One walk over lineage, whatever its graph is: tables, columns or snapshots.

The graph is an argument that answers one question: which steps leave these nodes in this direction.
The walk goes level by level, so a graph in a database is asked once a level; it stops at a depth or
a size and says when it did.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Generic, Protocol, TypeVar

from strandline.core.stopping import go_on

Node = TypeVar("Node", bound=Hashable)

MOST_NODES = 5_000  # more than a person can look at; a walk from a hub takes time in proportion
STEPS_A_NODE = 4  # a dense graph is cut by its steps: 5,000 nodes could have 25 million
LEAST_STEPS = (
    20_000  # however few nodes are asked for: one job with 140 inputs and outputs has so many
)


class Direction(StrEnum):
    """The direction of a walk from a node.

    What it was made from, what was made from it, or both, each on its own.
    """

    UPSTREAM = "upstream"
    DOWNSTREAM = "downstream"
    BOTH = "both"

    @property
    def ways(self) -> tuple["Direction", ...]:
        """The walks that answer it."""
        return (Direction.UPSTREAM, Direction.DOWNSTREAM) if self is Direction.BOTH else (self,)


@dataclass(frozen=True, slots=True)
class WalkStep(Generic[Node]):
    """`via` (a job) made `target` from `source`.

    No source: it made it from nothing known; no target: it only read. A step whose `via` is its
    target leads into a view from what the view shows. `passes_view`: the source is a view, and
    steps from what it showed lead into it; a walk upstream follows those and does not go on from
    the view.
    """

    source: Node | None
    via: Node
    target: Node | None
    passes_view: bool = field(default=False, compare=False)

    @property
    def is_view(self) -> bool:
        """Return whether it leads from what a view's query reads to the view."""
        return self.via == self.target


class Graph(Protocol[Node]):
    """A graph that can be walked."""

    def steps(self, nodes: Sequence[Node], way: Direction, limit: int) -> Sequence[WalkStep[Node]]:
        """Return the steps that leave `nodes` by `way`; from a job, those that go through it.

        At most `limit` are returned.
        """


@dataclass(slots=True)
class Walk(Generic[Node]):
    """The result of a walk: each node with its distance, each step once, and its limit.

    left_out: the nodes next to these that a depth or a size cut off; what lies behind them was not
    looked at.
    """

    nodes: dict[Node, int]
    steps: dict[WalkStep[Node], None] = field(default_factory=dict)
    truncated_by: str | None = None
    left_out: set[Node] = field(default_factory=set)

    @property
    def complete(self) -> bool:
        """True if nothing was left out."""
        return self.truncated_by is None


def walk(
    graph: Graph[Node],
    starts: Sequence[Node],
    direction: Direction,
    depth: int | None = None,
    most: int = MOST_NODES,
) -> Walk[Node]:
    """Return everything within `depth` steps of `starts`, up to `most` nodes.

    Without a depth the walk goes to the ends of the graph.

    Both directions are two walks, joined: what else the sources of a node feed is no lineage of
    that node.
    """
    search = _search(graph, starts, direction, depth, most)
    search.left_out -= search.nodes.keys()
    return search


def _search(
    graph: Graph[Node], starts: Sequence[Node], direction: Direction, depth: int | None, most: int
) -> Walk[Node]:
    def search(way: Direction, most: int) -> Walk[Node]:
        return _Search(graph, way, max(most, len(starts)), Walk(dict.fromkeys(starts, 0))).run(
            depth
        )

    first, *second = direction.ways
    if not second:
        return search(first, most)
    half = most - (most - len(starts)) // 2  # the starts are in both
    walked = search(first, half)
    other = search(second[0], most + len(starts) - len(walked.nodes))
    if (
        walked.truncated_by not in (None, "depth") and len(other.nodes) < half
    ):  # what the second left is the first's
        walked = search(first, most + len(starts) - len(other.nodes))
    _join(walked, other)
    return walked


@dataclass(slots=True)
class _Search(Generic[Node]):
    graph: Graph[Node]
    way: Direction
    most: int
    found: Walk[Node]
    passed: set[Node] = field(default_factory=set)  # views that the walk has not gone on from

    def run(self, depth: int | None) -> Walk[Node]:
        frontier, distance = list(self.found.nodes), 0
        while frontier and self.found.complete and distance != depth:
            distance += 1
            frontier = self._level(frontier, distance)
        if frontier and self.found.complete:
            self._look_ahead(frontier)
        return self.found

    def _level(self, frontier: list[Node], distance: int) -> list[Node]:
        """Take the steps that leave the frontier.

        The nodes reached for the first time are the next frontier.
        """
        steps = self._steps(frontier)
        has_room = len(self.found.nodes) + 2 * len(steps) <= self.most
        take = self._take_all if has_room and self.found.complete else self._take_some
        return take(steps, distance)

    def _take_some(self, steps: Sequence[WalkStep[Node]], distance: int) -> list[Node]:
        """Take of these steps the first ones, as many as there is room for."""
        nodes, is_up, reached = self.found.nodes, self.way is Direction.UPSTREAM, list[Node]()
        for index, step in enumerate(steps):
            via, beyond = step.via, step.source if is_up else step.target
            is_beyond_new = beyond is not None and beyond not in nodes and beyond != via
            if len(nodes) + (via not in nodes) + is_beyond_new > self.most:
                self.found.truncated_by = "nodes"
                self._leave_out(steps[index:])
                break
            self._take(step, distance, reached)
        return reached

    def _take_all(self, steps: Sequence[WalkStep[Node]], distance: int) -> list[Node]:
        """Take these steps, where there is room for whatever they lead to."""
        reached = list[Node]()
        for step in steps:
            self._take(step, distance, reached)
        return reached

    def _take(self, step: WalkStep[Node], distance: int, reached: list[Node]) -> None:
        """Take a step, and add to `reached` the node that the walk goes on from."""
        nodes, is_up = self.found.nodes, self.way is Direction.UPSTREAM
        self.found.steps[step] = None
        beyond = step.source if is_up else step.target
        if beyond is not None and (beyond not in nodes or beyond in self.passed):
            nodes.setdefault(beyond, distance)
            if is_up and step.passes_view:
                self.passed.add(beyond)
            else:
                self.passed.discard(beyond)
                reached.append(beyond)
        if step.via not in nodes:
            nodes[step.via] = distance
            if step.is_view:
                self.passed.add(step.via)

    def _look_ahead(self, frontier: list[Node]) -> None:
        """Look past the last level.

        A step to what is known closes a circle and belongs here; any other is cut off.
        """
        found, is_up = self.found, self.way is Direction.UPSTREAM
        nodes, left_out, is_cut = found.nodes, set[Node | None](), False
        for step in self._steps(frontier):
            via, beyond = step.via, step.source if is_up else step.target
            goes_on = beyond in self.passed and not step.passes_view
            if via in nodes and (beyond is None or beyond in nodes) and not goes_on:
                found.steps[step] = None
            else:
                is_cut = True
                left_out.update((via, beyond))
        if is_cut:
            found.truncated_by = "depth"
            found.left_out.update(node for node in left_out if node is not None)

    def _steps(self, frontier: list[Node]) -> Sequence[WalkStep[Node]]:
        go_on()
        room = max(self.most * STEPS_A_NODE, LEAST_STEPS) - len(self.found.steps)
        steps = self.graph.steps(frontier, self.way, room + 1)
        if len(steps) > room:
            self.found.truncated_by = "edges"
            self._leave_out(steps[room:])
        return steps[:room]

    def _leave_out(self, steps: Sequence[WalkStep[Node]]) -> None:
        is_up, left_out = self.way is Direction.UPSTREAM, self.found.left_out
        left_out.update([step.via for step in steps])
        left_out.update(
            [end for step in steps if (end := step.source if is_up else step.target) is not None]
        )


def _join(whole: Walk[Node], part: Walk[Node]) -> None:
    for node, distance in part.nodes.items():
        whole.nodes[node] = min(distance, whole.nodes.get(node, distance))
    whole.steps |= part.steps
    whole.left_out |= part.left_out
    whole.truncated_by = whole.truncated_by or part.truncated_by
