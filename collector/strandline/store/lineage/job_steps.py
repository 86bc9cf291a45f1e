"""The steps of one job: which sources it made each of its sinks from.

A job made a sink from the sources that its events state for it (a `lineage` or `columnLineage`
facet), else from all that the run that wrote it read. What another run, statement or query of the
job read is no source of it; only in a streaming query, whose micro-batches may each be several
runs, what those read that write nothing goes into what the others write. A set of edges may name
sources that no input did; they count as sources of that sink. What a run read and no column names
(a filter, a lookup, a source that the producer cannot follow) is a source of the sinks with columns
as well, as a whole.

Steps are made one by one and never stored: a job with many inputs and outputs has their product.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import NamedTuple

from sqlalchemy import Connection

from strandline.core.changes.edges import BY_COLUMNS, BY_LINEAGE, BY_SOURCES
from strandline.core.changes.extraction import SINK
from strandline.core.walk import Direction, WalkStep
from strandline.store.lineage.edge_sets import EdgeSets, SetUse, edge_sets_of
from strandline.store.lineage.recent_runs import JobEdge, Seen

RULES = {BY_LINEAGE: "lineage", BY_COLUMNS: "columnLineage"}
ALL_SOURCES = "allSources"  # inputs x outputs

Use = tuple[int, int]  # a run and its sink, whatever names it had for it


class Stated(NamedTuple):
    """The sources that a run's events state for a sink, and the rule by which they do.

    `named` has all sources that the run's edges name. `rest` has the inputs without columns of an
    event that stands for itself; without it, the run's inputs are those of all its events.
    """

    rule: str
    sources: frozenset[int]
    named: frozenset[int]
    rest: frozenset[int] | None = None

    def rules(self, read: Iterable[int]) -> dict[int, str]:
        """Map each source of the sink to its rule, given what the run read."""
        return dict.fromkeys(self.without_columns(read), ALL_SOURCES) | dict.fromkeys(
            self.sources, self.rule
        )

    def without_columns(self, read: Iterable[int]) -> frozenset[int]:
        """Return the sources that no column names; a `lineage` facet states all sources."""
        if self.rule != RULES[BY_COLUMNS]:
            return frozenset()
        return (frozenset(read) - self.named) if self.rest is None else self.rest - self.named


class Reason(NamedTuple):
    """The reason of a step: its rule, the job's edges to its ends, and its sightings."""

    rule: str
    read: JobEdge | None
    written: JobEdge | None
    seen: Seen


def stated_sources(connection: Connection, touched: Iterable[JobEdge]) -> dict[Use, Stated]:
    """Return the sources that events state for the sinks of their runs.

    A sink without an entry has all sources of its run.
    """
    return sources_in(
        edge_sets_of(connection, {one.run for one in touched if one.direction == SINK})
    )


def sources_in(sets: EdgeSets) -> dict[Use, Stated]:
    """Return the stated sources in sets of edges; equal runs share one value."""
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
    """The reads and writes of one job.

    `by_run` has what each run read, `beside` what the runs of a query that write nothing read.
    """

    reads: dict[int, JobEdge] = field(default_factory=dict)
    by_run: dict[int, dict[int, JobEdge]] = field(default_factory=dict)
    beside: dict[int, dict[int, JobEdge]] = field(default_factory=dict)
    written: list[JobEdge] = field(default_factory=list)
    _joined: dict[int, dict[int, JobEdge]] = field(default_factory=dict)

    def sources_of(self, sink: JobEdge) -> dict[int, JobEdge]:
        """Return what may have gone into a sink.

        That is what its own run read, and what other runs of its micro-batch did.
        """
        own = self.by_run.get(sink.run, {})
        if not sink.of_query or sink.owner not in self.beside:
            return own
        if sink.run not in self._joined:
            self._joined[sink.run] = self.beside[sink.owner] | own
        return self._joined[sink.run]

    def steps(
        self, stated: Mapping[Use, Stated], leave: "Leave"
    ) -> Iterator[tuple[WalkStep[int], Reason]]:
        """Yield the steps that leave some nodes, each with its newest reason.

        A sink without source and a source without sink have a step too.
        """
        writes: dict[int, list[JobEdge]] = defaultdict(list)
        for sink in self.written:
            writes[sink.dataset].append(sink)
        for dataset, sinks in writes.items():
            if leave.sink(sinks[0].job, dataset):
                yield from self._steps_into(sinks, stated, leave)
        for source in self._unused(stated):
            read = self.reads[source]
            if leave.source(read.job, source):
                reason = Reason(ALL_SOURCES, read, None, read.seen)
                yield WalkStep(source, read.job, None), reason

    def _steps_into(
        self, sinks: Sequence[JobEdge], stated: Mapping[Use, Stated], leave: "Leave"
    ) -> Iterator[tuple[WalkStep[int], Reason]]:
        """Yield the steps into one dataset, which these writes made, the newest last."""
        reasons: dict[int | None, _GatheredReason] = {}
        for sink in sinks:
            read = self.sources_of(sink)
            stated_of_sink = stated.get((sink.run, sink.dataset))
            sources = read.keys() if stated_of_sink is None else stated_of_sink.rules(read).keys()
            for source in leave.sources(sink.job, sources):
                edge = None if source is None else read.get(source) or self.reads.get(source)
                gathered = reasons.setdefault(source, _GatheredReason())
                gathered.newest = _rule(stated_of_sink, source), edge, sink
                gathered.at = max(gathered.at, sink.at)
                gathered.owners.add(sink.owner)
        job, dataset = sinks[0].job, sinks[0].dataset
        for source, gathered in reasons.items():
            yield WalkStep(source, job, dataset), gathered.reason

    def _unused(self, stated: Mapping[Use, Stated]) -> set[int]:
        """Return the sources that went into no sink."""
        unused = set(self.reads)
        finished: set[int] = set()  # runs whose sources are all used: their other sinks add none
        for sink in self.written:
            stated_of_sink = stated.get((sink.run, sink.dataset))
            if stated_of_sink is not None:
                unused.difference_update(stated_of_sink.rules(self.sources_of(sink)))
            elif sink.run not in finished:
                finished.add(sink.run)
                unused.difference_update(self.sources_of(sink))
        return unused


def _rule(stated: Stated | None, source: int | None) -> str:
    """Return the rule by which a source is one of a sink."""
    if stated is None:
        return ALL_SOURCES
    return stated.rule if source is None or source in stated.sources else ALL_SOURCES


@dataclass(slots=True)
class _GatheredReason:
    """A step in all runs that had it: its newest reason, its last sighting and its owners."""

    newest: tuple[str, JobEdge | None, JobEdge] | None = None
    at: int = 0
    owners: set[int] = field(default_factory=set)

    @property
    def reason(self) -> Reason:
        """All of it."""
        assert self.newest is not None
        seen = self.newest[2].seen
        return Reason(*self.newest, Seen(self.at, frozenset(self.owners), seen.among, seen.newest))


@dataclass(frozen=True, slots=True)
class Leave:
    """The choice of the steps that leave some nodes in one direction."""

    nodes: frozenset[int]
    way: Direction

    def sink(self, job: int, dataset: int) -> bool:
        """Return whether steps into this dataset may leave the nodes."""
        return self.way is Direction.DOWNSTREAM or dataset in self.nodes or job in self.nodes

    def source(self, job: int, dataset: int) -> bool:
        """Return whether a step does from this dataset, which the job only reads."""
        return job in self.nodes or (self.way is Direction.DOWNSTREAM and dataset in self.nodes)

    def sources(self, job: int, sources: AbstractSet[int]) -> Iterable[int | None]:
        """Return the sources whose steps do; None stands for a sink without sources."""
        if self.way is Direction.UPSTREAM or job in self.nodes:
            return sources or (None,)
        if len(self.nodes) < len(sources):
            return [node for node in self.nodes if node in sources]
        return [source for source in sources if source in self.nodes]


def by_job(edges: Collection[JobEdge]) -> dict[int, JobRelations]:
    """Map each job to its reads and writes; the newest write is the last."""
    jobs: dict[int, JobRelations] = {}
    writers = {edge.run for edge in edges if edge.direction == SINK and edge.of_query}
    for one in edges:
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
    return jobs


def _keep_newest(reads: dict[int, JobEdge], one: JobEdge) -> None:
    before = reads.get(one.dataset)
    if before is None or _age(one) > _age(before):
        reads[one.dataset] = one


def _age(one: JobEdge) -> tuple[int, int, int]:
    return one.at, one.since, one.owner
