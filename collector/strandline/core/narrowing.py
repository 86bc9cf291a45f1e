"""A graph with some of its nodes taken out, so that what remains still says what depends on what.

Two nodes that were joined by way of hidden ones are joined by an edge that says how many lay
between (`through`). A job that is hidden joins a source and a sink only if it made the sink from
that source, as its edges' `origins` say.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]
Place = tuple[str, str | None]  # a node, and the node before it where that decides what follows

MOST_STEPS = 1_000_000  # through hidden nodes; beyond them an answer says that it was cut


@dataclass(slots=True)
class _Bridges:
    """Finds what a node leads to by way of hidden nodes."""

    edges: Mapping[str, Collection[Json]]
    kept: Collection[str]
    steps: int = 0
    seen: set[Place] = field(default_factory=set)

    def from_(self, start: str) -> Iterator[tuple[str, int]]:
        """(kept node, number of hidden nodes on the shortest way to it)."""
        self.seen = set()
        waiting: deque[tuple[Place, int]] = deque([((start, None), 0)])
        reached: set[str] = set()
        while waiting and self.steps < MOST_STEPS:
            (node, before), passed = waiting.popleft()
            for edge in self._onwards(node, before):
                self.steps += 1
                target = edge["target"]
                if target in self.kept:
                    if passed and target not in reached:
                        reached.add(target)
                        yield target, passed
                elif (place := (target, node)) not in self.seen:
                    self.seen.add(place)
                    waiting.append((place, passed + 1))

    def _onwards(self, node: str, before: str | None) -> Iterable[Json]:
        """Yield the edges that go on from a node.

        Of a job those to what it made from the dataset before.
        """
        for edge in self.edges.get(node, ()):
            origins = edge.get("origins")
            if before is None or origins is None or before in origins:
                yield edge


def narrowed(answer: Json, is_kept: Callable[[Json], bool]) -> Json:
    """Return the answer with the nodes that are kept; `hidden.filtered` counts the others."""
    nodes = {node["id"]: node for node in answer["nodes"] if is_kept(node)}
    if len(nodes) == len(answer["nodes"]):
        return answer | {"hidden": answer["hidden"] | {"filtered": 0}}
    bridges = _Bridges(_leaving(answer["edges"]), nodes.keys())
    edges = [
        edge for edge in answer["edges"] if edge["source"] in nodes and edge["target"] in nodes
    ]
    joined = {(edge["source"], edge["target"]) for edge in edges}
    for node in nodes:
        edges += _bridges_from(node, bridges, joined)
    hidden = answer["hidden"] | {"filtered": len(answer["nodes"]) - len(nodes)}
    shown = {
        "nodes": list(nodes.values()),
        "edges": sorted(edges, key=lambda edge: (edge["target"], edge["source"])),
    }
    cut = {"complete": False, "truncatedBy": "edges"} if bridges.steps >= MOST_STEPS else {}
    return answer | shown | {"hidden": hidden} | cut


def _bridges_from(node: str, bridges: _Bridges, joined: Collection[tuple[str, str]]) -> list[Json]:
    """Return the edges from a node through hidden ones to nodes not joined with it already."""
    return [
        {"source": node, "target": target, "rule": "through", "through": passed}
        for target, passed in bridges.from_(node)
        if (node, target) not in joined
    ]


def _leaving(edges: Iterable[Json]) -> dict[str, list[Json]]:
    """Return the edges by the node that they leave."""
    leaving: dict[str, list[Json]] = defaultdict(list)
    for edge in edges:
        leaving[edge["source"]].append(edge)
    return leaving
