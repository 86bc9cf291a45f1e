"""Lineage between tables and jobs from entries in memory: the same answer as store/lineage/table_lineage.py has, as JSON.

What is asked of the database besides is little: which datasets were dropped, where something was said of that.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Protocol, cast

import orjson
from sqlalchemy import Connection

from strandline.core.changes.extraction import SINK, SOURCE
from strandline.core.walk import Direction, walk
from strandline.store.graph.entries import DatasetEntry, EdgeText, GraphStep, JobEntry, NodeLabel, part_of
from strandline.store.lineage.dropped import drop_answers
from strandline.store.lineage.hidden import Key
from strandline.store.lineage.lookup import Node
from strandline.store.lineage.table_lineage import Question, begun_at, outcome

Ends = tuple[int, int]  # of an edge: source and target


class NotKeptError(Exception):
    """The question, or something that it leads to, is answered by the database alone."""


class Entries(Protocol):
    """Where entries come from: out of memory, or else read now."""

    def datasets(self, ids: Collection[int]) -> Mapping[int, DatasetEntry]:
        """The entries of these datasets, at least."""

    def jobs(self, ids: Collection[int]) -> Mapping[int, JobEntry]:
        """The entries of these jobs and of those that runs of these names belong to, at least."""


def may_answer(asked: Question) -> bool:
    """Whether such a question can be answered from memory: of what is known now, without jobs above others."""
    view = asked.view
    return not (view.past or view.live or view.newest) and asked.collapse == "none"


def answer_from(connection: Connection, entries: Entries, asked: Question) -> bytes:
    """The answer as JSON; NotKeptError where only the database has it."""
    graph = _EntryGraph(entries, frozenset(_starting_job(entries, node) for node in asked.starts if node.kind == "job"))
    found = walk(graph, [node.id for node in asked.starts], asked.direction, asked.depth, asked.most)
    steps = cast("Collection[GraphStep]", found.steps)
    writing = _Writing(connection, graph, found.nodes, steps, asked.view.at)
    whole = orjson.dumps(outcome(found, asked.view, graph.hidden(), 0))
    return b'{"nodes":[%b],"edges":[%b],%b' % (b",".join(writing.nodes()), b",".join(writing.edges()), whole[1:])


def _starting_job(entries: Entries, node: Node) -> int:
    """The job, where it stands for itself alone and has relations."""
    job = entries.jobs([node.id])[node.id]
    if job.also or not job.has_relations or job.has_nested:
        raise NotKeptError
    return job.id


@dataclass(slots=True)
class _EntryGraph:
    """The graph as a walk takes it, with all entries that it led to; and what was looked at (store/lineage/hidden.py)."""

    entries: Entries
    starts: frozenset[int]
    datasets: dict[int, DatasetEntry] = field(default_factory=dict)
    jobs: dict[int, JobEntry] = field(default_factory=dict)
    looked: dict[int, set[int]] = field(default_factory=lambda: {SOURCE: set(), SINK: set()})
    passed: dict[int, set[int]] = field(default_factory=lambda: {SOURCE: set(), SINK: set()})
    found: list[GraphStep] = field(default_factory=list)

    def steps(self, nodes: Sequence[int], way: Direction, limit: int) -> Sequence[GraphStep]:
        """See core.walk.Graph."""
        near, far = (SINK, SOURCE) if way is Direction.UPSTREAM else (SOURCE, SINK)
        starts = self.starts.intersection(nodes)
        asked = frozenset(nodes) - starts
        found: list[GraphStep] = []
        for job in self._jobs_at(starts, [node for node in nodes if node in asked], near):
            found += job.steps if job.id in starts else job.leaving(asked, way)
        self.looked[near].update(nodes)
        self.passed[far].update(starts, (step.via for step in found))
        self.found += found
        return found[:limit]

    def _jobs_at(self, starts: Collection[int], asked: Collection[int], direction: int) -> list[JobEntry]:
        """These jobs, and those that touch these datasets, each under the name that it was reported by or belongs to."""
        self.datasets |= self.entries.datasets(asked)
        names = dict.fromkeys([*starts, *(job for node in asked for job in self.datasets[node].touching[direction])])
        kept = self.entries.jobs(names)
        every = {job: kept[job] for name in names for job in (name, *kept[name].also)}
        if any(job.is_open for job in every.values()):
            raise NotKeptError
        self.jobs |= every
        return list(every.values())

    def hidden(self) -> int:
        """How many relations were reported of what was looked at, and are none of those that are known."""
        reported = self._reported_at_datasets() | self._reported_of_jobs()
        if not reported:
            return 0
        reported -= {(step.via, end, id_) for step in self.found for end, id_ in enumerate((step.source, step.target))}
        return sum(1 for key in reported if not self._is_touched(*key))

    def _is_touched(self, job: int, direction: int, dataset: int) -> bool:
        return job in self.jobs and self.jobs[job].touches(direction, dataset)

    def _reported_at_datasets(self) -> set[Key]:
        having = (job.reported for job in self.jobs.values() if job.reported)
        return {key for reported in having for key in reported if key[2] in self.looked[key[1]]}

    def _reported_of_jobs(self) -> set[Key]:
        found: set[Key] = set()
        for direction, passed in self.passed.items():
            names = passed.union(*(self.jobs[job].names for job in passed))
            for entry in self.entries.jobs(names).values():
                if entry.reported:
                    found.update(key for key in entry.reported if key[1] == direction and key[0] in passed)
        return found


class _Writing:
    """Nodes and edges of a walk as JSON."""

    def __init__(
        self,
        connection: Connection,
        graph: _EntryGraph,
        distances: Mapping[int, int],
        steps: Collection[GraphStep],
        moment: int,
    ) -> None:
        self._graph, self._steps, self._distances = graph, steps, distances
        self._labels = self._labels_of(distances)
        self._after = self._drops(connection, moment) | self._newest_runs()

    def _labels_of(self, ids: Collection[int]) -> dict[int, NodeLabel]:
        """How these nodes are shown; what has no row any more is not."""
        graph = self._graph
        graph.datasets |= graph.entries.datasets([id_ for id_ in ids if id_ not in graph.jobs])
        labels = ((id_, (graph.jobs.get(id_) or graph.datasets[id_]).label) for id_ in ids)
        return {id_: label for id_, label in labels if label is not None}

    def _drops(self, connection: Connection, moment: int) -> dict[int, bytes]:
        kept = self._graph.datasets
        asked = [id_ for id_ in self._labels if id_ in kept and kept[id_].has_lifecycle]
        drops = drop_answers(connection, asked, moment) if asked else {}
        return {id_: b"," + part_of(more) for id_, more in drops.items() if more}

    def _newest_runs(self) -> dict[int, bytes]:
        """What each job shows of the run that began last, of those that its steps are known from."""
        newest: dict[int, int] = {}
        for step in self._steps:
            shown = newest.get(step.via)
            if step.newest is None or step.newest == shown:
                continue
            states = self._graph.jobs[step.via].states
            if shown is None or begun_at(states[step.newest]) > begun_at(states[shown]):
                newest[step.via] = step.newest
        return {job: self._graph.jobs[job].outcomes[run] for job, run in newest.items()}

    def nodes(self) -> list[bytes]:
        """The nodes, the nearest first."""
        distances, labels = self._distances, self._labels
        ordered = sorted((distances[id_], label.id, id_) for id_, label in labels.items())
        return [self._node(labels[id_], distance, self._after.get(id_, b"")) for distance, _, id_ in ordered]

    @staticmethod
    def _node(label: NodeLabel, distance: int, more: bytes) -> bytes:
        return b'{%b,"distance":%d%b%b}' % (label.before, distance, label.after, more)

    def edges(self) -> list[bytes]:
        """The edges in order: by their targets, then their sources."""
        labels = self._labels
        reads: dict[Ends, EdgeText] = {}
        writes: dict[Ends, EdgeText] = {}
        origins: dict[Ends, set[int]] = {}
        for step in self._steps:
            source, via, target = step.source, step.via, step.target
            if source in labels:
                self._put(reads, (source, via), step.read, via)
            if target in labels:
                self._put(writes, (via, target), step.written, via)
                if source in labels:
                    origins.setdefault((via, target), set()).add(source)
        found = [
            (labels[ends[1]].id, labels[ends[0]].id, ends, text) for ends, text in (*reads.items(), *writes.items())
        ]
        found.sort(key=itemgetter(0, 1))
        return [self._edge(ends, text, origins.get(ends, ()), ends in writes) for _, _, ends, text in found]

    def _put(self, texts: dict[Ends, EdgeText], ends: Ends, text: EdgeText, job: int) -> None:
        before = texts.get(ends)
        if before is not text:
            texts[ends] = text if before is None else self._graph.jobs[job].join(before, text)

    def _edge(self, ends: tuple[int, int], text: EdgeText, origins: Collection[int], is_written: bool) -> bytes:
        labels = self._labels
        source, target = labels[ends[0]].quoted, labels[ends[1]].quoted
        if not is_written:
            return b'{"source":%b,"target":%b%b}' % (source, target, text.json)
        if len(origins) > 1:
            origins = sorted(origins, key=lambda id_: labels[id_].id)
        listed = b",".join([labels[id_].quoted for id_ in origins])
        return b'{"source":%b,"target":%b%b,"origins":[%b]}' % (source, target, text.json, listed)
