"""A graph around one node, step by step: a few nodes of each step, and the number of the rest.

A step is a number of edges from the node in the middle: below zero upstream, above it downstream.
A job is counted and ordered by its latest run, also where that failed and its edges are of an
older one (`latestRun`).
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]
Ends = defaultdict[str, set[str]]

MOST_OF_STEP = 12  # boxes, with the one for the rest
URGENCY = {"FAIL": 0, "LOST": 0, "ABORT": 0, "START": 1, "RUNNING": 1}
CALM = 2


@dataclass(frozen=True, slots=True)
class StepNodes:
    """The nodes of one step, in the order in which they are shown, and how many are."""

    nodes: Sequence[Json]
    shown: int


def graph_around(answer: Json, middle: str, pinned: Collection[str] = ()) -> Json:
    """Return a graph with at most 12 boxes a step; one box stands for the rest of a step.

    Pinned nodes are shown in any case.
    """
    steps = steps_around(answer, middle, pinned)
    nodes: list[Json] = []
    box_of: dict[str, str] = {}
    for step, of_step in steps.items():
        shown, rest = of_step.nodes[: of_step.shown], of_step.nodes[of_step.shown :]
        nodes += shown
        box_of |= {node["id"]: node["id"] for node in shown}
        if rest:
            nodes.append(_rest_box(step, of_step.shown, rest))
            box_of |= {node["id"]: f"rest:{step}" for node in rest}
    totals = {str(step): len(of_step.nodes) for step, of_step in steps.items()}
    edges = _joined_edges(answer["edges"], box_of)
    return answer | {"nodes": nodes, "edges": edges, "totals": totals}


def nodes_of_step(
    answer: Json, middle: str, step: int, first: int, most: int, pinned: Collection[str] = ()
) -> Json:
    """Return a page of the nodes of a step, those that a graph shows before the rest."""
    of_step = steps_around(answer, middle, pinned).get(step, StepNodes((), 0))
    last = first + most
    rest = {name: value for name, value in answer.items() if name not in ("nodes", "edges")}
    return rest | {
        "items": list(of_step.nodes[first:last]),
        "nextCursor": str(last) if last < len(of_step.nodes) else None,
        "total": len(of_step.nodes),
    }


def steps_around(answer: Json, middle: str, pinned: Collection[str] = ()) -> dict[int, StepNodes]:
    """Return the nodes of a graph by their step, in the order in which they are shown."""
    step_of = _steps(answer, middle)
    latest = _latest_runs(answer["edges"])
    by_step: dict[int, list[Json]] = defaultdict(list)
    for node in answer["nodes"]:
        step = step_of[node["id"]]
        placed = node | {"step": step}
        if node["type"] == "job" and node["id"] in latest:
            placed["latestRun"] = latest[node["id"]]
        by_step[step].append(placed)
    sources, targets = _ends_by_node(answer["edges"])
    steps: dict[int, StepNodes] = {}
    visible: set[str] = set()
    for step in sorted(by_step, key=lambda step: (abs(step), step)):
        towards, away = (targets, sources) if step < 0 else (sources, targets)
        nodes = _in_order(by_step[step], visible, (towards, away), pinned)
        fits = len(nodes) <= MOST_OF_STEP
        in_any_case = sum(node["id"] in pinned for node in nodes)
        shown = len(nodes) if fits else max(MOST_OF_STEP - 1, in_any_case)
        steps[step] = StepNodes(nodes, shown)
        visible.update(node["id"] for node in nodes[:shown])
    return dict(sorted(steps.items()))


def _steps(answer: Json, middle: str) -> dict[str, int]:
    """Return how many edges away each node is; of two ways the shorter counts, then upstream.

    A node that no way leads to, as another job of the same name, stands beside the middle: it is
    neither upstream nor downstream.
    """
    backwards, onwards = defaultdict(list), defaultdict(list)
    for edge in answer["edges"]:
        backwards[edge["target"]].append(edge["source"])
        onwards[edge["source"]].append(edge["target"])
    upstream, downstream = _distances(middle, backwards), _distances(middle, onwards)
    steps: dict[str, int] = {}
    for node in answer["nodes"]:
        id_ = node["id"]
        ways = [-upstream[id_]] if id_ in upstream else []
        ways += [downstream[id_]] if id_ in downstream else []
        steps[id_] = min(ways, key=abs) if ways else 0
    return steps


def _distances(start: str, leading: Mapping[str, Iterable[str]]) -> dict[str, int]:
    distances = {start: 0}
    waiting = [start]
    for node in waiting:
        for other in leading.get(node, ()):
            if other not in distances:
                distances[other] = distances[node] + 1
                waiting.append(other)
    return distances


def _latest_runs(edges: Iterable[Json]) -> dict[str, Json]:
    """Map the ends of edges to the latest run, where it failed after the run of the edge."""
    return {
        edge[end]: edge["latestRun"]
        for edge in edges
        if edge.get("latestRun")
        for end in ("source", "target")
    }


def _latest_state(node: Json) -> str:
    state: str = node.get("latestRun", node).get("state", "NONE")
    return state


def _ends_by_node(edges: Iterable[Json]) -> tuple[Ends, Ends]:
    """Return the sources and the targets of the edges at each node."""
    sources: Ends = defaultdict(set)
    targets: Ends = defaultdict(set)
    for edge in edges:
        sources[edge["target"]].add(edge["source"])
        targets[edge["source"]].add(edge["target"])
    return sources, targets


def _in_order(
    nodes: Iterable[Json],
    visible: Collection[str],
    ends: tuple[Ends, Ends],
    pinned: Collection[str],
) -> list[Json]:
    """Return nodes as they are shown.

    Pinned ones come first, then those that failed, those that run, those beside a node that is
    shown, and then the newest. What a shown job writes comes before what else it reads, and
    upstream the other way round: `ends` are those towards the middle, then those away from it.
    """
    towards, away = ends

    def urgency(node: Json) -> tuple[bool, int, bool, bool]:
        state = URGENCY.get(_latest_state(node), CALM)
        id_ = node["id"]
        return (
            id_ not in pinned,
            state,
            towards[id_].isdisjoint(visible),
            away[id_].isdisjoint(visible),
        )

    newest_first = sorted(nodes, key=lambda node: node["id"])
    newest_first.sort(key=lambda node: node.get("startedAt") or "", reverse=True)
    return sorted(newest_first, key=urgency)


def _rest_box(step: int, shown: int, rest: Sequence[Json]) -> Json:
    return {
        "id": f"rest:{step}",
        "type": "rest",
        "namespace": "",
        "name": f"{len(rest)} more",
        "distance": rest[0]["distance"],
        "step": step,
        "nodes": len(rest),
        "types": dict(Counter(node["type"] for node in rest)),
        "states": dict(Counter(map(_latest_state, rest))),
        "nextCursor": str(shown),
    }


def _joined_edges(edges: Iterable[Json], box_of: Mapping[str, str]) -> list[Json]:
    """Return the edges between boxes; `edges` counts those that an edge to a rest stands for."""
    between: dict[tuple[str, str], list[Json]] = defaultdict(list)
    for edge in edges:
        between[box_of[edge["source"]], box_of[edge["target"]]].append(edge)
    joined: list[Json] = []
    for (source, target), alike in sorted(between.items(), key=lambda item: item[0][::-1]):
        if source == alike[0]["source"] and target == alike[0]["target"]:
            joined.append(alike[0])
        elif source != target:
            joined.append(_joined_edge(source, target, alike))
    return joined


def _joined_edge(source: str, target: str, alike: Sequence[Json]) -> Json:
    edge = {"source": source, "target": target, "edges": len(alike)}
    rules = {edge.get("rule") for edge in alike}
    if len(rules) == 1:
        edge["rule"] = rules.pop()
    times = [edge["lastSeen"] for edge in alike if edge.get("lastSeen")]
    return edge | ({"lastSeen": max(times)} if times else {})
