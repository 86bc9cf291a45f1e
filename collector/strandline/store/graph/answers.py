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
            leaving = job.steps if job.id in starts else job.leaving(asked, way)
            if leaving:
                found += leaving
                self.passed[far].add(job.id)
        self.looked[near].update(nodes)
        self.passed[far].update(starts)
        self.found += found
        return found[:limit]

    def _jobs_at(self, starts: Collection[int], asked: Collection[int], direction: int) -> list[JobEntry]:
        """These jobs, and those that touch these datasets, each under the name that it was reported by or belongs to."""
        self.datasets |= self.entries.datasets(asked)
        names = dict.fromkeys(starts)
        for node in asked:
            names.update(self.datasets[node].touching[direction])
        kept = self.entries.jobs(names)
        every: dict[int, JobEntry] = {}
        for name in names:
            every[name] = job = kept[name]
            for other in job.also:
                every[other] = kept[other]
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
        passed = self.passed[SOURCE] | self.passed[SINK]
        having = [job for id_ in passed if (job := self.jobs[id_]).reported]
        others = {name for id_ in passed for name in self.jobs[id_].names} - passed
        if others:
            having += [job for job in self.entries.jobs(others).values() if job.reported]
        return {key for job in having for key in job.reported if key[0] in self.passed[key[1]]}


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
        self._places = {id_: place for place, id_ in enumerate(sorted(self._labels, key=self._id_of))}
        self._after = self._drops(connection, moment) | self._newest_runs()

    def _id_of(self, node: int) -> str:
        return self._labels[node].id

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
            run, shown = step.newest, newest.get(step.via)
            if run is None or run == shown:
                continue
            if shown is not None:
                states = self._graph.jobs[step.via].states
                if begun_at(states[run]) <= begun_at(states[shown]):
                    continue
            newest[step.via] = run
        return {job: self._graph.jobs[job].outcomes[run] for job, run in newest.items()}

    def nodes(self) -> list[bytes]:
        """The nodes, the nearest first."""
        distances, labels, after = self._distances, self._labels, self._after
        found = []
        for id_ in sorted(self._places, key=distances.__getitem__):
            label = labels[id_]
            found.append(b'{%b,"distance":%d%b%b}' % (label.before, distances[id_], label.after, after.get(id_, b"")))
        return found

    def edges(self) -> list[bytes]:
        """The edges in order: by their targets, then their sources."""
        places = self._places
        reads: dict[Ends, EdgeText] = {}
        writes: dict[Ends, EdgeText] = {}
        origins: dict[Ends, set[int]] = {}
        for step in self._steps:
            source, via, target = step.source, step.via, step.target
            if source in places:
                self._put(reads, (source, via), step.read)
            if target in places:
                written = via, target
                self._put(writes, written, step.written)
                if source in places:
                    origins.setdefault(written, set()).add(source)
        many = len(places)
        found = [(places[ends[1]] * many + places[ends[0]], self._edge(ends, text)) for ends, text in reads.items()]
        for ends, text in writes.items():
            listed = self._origins(origins.get(ends, ()))
            found.append((places[ends[1]] * many + places[ends[0]], self._edge(ends, text, listed)))
        found.sort(key=itemgetter(0))
        return [edge for _, edge in found]

    def _put(self, texts: dict[Ends, EdgeText], ends: Ends, text: EdgeText) -> None:
        before = texts.setdefault(ends, text)
        if before is not text:
            job = ends[0] if ends[0] in self._graph.jobs else ends[1]
            texts[ends] = self._graph.jobs[job].join(before, text)

    def _edge(self, ends: Ends, text: EdgeText, origins: bytes = b"") -> bytes:
        labels = self._labels
        return b'{"source":%b,"target":%b%b%b}' % (labels[ends[0]].quoted, labels[ends[1]].quoted, text.json, origins)

    def _origins(self, sources: Collection[int]) -> bytes:
        """The sources of a written edge, by their names."""
        labels = self._labels
        ordered = sources if len(sources) < 2 else sorted(sources, key=self._places.__getitem__)
        return b',"origins":[%b]' % b",".join([labels[id_].quoted for id_ in ordered])
