"""The steps of one job: which sources it made each of its sinks from.

A job made a sink from the sources that its events state for it (a `lineage` or `columnLineage`
facet), else from all that the run that wrote it read. What another run, statement or query of the
job read is no source of it. Only the micro-batches of a streaming query may each be several runs:
what those read that write nothing goes into what the others write. A set of edges may name sources
that no input did; they count as sources of that sink. What a run read and no column names (a
filter, a lookup, a source that the producer cannot follow) is also, as a whole, a source of the
sinks with columns.

What a run read through a view is a source of the view, and the view is a source of the sink. The
step from it to the view is the view's own, of no job (`WalkStep.is_view`).

Steps are made one by one and never stored: a job with many inputs and outputs has their product.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import NamedTuple

from sqlalchemy import Connection

from strandline.core.changes.edges import BY_COLUMNS, BY_LINEAGE, BY_SOURCES
from strandline.core.changes.extraction import SINK
from strandline.core.views import Link, ViewsRead
from strandline.core.walk import Direction, WalkStep
from strandline.store.lineage.recent_runs import JobEdge, Seen, age_of
from strandline.store.lineage.stated_edges import EdgeSets, SetUse, edge_sets_of

RULES = {BY_LINEAGE: "lineage", BY_COLUMNS: "columnLineage"}
ALL_SOURCES = "allSources"  # inputs x outputs
VIEW = "view"  # from what a view's query reads to the view

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


class StatedSources(NamedTuple):
    """The sources that runs state for their sinks, and the views that the runs read.

    A sink without an entry has all sources of its run.
    """

    of_sinks: dict[Use, Stated]
    views: dict[int, ViewsRead]


def stated_sources(connection: Connection, job_edges: Iterable[JobEdge]) -> StatedSources:
    """Return the sources that events of the runs of these edges state."""
    sets = edge_sets_of(connection, {job_edge.run for job_edge in job_edges})
    return StatedSources(sources_in(sets), sets.views)


def sources_in(sets: EdgeSets) -> dict[Use, Stated]:
    """Return the stated sources in sets of edges; equal runs share one value."""
    alike: dict[tuple[SetUse, ...], dict[int, Stated]] = {}
    sources: dict[Use, Stated] = {}
    for run, uses in sets.of_run.items():
        if (of_sinks := alike.get(uses)) is None:
            of_sinks = alike[uses] = _of_sinks(uses, sets)
        for sink, stated in of_sinks.items():
            sources[run, sink] = stated
    return sources


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
        """Return the possible sources of a sink.

        That is what its own run read, and what other runs of its micro-batch did.
        """
        own = self.by_run.get(sink.run, {})
        if not sink.of_query or sink.owner not in self.beside:
            return own
        if sink.run not in self._joined:
            self._joined[sink.run] = self.beside[sink.owner] | own
        return self._joined[sink.run]

    def steps(
        self, stated: StatedSources, leave: "Leave"
    ) -> Iterator[tuple[WalkStep[int], Reason]]:
        """Yield the steps that leave some nodes, each with its newest reason.

        A sink without source and a source without sink have a step too. The steps of a run into a
        view come before those that lead from it to a job.
        """
        writes: dict[int, list[JobEdge]] = defaultdict(list)
        for sink in self.written:
            writes[sink.dataset].append(sink)
        for dataset, sinks in writes.items():
            if leave.sink(sinks[0].job, dataset):
                yield from self._steps_into(sinks, stated, leave)
        unused = self._unused(stated)
        for source in unused:
            read = self.reads[source]
            if leave.way is Direction.UPSTREAM and read.job not in leave.nodes:
                continue
            views = stated.views.get(read.run)
            direct = {source} if views is None else unused.intersection(views.direct([source]))
            links, sources = leave.reached(read.job, direct, views)
            yield from self._into_views(links, read.run, views)
            for direct_source in sources:
                if direct_source is not None:
                    edge = self.reads[direct_source]
                    reason = Reason(ALL_SOURCES, edge, None, edge.seen)
                    passes_view = _is_view(direct_source, stated.views.get(edge.run))
                    yield WalkStep(direct_source, edge.job, None, passes_view), reason

    def definitions(
        self, stated: StatedSources, views: Collection[int]
    ) -> Iterator[tuple[WalkStep[int], Reason]]:
        """Yield the steps into these views, as the runs of the job read them."""
        for run, of_run in stated.views.items():
            views_used = of_run.below.keys() & set(views)
            yield from self._into_views(of_run.links_below(views_used), run, of_run)

    def _into_views(
        self, links: Iterable[Link], run: int, views: ViewsRead | None
    ) -> Iterator[tuple[WalkStep[int], Reason]]:
        """Yield the steps from what a run read through views."""
        for source, view in links:
            read = self.by_run.get(run, {}).get(source)
            if read is not None:
                step = WalkStep(source, view, view, _is_view(source, views))
                yield step, Reason(VIEW, read, None, read.seen)

    def _steps_into(
        self, sinks: Sequence[JobEdge], stated: StatedSources, leave: "Leave"
    ) -> Iterator[tuple[WalkStep[int], Reason]]:
        """Yield the steps into one dataset, which these writes made, the newest last."""
        reasons: dict[int | None, _GatheredReason] = {}
        for sink in sinks:
            read = self.sources_of(sink)
            of_sink = stated.of_sinks.get((sink.run, sink.dataset))
            views = stated.views.get(sink.run)
            sources = read.keys() if of_sink is None else of_sink.rules(read).keys()
            direct = None if views is None else views.direct(sources)
            links, reached = leave.reached(
                sink.job, sources if direct is None else direct.keys(), views
            )
            yield from self._into_views(links, sink.run, views)
            for source in reached:
                edge = None if source is None else read.get(source) or self.reads.get(source)
                gathered = reasons.setdefault(source, _GatheredReason())
                shown = {source} if source is None or direct is None else direct[source]
                gathered.newest = _rule(of_sink, shown), edge, sink
                gathered.passes_view &= source is not None and _is_view(source, views)
                gathered.at = max(gathered.at, sink.at)
                gathered.owners.add(sink.owner)
        job, dataset = sinks[0].job, sinks[0].dataset
        for source, gathered in reasons.items():
            yield WalkStep(source, job, dataset, gathered.passes_view), gathered.reason

    def _unused(self, stated: StatedSources) -> set[int]:
        """Return the sources that went into no sink."""
        unused = set(self.reads)
        finished: set[int] = set()  # runs whose sources are all used: their other sinks add none
        for sink in self.written:
            of_sink = stated.of_sinks.get((sink.run, sink.dataset))
            if of_sink is not None:
                unused.difference_update(of_sink.rules(self.sources_of(sink)))
            elif sink.run not in finished:
                finished.add(sink.run)
                unused.difference_update(self.sources_of(sink))
        return unused


def _is_view(source: int, views: ViewsRead | None) -> bool:
    """Return whether a run says what a source shows."""
    return views is not None and source in views.below


def _rule(stated: Stated | None, sources: AbstractSet[int | None]) -> str:
    """Return the rule by which a source is one of a sink: that of what it stands for."""
    if stated is None:
        return ALL_SOURCES
    is_stated = None in sources or not stated.sources.isdisjoint(sources)
    return stated.rule if is_stated else ALL_SOURCES


@dataclass(slots=True)
class _GatheredReason:
    """A step in all runs that had it: its newest reason, its last sighting and its owners.

    `passes_view`: all these runs say what its source shows.
    """

    newest: tuple[str, JobEdge | None, JobEdge] | None = None
    passes_view: bool = True
    at: int = 0
    owners: set[int] = field(default_factory=set)

    @property
    def reason(self) -> Reason:
        """All of it."""
        assert self.newest is not None
        sighting = self.newest[2].seen
        return Reason(
            *self.newest, Seen(self.at, frozenset(self.owners), sighting.among, sighting.newest)
        )


@dataclass(frozen=True, slots=True)
class Leave:
    """The choice of the steps that leave some nodes in one direction.

    A run that says what a view shows is found from those tables; the view itself leads only to
    runs that do not say. A view among the `starts` (None: all nodes) leads to all its readers.
    """

    nodes: frozenset[int]
    way: Direction
    starts: frozenset[int] | None = None

    def sink(self, job: int, dataset: int) -> bool:
        """Return whether steps into this dataset may leave the nodes."""
        return self.way is Direction.DOWNSTREAM or dataset in self.nodes or job in self.nodes

    def reached(
        self, job: int, direct: AbstractSet[int], views: ViewsRead | None
    ) -> tuple[Iterable[Link], Iterable[int | None]]:
        """Return the links of views, and the sources, whose steps leave the nodes.

        `direct` are the sources that a run of the job read directly, `views` the views among all
        that it read.
        """
        if views is None:
            return (), self.sources(job, direct)
        if self.way is Direction.UPSTREAM:
            return views.links_below(direct), self.sources(job, direct)
        if job in self.nodes:
            return (), self.sources(job, direct)
        near = [
            node
            for node in sorted({*views.above, *direct} & self.nodes)
            if self.starts is None or node in self.starts or node not in views.below
        ]
        links = list(views.links_above(near, direct))
        ends = {view for _, view in links}.union(near)
        return links, sorted(direct & ends)

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
    for edge_ in edges:
        job = jobs.get(edge_.job) or jobs.setdefault(edge_.job, JobRelations())
        if edge_.direction == SINK:
            job.written.append(edge_)
            continue
        _keep_newest(job.reads, edge_)
        _keep_newest(job.by_run.setdefault(edge_.run, {}), edge_)
        if edge_.of_query and edge_.run not in writers:
            _keep_newest(job.beside.setdefault(edge_.owner, {}), edge_)
    for job in jobs.values():
        job.written.sort(key=age_of)
    return jobs


def _keep_newest(reads: dict[int, JobEdge], job_edge: JobEdge) -> None:
    before = reads.get(job_edge.dataset)
    if before is None or age_of(job_edge) > age_of(before):
        reads[job_edge.dataset] = job_edge
