"""Lineage between tables and jobs from entries in memory: the same answer as store/lineage/table_lineage.py has, as JSON.

What is asked of the database besides is little: which datasets were dropped, where something was said of that.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
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
    nodes, edges = b",".join(writing.nodes()), b",".join(writing.edges())
    return b"".join((b'{"nodes":[', nodes, b'],"edges":[', edges, b"],", whole[1:]))  # % takes 20 times as long


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
        is_up = way is Direction.UPSTREAM
        near, far = (SINK, SOURCE) if is_up else (SOURCE, SINK)
        starts = self.starts.intersection(nodes)
        asked = frozenset(nodes) - starts
        found: list[GraphStep] = []
        passed = [*starts]
        for id_, job in self._jobs_at(starts, [node for node in nodes if node in asked], near).items():
            leaving: Sequence[GraphStep] = job.steps
            if id_ not in starts:  # written out, as a hub has thousands of jobs
                leaving = [step for step in leaving if (step.target if is_up else step.source) in asked]
            if leaving:
                found += leaving
                passed.append(id_)
        self.looked[near].update(nodes)
        self.passed[far].update(passed)
        self.found += found
        return found[:limit]

    def _jobs_at(self, starts: Collection[int], asked: Collection[int], direction: int) -> Mapping[int, JobEntry]:
        """These jobs, and those that touch these datasets, each under the name that it was reported by or belongs to."""
        datasets = self.entries.datasets(asked)
        self.datasets.update(datasets)
        names = dict.fromkeys(starts)
        for node in asked:
            names.update(datasets[node].touching[direction])
        every = self.entries.jobs(names)
        if len(every) > len(names):  # more than was asked for
            every = {job: every[job] for name in names for job in (name, *every[name].also)}
        if any(job.is_open for job in every.values()):
            raise NotKeptError
        self.jobs.update(every)
        return every

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
    """Nodes and edges of a walk as JSON. A node's place is where it stands in the order of names."""

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
        names = {id_: label.id for id_, label in self._labels.items()}
        self._ordered = sorted(names, key=names.__getitem__)
        self._places = dict(zip(self._ordered, range(len(self._ordered)), strict=True))
        self._after = self._drops(connection, moment) | self._newest_runs()

    def _labels_of(self, ids: Collection[int]) -> dict[int, NodeLabel]:
        """How these nodes are shown; what has no row any more is not."""
        graph, jobs = self._graph, self._graph.jobs
        graph.datasets |= graph.entries.datasets([id_ for id_ in ids if id_ not in jobs])
        kept: Mapping[int, DatasetEntry | JobEntry] = {**graph.datasets, **jobs}
        return {id_: label for id_ in ids if (label := kept[id_].label) is not None}

    def _drops(self, connection: Connection, moment: int) -> dict[int, bytes]:
        kept = self._graph.datasets
        asked = [id_ for id_ in self._labels if id_ in kept and kept[id_].has_lifecycle]
        drops = drop_answers(connection, asked, moment) if asked else {}
        return {id_: b"," + part_of(more) for id_, more in drops.items() if more}

    def _newest_runs(self) -> dict[int, bytes]:
        """What each job shows of the run that began last, of those that its steps are known from."""
        newest: dict[int, int] = {}
        for step in self._steps:
            run = step.newest
            if run is not None and (shown := newest.setdefault(step.via, run)) != run:
                states = self._graph.jobs[step.via].states
                newest[step.via] = max(shown, run, key=lambda one: begun_at(states[one]))
        return {job: self._graph.jobs[job].outcomes[run] for job, run in newest.items()}

    def nodes(self) -> list[bytes]:
        """The nodes, the nearest first."""
        distances, labels, after = self._distances, self._labels, self._after
        found = []
        for id_ in sorted(self._ordered, key=distances.__getitem__):
            label = labels[id_]
            found.append(b'{%b,"distance":%d%b%b}' % (label.before, distances[id_], label.after, after.get(id_, b"")))
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
                last = b',"origins":[%b]' % b",".join([quoted[place] for place in sorted(made_from)])
            found.append(b'{"source":%b,"target":%b%b%b}' % (quoted[source], quoted[target], texts[edge].json, last))
        return found

    def _texts_and_origins(self) -> tuple[dict[int, EdgeText], dict[int, list[int]]]:
        """What edges show, and which places those that are written are made from; an edge is the number that orders it."""
        places, many = self._places, len(self._places)
        texts: dict[int, EdgeText] = {}
        origins: dict[int, list[int]] = {}
        for step in self._steps:
            via = places[step.via]
            source, target = places.get(cast("int", step.source)), places.get(cast("int", step.target))
            if source is not None and texts.setdefault(read := via * many + source, step.read) is not step.read:
                texts[read] = self._graph.jobs[step.via].join(texts[read], step.read)
            if target is not None:
                if texts.setdefault(written := target * many + via, step.written) is not step.written:
                    texts[written] = self._graph.jobs[step.via].join(texts[written], step.written)
                sources = origins.setdefault(written, [])
                if source is not None:
                    sources.append(source)
        return texts, origins
