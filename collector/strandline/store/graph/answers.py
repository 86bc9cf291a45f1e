"""Lineage between tables and jobs from entries in memory.

The same answer as store/lineage/table_lineage.py has, as JSON.

What is asked of the database besides is little: which datasets were dropped, where something was
said of that.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import orjson
from sqlalchemy import Connection

from strandline.core.changes.extraction import SINK, SOURCE
from strandline.core.walk import Direction, walk
from strandline.store.graph.entries import EdgeText, GraphStep, part_of
from strandline.store.graph.looked import Entries, LookedAt
from strandline.store.lineage.dropped import drop_answers
from strandline.store.lineage.table_lineage import Question, begun_at, outcome


def may_answer(asked: Question) -> bool:
    """Whether such a question can be answered from memory.

    Of what is known now, without jobs above others.
    """
    view = asked.view
    return not (view.past or view.live or view.newest) and asked.collapse == "none"


def answer_from(connection: Connection, entries: Entries, asked: Question) -> bytes:
    """The answer as JSON; NotKeptError where only the database has it."""
    graph = _EntryGraph(LookedAt.from_(entries, asked.starts))
    found = walk(
        graph, [node.id for node in asked.starts], asked.direction, asked.depth, asked.most
    )
    steps = cast("Collection[GraphStep]", found.steps)
    writing = _Writing(connection, graph.looked, found.nodes, steps, asked.view.at)
    whole = orjson.dumps(outcome(found, asked.view, graph.looked.hidden(), 0))
    nodes, edges = b",".join(writing.nodes()), b",".join(writing.edges())
    return b"".join(
        (b'{"nodes":[', nodes, b'],"edges":[', edges, b"],", whole[1:])
    )  # % takes 20 times as long


@dataclass(frozen=True, slots=True)
class _EntryGraph:
    """The graph as a walk takes it."""

    looked: LookedAt

    def steps(self, nodes: Sequence[int], way: Direction, limit: int) -> Sequence[GraphStep]:
        """See core.walk.Graph."""
        is_up, looked = way is Direction.UPSTREAM, self.looked
        near, far = (SINK, SOURCE) if is_up else (SOURCE, SINK)
        starts = looked.starts.intersection(nodes)
        asked = frozenset(nodes) - starts
        found: list[GraphStep] = []
        passed = [*starts]
        for id_, job in looked.jobs_at(
            starts, [node for node in nodes if node in asked], near
        ).items():
            leaving: Sequence[GraphStep] = job.steps
            if id_ not in starts:  # written out, as a hub has thousands of jobs
                leaving = [
                    step for step in leaving if (step.target if is_up else step.source) in asked
                ]
            if leaving:
                found += leaving
                passed.append(id_)
        looked.nodes[near].update(nodes)
        looked.passed[far].update(passed)
        return found[:limit]


class _Writing:
    """Nodes and edges of a walk as JSON.

    A node's place is where it stands in the order of names.
    """

    def __init__(
        self,
        connection: Connection,
        looked: LookedAt,
        distances: Mapping[int, int],
        steps: Collection[GraphStep],
        moment: int,
    ) -> None:
        self._looked, self._steps, self._distances = looked, steps, distances
        self._labels = looked.labels(distances)
        names = {id_: label.id for id_, label in self._labels.items()}
        self._ordered = sorted(names, key=names.__getitem__)
        self._places = dict(zip(self._ordered, range(len(self._ordered)), strict=True))
        self._after = self._drops(connection, moment) | self._newest_runs()

    def _drops(self, connection: Connection, moment: int) -> dict[int, bytes]:
        kept = self._looked.datasets
        asked = [id_ for id_ in self._labels if id_ in kept and kept[id_].has_lifecycle]
        drops = drop_answers(connection, asked, moment) if asked else {}
        return {id_: b"," + part_of(more) for id_, more in drops.items() if more}

    def _newest_runs(self) -> dict[int, bytes]:
        """What each job shows of the run that began last, of those that its steps are known from."""
        newest: dict[int, int] = {}
        for step in self._steps:
            run = step.newest
            if run is not None and (shown := newest.setdefault(step.via, run)) != run:
                states = self._looked.jobs[step.via].states
                newest[step.via] = max(shown, run, key=lambda one: begun_at(states[one]))
        return {job: self._looked.jobs[job].outcomes[run] for job, run in newest.items()}

    def nodes(self) -> list[bytes]:
        """The nodes, the nearest first."""
        distances, labels, after = self._distances, self._labels, self._after
        found = []
        for id_ in sorted(self._ordered, key=distances.__getitem__):
            label = labels[id_]
            found.append(
                b'{%b,"distance":%d%b%b}'
                % (label.before, distances[id_], label.after, after.get(id_, b""))
            )
        return found

    def edges(self) -> list[bytes]:
        """The edges in order: by their targets, then their sources."""
        texts, origins = self._texts_and_origins()
        quoted, many = [self._labels[id_].quoted for id_ in self._ordered], len(self._ordered)
        found = []
        for edge in sorted(texts):
            target, source = divmod(edge, many)
            last = b""
            if (made_from := origins.get(edge)) is not None:
                last = b',"origins":[%b]' % b",".join(
                    [quoted[place] for place in sorted(made_from)]
                )
            found.append(
                b'{"source":%b,"target":%b%b%b}'
                % (quoted[source], quoted[target], texts[edge].json, last)
            )
        return found

    def _texts_and_origins(self) -> tuple[dict[int, EdgeText], dict[int, set[int]]]:
        """What edges show, and which places those that are written are made from.

        An edge is the number that orders it.
        """
        places, many = self._places, len(self._places)
        texts: dict[int, EdgeText] = {}
        origins: dict[int, set[int]] = {}
        for step in self._steps:
            via = places[step.via]
            source, target = (
                places.get(cast("int", step.source)),
                places.get(cast("int", step.target)),
            )
            if (
                source is not None
                and texts.setdefault(read := via * many + source, step.read) is not step.read
            ):
                texts[read] = self._looked.jobs[step.via].join(texts[read], step.read)
            if target is not None:
                if (
                    texts.setdefault(written := target * many + via, step.written)
                    is not step.written
                ):
                    texts[written] = self._looked.jobs[step.via].join(texts[written], step.written)
                sources = origins.setdefault(written, set())
                if source is not None:
                    sources.add(source)
        return texts, origins
