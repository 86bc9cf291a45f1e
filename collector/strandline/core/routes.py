"""The ways between two nodes, of the steps that walks have found.

Every step that lies on one, and a shortest one.
"""

from collections import defaultdict, deque
from collections.abc import Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from strandline.core.walk import WalkStep

Node = TypeVar("Node", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Routes(Generic[Node]):
    """The ways from the first nodes to the last.

    `distances` is how many jobs lie between the first node and each, `steps` are those on any way,
    `shortest` has the nodes of a shortest one in order.
    """

    distances: dict[Node, int]
    steps: dict[
        WalkStep[Node], WalkStep[Node]
    ]  # as shown -> as found: a job at either end has no dataset beyond it
    shortest: list[Node]


def routes(
    steps: Iterable[WalkStep[Node]], first: Collection[Node], last: Collection[Node]
) -> Routes[Node]:
    """Return the paths from any first node (a dataset or column, or a name's jobs) to any last."""
    # Thousands of columns may be asked for: each step looks its ends up among them.
    first, last = dict.fromkeys(first), dict.fromkeys(last)
    steps_taken = list(steps)
    forward = _reached(steps_taken, first, onwards=True)
    backward = _reached(steps_taken, last, onwards=False)
    shown: dict[WalkStep[Node], WalkStep[Node]] = {}
    for step in steps_taken:
        if step.is_view:
            if step.source in forward and step.target in backward:
                shown[step] = step
            continue
        begins = step.via in first or step.source in forward
        ends = step.via in last or step.target in backward
        if begins and ends:
            source = None if step.via in first and step.source not in forward else step.source
            target = None if step.via in last and step.target not in backward else step.target
            shown[WalkStep(source, step.via, target)] = step
    return Routes(_distances(shown, first, forward), shown, _shortest(shown, first, last))


def _reached(
    steps: list[WalkStep[Node]], starts: Collection[Node], *, onwards: bool
) -> dict[Node, int]:
    """Return the reachable nodes, with their distance in steps.

    A start that is a job is left by its own steps, never entered.
    """
    leaving: dict[Node, list[WalkStep[Node]]] = defaultdict(list)
    for step in steps:
        near = step.source if onwards else step.target
        if step.via in starts and not step.is_view:
            leaving[step.via].append(step)
        if near is not None:
            leaving[near].append(step)
    distances, waiting = dict.fromkeys(starts, 0), deque(starts)
    while waiting:
        node = waiting.popleft()
        for step in leaving[node]:
            beyond = step.target if onwards else step.source
            if beyond is not None and beyond not in distances:
                distances[beyond] = distances[node] + 1
                waiting.append(beyond)
    return distances


def _distances(
    shown: Mapping[WalkStep[Node], WalkStep[Node]],
    first: Collection[Node],
    forward: Mapping[Node, int],
) -> dict[Node, int]:
    distances: dict[Node, int] = {}
    for step in shown:
        begun = 0 if step.source is None else forward[step.source]
        at = 0 if step.via in first and not step.is_view else begun + 1
        for node, distance in ((step.source, begun), (step.via, at), (step.target, begun + 1)):
            if node is not None:
                distances[node] = min(distance, distances.get(node, distance))
    return distances


def _leaving(
    shown: Iterable[WalkStep[Node]], first: Collection[Node]
) -> dict[Node, list[WalkStep[Node]]]:
    leaving: dict[Node, list[WalkStep[Node]]] = defaultdict(list)
    for step in shown:
        via = step.via if step.via in first and not step.is_view else None
        for node in {step.source, via} - {None}:
            leaving[node].append(step)  # type: ignore[index]
    return leaving


def _shortest(
    shown: Iterable[WalkStep[Node]], first: Collection[Node], last: Collection[Node]
) -> list[Node]:
    """Dataset, job, dataset, ...: nothing where there is no way."""
    leaving = _leaving(shown, first)
    before: dict[Node, tuple[Node, ...]] = dict.fromkeys(first, ())
    waiting = deque(first)
    while waiting:
        node = waiting.popleft()
        for step in leaving[node]:
            here = (*before[node], node) if step.via != node else before[node]
            if step.via in last:
                return [*here, step.via]
            if step.target is None:
                continue
            if step.target in last:
                return [*here, step.via, step.target]
            if step.target not in before:
                before[step.target] = here if step.is_view else (*here, step.via)
                waiting.append(step.target)
    return []
