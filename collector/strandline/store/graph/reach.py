"""Which nodes lineage leads to, without the edges between them.

A walk that joins sets of ids and looks at no step.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import orjson

from strandline.core.changes.extraction import SINK, SOURCE
from strandline.core.walk import Direction, Walk
from strandline.store.graph.leads import Leads
from strandline.store.graph.looked import Entries, LookedAt
from strandline.store.lineage.table_lineage import Question, outcome


class LeadEntries(Entries, Protocol):
    """Entries, and where datasets lead."""

    def leads(self, near: int, ids: Collection[int]) -> Mapping[int, Leads]:
        """Where these datasets lead by way of jobs that touch them in the direction `near`."""


def reach_from(entries: LeadEntries, asked: Question) -> bytes:
    """The nodes as JSON, the nearest first, then by name.

    NotKeptError where only the database has them.
    """
    looked = LookedAt.from_(entries, asked.starts)
    found = reach(entries, looked, asked)
    looked.take_met()
    nearest = _nearest_of(found.nodes, _most(asked))
    labels = looked.labels(nearest)
    names = {id_: label.id for id_, label in labels.items()}
    ordered = sorted(sorted(names, key=names.__getitem__), key=nearest.__getitem__)
    if len(nearest) < len(found.nodes):
        found.truncated_by = "nodes"
        found.left_out |= found.nodes.keys() - nearest.keys()
    items = b",".join(
        [b'{"id":%b,"distance":%d}' % (labels[id_].quoted, nearest[id_]) for id_ in ordered]
    )
    rest = orjson.dumps(outcome(found, asked.view, looked.hidden(), 0))
    return b"".join((b'{"items":[', items, b"],", rest[1:]))


def _nearest_of(nodes: dict[int, int], most: int) -> dict[int, int]:
    """So many of the nodes that none is farther than one that is left out.

    Of those that are as far always the same ones.
    """
    if len(nodes) <= most:
        return nodes
    farthest = sorted(nodes.values())[most - 1]
    nearer = {id_: distance for id_, distance in nodes.items() if distance < farthest}
    as_far = sorted(id_ for id_, distance in nodes.items() if distance == farthest)
    return nearer | dict.fromkeys(as_far[: most - len(nearer)], farthest)


def _most(asked: Question) -> int:
    return max(asked.most, len(asked.starts))


def reach(entries: LeadEntries, looked: LookedAt, asked: Question) -> Walk[int]:
    """Nodes with their distances, without steps.

    All within the depth, or more than are asked for with none nearer left out.
    """
    starts = dict.fromkeys((node.id for node in asked.starts), 0)
    found = Walk[int]({})
    for way in asked.direction.ways:
        near, far = (SINK, SOURCE) if way is Direction.UPSTREAM else (SOURCE, SINK)
        search = _Reach(entries, looked.starts, near, dict(starts))
        if cut_off := search.run(asked.depth, _most(asked)):
            found.truncated_by = "depth"
            found.left_out |= cut_off
        found.nodes = _nearest(found.nodes, search.nodes)
        looked.nodes[near], looked.passed[far] = search.asked, search.passed
        looked.met |= search.idle
    found.left_out.difference_update(found.nodes)
    return found


def _nearest(one: dict[int, int], other: dict[int, int]) -> dict[int, int]:
    """The nodes of both with their lesser distances."""
    nearer = {
        id_: distance for id_, distance in one.items() if distance <= other.get(id_, distance)
    }
    return other | nearer if nearer else other


@dataclass(slots=True)
class _Reach:
    """A walk one way: from datasets that jobs touch in direction `near`, and from jobs.

    asked: whose leads were asked for. passed: jobs that led on; idle: others that were met.
    """

    entries: LeadEntries
    starts: frozenset[int]
    near: int
    nodes: dict[int, int]
    asked: set[int] = field(default_factory=set)
    passed: set[int] = field(default_factory=set)
    idle: set[int] = field(default_factory=set)

    def run(self, depth: int | None, most: int) -> set[int]:
        """Go until there is nothing more, to a depth, or until there are more nodes than are asked for; what the depth cut off."""
        frontier, distance, nodes = set(self.nodes), 0, self.nodes
        while frontier and len(nodes) <= most:
            passed, reached = self._beyond(frontier)
            if distance == depth:
                return passed.union(reached).difference(nodes)
            distance += 1
            frontier = reached.difference(nodes)
            nodes.update(dict.fromkeys(passed.difference(nodes), distance))
            nodes.update(dict.fromkeys(frontier, distance))
        return set()

    def _beyond(self, frontier: set[int]) -> tuple[set[int], set[int]]:
        """The jobs that lead on from these nodes, and where to."""
        starts = self.starts.intersection(frontier)
        leads = self.entries.leads(self.near, frontier - starts if starts else frontier).values()
        passed = set(starts).union(*[one.jobs for one in leads])
        reached = set[int]().union(*[one.datasets for one in leads])
        if starts:
            entries = self.entries.jobs(starts)
            steps = [step for id_ in starts for step in entries[id_].steps]
            reached.update(
                id_
                for step in steps
                if (id_ := step.source if self.near else step.target) is not None
            )
        self.idle.update(*[one.idle for one in leads if one.idle])
        self.passed |= passed
        self.asked |= frontier
        return passed, reached
