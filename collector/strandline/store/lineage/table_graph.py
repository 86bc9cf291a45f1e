"""The graph of datasets and jobs in a database, as a walk takes it.

Level by level, each step with its reason.

A job made a sink from the sources that its events state for it (a `lineage` or `columnLineage`
facet), else from all that the run read that wrote it. What another run, statement or query of the
job read is none of its sources; only in a streaming query, whose micro-batches may each be several
runs, what those read that write nothing goes into what the others write. A set of edges may name
sources that no input did; they count as sources of that sink. What a run read and no column names
(a filter, a lookup, a source that the producer cannot follow) is a source of the sinks with columns
as well, as a whole.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import NamedTuple

from sqlalchemy import Connection

from strandline.core.changes.edges import BY_COLUMNS, BY_LINEAGE, BY_SOURCES
from strandline.core.changes.extraction import SINK, SOURCE
from strandline.core.walk import Direction, WalkStep
from strandline.store.lineage.edge_sets import EdgeSets, SetUse, edge_sets_of
from strandline.store.lineage.hidden import Looked
from strandline.store.lineage.nested_commands import without_nested
from strandline.store.lineage.relations import (
    JobEdge,
    Seen,
    View,
    job_edges_of,
    jobs_touching,
    with_known_runs,
)

RULES = {BY_LINEAGE: "lineage", BY_COLUMNS: "columnLineage"}
ALL_SOURCES = "allSources"  # inputs x outputs

Use = tuple[int, int]  # a run and its sink, whatever names it had for it


class Stated(NamedTuple):
    """The sources that a run's events state for a sink, and by which rule.

    named: all that the edges of the run name that count. rest: the inputs without columns of the
    event that stands for itself; None where the run's inputs are those of all its events.
    """

    rule: str
    sources: frozenset[int]
    named: frozenset[int]
    rest: frozenset[int] | None = None

    def rules(self, read: Iterable[int]) -> dict[int, str]:
        """Each source of the sink with the rule by which it is one, where the run has read these."""
        return dict.fromkeys(self.without_columns(read), ALL_SOURCES) | dict.fromkeys(
            self.sources, self.rule
        )

    def without_columns(self, read: Iterable[int]) -> frozenset[int]:
        """The sources that no column names; an explicit `lineage` says all there is."""
        if self.rule != RULES[BY_COLUMNS]:
            return frozenset()
        return (frozenset(read) - self.named) if self.rest is None else self.rest - self.named


class Reason(NamedTuple):
    """Why there is a step: the rule, the job's relations with its source and with its target, and when it was seen."""

    rule: str
    read: JobEdge | None
    written: JobEdge | None
    seen: Seen


@dataclass(slots=True)
class TableGraph:
    """Datasets and jobs. `reasons` has those of all steps that were asked for."""

    connection: Connection
    view: View
    jobs: frozenset[int] = frozenset()  # where the walk starts, if that is a job
    reasons: dict[WalkStep[int], Reason] = field(default_factory=dict)
    looked: Looked = field(default_factory=Looked)

    def steps(self, nodes: Sequence[int], way: Direction, limit: int) -> Sequence[WalkStep[int]]:
        """See core.lineage.Graph."""
        self.view = with_known_runs(self.connection, self.view)
        every = job_edges_of(self.connection, self.view, self._jobs(nodes, way, limit))
        touched = without_nested(self.connection, every, self.jobs)
        stated = stated_sources(self.connection, touched)
        leave = Leave(frozenset(nodes), way)
        leaving = chain.from_iterable(job.steps(stated, leave).items() for job in by_job(touched))
        found = dict(islice(leaving, limit))
        self.reasons |= found
        self.looked.add(nodes, self.jobs, way, every, found.keys())
        return list(found)

    def _jobs(self, nodes: Sequence[int], way: Direction, limit: int) -> list[int]:
        direction = SINK if way is Direction.UPSTREAM else SOURCE
        starts = self.jobs.intersection(nodes)
        others = [node for node in nodes if node not in starts]
        return [
            *starts,
            *(jobs_touching(self.connection, others, direction, limit) if others else ()),
        ]


def stated_sources(connection: Connection, touched: Iterable[JobEdge]) -> dict[Use, Stated]:
    """What the runs' events state of the sources of their sinks.

    A sink that is missing has all sources of its run.
    """
    return sources_in(
        edge_sets_of(connection, {one.run for one in touched if one.direction == SINK})
    )


def sources_in(sets: EdgeSets) -> dict[Use, Stated]:
    """The same of sets that were read. Runs that made the same have the same."""
    alike: dict[tuple[SetUse, ...], dict[int, Stated]] = {}
    found: dict[Use, Stated] = {}
    for run, uses in sets.of_run.items():
        if (of_sinks := alike.get(uses)) is None:
            of_sinks = alike[uses] = _of_sinks(uses, sets)
        for sink, stated in of_sinks.items():
            found[run, sink] = stated
    return found


def _of_sinks(uses: Iterable[SetUse], sets: EdgeSets) -> dict[int, Stated]:
    sources: dict[tuple[int, int], set[int]] = defaultdict(set)
    for sink, rule, set_hash in uses:
        sources[sink, rule].update(edges.source for edges in sets.edges.get(set_hash, ()))
    counting = dict(sorted(sources))  # the greatest rule counts, and is the last
    named = frozenset(
        source for sink, rule in counting.items() if rule in RULES for source in sources[sink, rule]
    )
    found: dict[int, Stated] = {}
    for sink, rule in counting.items():
        alone = sources.get((sink, BY_SOURCES))
        rest = None if alone is None else frozenset(alone)
        found[sink] = Stated(
            RULES.get(rule, ALL_SOURCES), frozenset(sources[sink, rule]), named, rest
        )
    return found


@dataclass(frozen=True, slots=True)
class JobRelations:
    """What one job reads and writes; `by_run`: what each run has read; `beside`.

    By query, what its runs that write nothing have.
    """

    reads: dict[int, JobEdge] = field(default_factory=dict)
    by_run: dict[int, dict[int, JobEdge]] = field(default_factory=dict)
    beside: dict[int, dict[int, JobEdge]] = field(default_factory=dict)
    written: list[JobEdge] = field(default_factory=list)

    def sources_of(self, sink: JobEdge) -> dict[int, JobEdge]:
        """What may have gone into a sink.

        What its own run has read, and what other runs of its micro-batch have.
        """
        own = self.by_run.get(sink.run, {})
        return self.beside.get(sink.owner, {}) | own if sink.of_query else own

    def steps(self, stated: Mapping[Use, Stated], leave: "Leave") -> dict[WalkStep[int], Reason]:
        """Its steps, with the newest reason.

        Nothing is left out: a sink without source and a source without sink are too.
        """
        reasons: dict[tuple[int | None, int], _GatheredReason] = {}
        unused = set(self.reads)
        for sink in self.written:
            read = self.sources_of(sink)
            rule_of_sink = stated.get((sink.run, sink.dataset)) or Stated(
                ALL_SOURCES, frozenset(read), frozenset()
            )
            rules = rule_of_sink.rules(read)
            unused.difference_update(rules)
            if leave.sink(sink.job, sink.dataset):
                for source in leave.sources(sink.job, rules.keys()):
                    rule = rule_of_sink.rule if source is None else rules[source]
                    source_read = (
                        None if source is None else read.get(source) or self.reads.get(source)
                    )
                    ends = source, sink.dataset
                    reason = reasons.get(ends) or reasons.setdefault(ends, _GatheredReason())
                    reason.newest = rule, source_read, sink
                    reason.at = max(reason.at, sink.at)
                    reason.owners.add(sink.owner)
        found = {
            WalkStep(source, one.job, sink): one.reason for (source, sink), one in reasons.items()
        }
        return found | self._only_read(unused, leave)

    def _only_read(self, unused: Iterable[int], leave: "Leave") -> dict[WalkStep[int], Reason]:
        """The steps from sources that go into no sink."""
        found: dict[WalkStep[int], Reason] = {}
        for source in unused:
            read = self.reads[source]
            if leave.source(read.job, source):
                found[WalkStep(source, read.job, None)] = Reason(ALL_SOURCES, read, None, read.seen)
        return found


@dataclass(slots=True)
class _GatheredReason:
    """A step in all runs that it was seen in.

    Its newest reason, and when and by which owners it was seen.
    """

    newest: tuple[str, JobEdge | None, JobEdge] | None = None
    at: int = 0
    owners: set[int] = field(default_factory=set)

    @property
    def job(self) -> int:
        """Whose step it is."""
        assert self.newest is not None
        return self.newest[2].job

    @property
    def reason(self) -> Reason:
        """All of it."""
        assert self.newest is not None
        seen = self.newest[2].seen
        return Reason(*self.newest, Seen(self.at, frozenset(self.owners), seen.among, seen.newest))


@dataclass(frozen=True, slots=True)
class Leave:
    """Which steps leave some nodes in one direction."""

    nodes: frozenset[int]
    way: Direction

    def sink(self, job: int, dataset: int) -> bool:
        """Whether steps into this dataset may."""
        return self.way is Direction.DOWNSTREAM or dataset in self.nodes or job in self.nodes

    def source(self, job: int, dataset: int) -> bool:
        """Whether steps do from this dataset, which the job only reads."""
        return job in self.nodes or (self.way is Direction.DOWNSTREAM and dataset in self.nodes)

    def sources(self, job: int, sources: AbstractSet[int]) -> Iterable[int | None]:
        """The sources whose steps do.

        None stands for no source, which a walk upstream ends with.
        """
        if self.way is Direction.UPSTREAM or job in self.nodes:
            return sources or (None,)
        return self.nodes.intersection(
            sources
        )  # `sources & nodes` would look at all nodes for each sink


class _LeaveAll(Leave):
    """All steps of a job, wherever they lead."""

    __slots__ = ()

    def sink(self, job: int, dataset: int) -> bool:
        return True

    def source(self, job: int, dataset: int) -> bool:
        return True

    def sources(self, job: int, sources: AbstractSet[int]) -> Iterable[int | None]:
        return sources or (None,)


EVERY_STEP: Leave = _LeaveAll(frozenset(), Direction.UPSTREAM)


def by_job(touched: Collection[JobEdge]) -> Iterable[JobRelations]:
    """The jobs of these relations, each with what it wrote last at the end."""
    jobs: dict[int, JobRelations] = {}
    writers = {one.run for one in touched if one.direction == SINK and one.of_query}
    for one in touched:
        job = jobs.get(one.job) or jobs.setdefault(one.job, JobRelations())
        if one.direction == SINK:
            job.written.append(one)
            continue
        _keep_newest(job.reads, one)
        _keep_newest(job.by_run.setdefault(one.run, {}), one)
        if one.of_query and one.run not in writers:
            _keep_newest(job.beside.setdefault(one.owner, {}), one)
    for job in jobs.values():
        job.written.sort(key=_age)
    return jobs.values()


def _keep_newest(reads: dict[int, JobEdge], one: JobEdge) -> None:
    before = reads.get(one.dataset)
    if before is None or _age(one) > _age(before):
        reads[one.dataset] = one


def _age(one: JobEdge) -> tuple[int, int, int]:
    return one.at, one.since, one.owner
