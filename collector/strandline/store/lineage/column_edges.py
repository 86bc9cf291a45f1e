"""The edges of columns that jobs have, found by either end.

A dataset that a run read and no column names goes into a sink as a whole. Such pairs are never
stored: a job has the product of its inputs and outputs.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import NamedTuple

from sqlalchemy import Connection

from strandline.core.stopping import go_on
from strandline.core.walk import Direction
from strandline.store.lineage.column_names import RenamedColumns, renamed_columns_of, spellings_of
from strandline.store.lineage.job_steps import (
    ALL_SOURCES,
    RULES,
    JobRelations,
    StatedSources,
    by_job,
    stated_sources,
)
from strandline.store.lineage.recent_runs import JobEdge, Seen
from strandline.store.lineage.stated_edges import SetUse, StatedEdge, StatedEdges, edge_sets_of

DIRECT, INDIRECT, OPAQUE = "direct", "indirect", "opaque"

Column = tuple[int, str]  # (canonical dataset, column), '' for all of them; or (job, '')


class Origin(NamedTuple):
    """The origin of a column in another."""

    rule: str
    type: str
    subtype: str
    transform: str
    masking: int | None
    is_opaque: bool  # it is only known that the dataset was read
    other_case: tuple[str, ...] = ()  # names as they were stated that schemas list in another case

    @property
    def dependency(self) -> str:
        """The dependency of the column on the other: direct, indirect or perhaps (opaque)."""
        if self.is_opaque:
            return OPAQUE
        return INDIRECT if self.type.upper() == "INDIRECT" else DIRECT


class ColumnEdge(NamedTuple):
    """An edge of columns that a job has."""

    source: Column | None
    job: int
    target: Column
    how: Origin
    seen: Seen


class SinkColumns(NamedTuple):
    """The writes of a job into one dataset that state the same columns.

    `whole` are the sources that go into the sink as a whole, `views` those that the runs read in
    place of their tables, which the other edges come from. No column was renamed between the
    writes.
    """

    sink: JobEdge
    seen: Seen
    stated: Sequence[StatedEdge]
    whole: frozenset[int]
    views: frozenset[int]
    renamed: RenamedColumns
    spellings: Mapping[Column, str]

    def ends(self, stated: StatedEdge) -> tuple[Column, Column]:
        """Return the columns of a stated edge, by their names of now."""
        source = stated.source, stated.edge.source_column
        target = self.sink.dataset, stated.edge.sink_column
        if self.renamed:
            at = self.renamed.named_at(self.sink)
            source = source[0], self.renamed.name(*source, at)
            target = target[0], self.renamed.name(*target, at)
        return source, target

    def edge(self, stated: StatedEdge) -> ColumnEdge:
        """Return a stated edge."""
        edge, rule = stated.edge, RULES.get(stated.rule, ALL_SOURCES)
        is_opaque = rule == ALL_SOURCES or stated.is_opaque
        ends = self.ends(stated)
        source, target = (
            (dataset, self.spellings.get((dataset, column), column)) for dataset, column in ends
        )
        other_case = tuple(sorted({ends[0][1], ends[1][1]} - {source[1], target[1]}))
        how = Origin(
            rule, edge.type, edge.subtype, edge.transform, edge.masking, is_opaque, other_case
        )
        return ColumnEdge(source, self.sink.job, target, how, self.seen)

    def whole_edge(self, source: int) -> ColumnEdge:
        """Return the edge from a source that goes into the sink as a whole."""
        how = Origin(ALL_SOURCES, "", "", "", None, True)
        return ColumnEdge((source, ""), self.sink.job, (self.sink.dataset, ""), how, self.seen)

    def edges(self) -> Iterator[ColumnEdge]:
        """Yield all edges into the sink."""
        yield from map(self.edge, self.stated)
        yield from map(self.whole_edge, self.whole)


@dataclass(slots=True)
class NearEnds:
    """Edges by the dataset and the column of one end."""

    by_column: dict[Column, list[tuple[int, ColumnEdge]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    by_dataset: dict[int, list[tuple[int, ColumnEdge]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    inside: dict[Column, list[tuple[int, ColumnEdge]]] = field(
        default_factory=lambda: defaultdict(list)
    )

    def add(self, number: int, end: Column, edge: ColumnEdge) -> None:
        """Add an edge under its end, and under the columns that its end is a field of."""
        dataset, column = end
        self.by_column[end].append((number, edge))
        self.by_dataset[dataset].append((number, edge))
        for above in columns_above(column):
            self.inside[dataset, above].append((number, edge))

    def at(self, dataset: int, column: str) -> list[ColumnEdge]:
        """Return the edges whose end meets a column, in the order in which they were added."""
        if not column:
            return [edge for _, edge in self.by_dataset.get(dataset, ())]
        names = (column, "", *columns_above(column))
        pairs = [pair for name in names for pair in self.by_column.get((dataset, name), ())]
        pairs += self.inside.get((dataset, column), ())
        return [edge for _, edge in sorted(pairs, key=lambda pair: pair[0])]


NOTHING = NearEnds()


class JobColumns:
    """The edges of columns of one job."""

    def __init__(self, sinks: Sequence[SinkColumns]) -> None:
        self.sinks = sinks
        edges = [sink.edge(stated) for sink in sinks for stated in sink.stated]
        self._sources, self._targets = (NearEnds(), NearEnds()) if edges else (NOTHING, NOTHING)
        for number, edge in enumerate(edges):
            go_on()
            self._targets.add(number, edge.target, edge)
            if edge.source is not None:
                self._sources.add(number, edge.source, edge)

    @cached_property
    def sinks_of_edges(self) -> frozenset[int]:
        """The datasets into whose columns edges lead."""
        return frozenset([*self._targets.by_dataset, *(sink.sink.dataset for sink in self.sinks)])

    @cached_property
    def sources_of_edges(self) -> frozenset[int]:
        """The datasets from whose columns edges lead."""
        return frozenset(self._sources.by_dataset).union(
            *(sink.whole | sink.views for sink in self.sinks)
        )

    def edges(self) -> Iterator[ColumnEdge]:
        """Yield all edges."""
        for sink in self.sinks:
            yield from sink.edges()

    def into(self, dataset: int, column: str) -> Iterator[ColumnEdge]:
        """Yield the edges that end in a column, in its fields or in what it is a field of."""
        yield from self._targets.at(dataset, column)
        for sink in self.sinks:
            if sink.sink.dataset == dataset:
                yield from map(sink.whole_edge, sink.whole)

    def out_of(self, dataset: int, column: str) -> Iterator[ColumnEdge]:
        """Yield the edges that begin in a column, in its fields or in what it is a field of."""
        yield from self._sources.at(dataset, column)
        for sink in self.sinks:
            if dataset in sink.whole:
                yield sink.whole_edge(dataset)

    def shown_by(self, view: int) -> Iterator[ColumnEdge]:
        """Yield the edges from a view that was read in place of its tables."""
        for sink in self.sinks:
            if view in sink.views:
                yield sink.whole_edge(view)

    def datasets(self, way: Direction) -> frozenset[int]:
        """Return the datasets whose columns edges leave in one direction."""
        return self.sinks_of_edges if way is Direction.UPSTREAM else self.sources_of_edges

    def leaving(self, dataset: int, column: str, way: Direction) -> Iterator[ColumnEdge]:
        """Yield the edges that leave a column in one direction."""
        if way is Direction.UPSTREAM:
            return self.into(dataset, column)
        return self.out_of(dataset, column)


def columns_above(column: str) -> list[str]:
    """Return the columns that a column is a field of.

    >>> columns_above("item.price.net")
    ['item', 'item.price']
    """
    parts = column.split(".")
    return [".".join(parts[:end]) for end in range(1, len(parts))]


def columns_of_jobs(
    connection: Connection,
    relations: Mapping[int, JobRelations],
    sources: StatedSources,
    until: int | None = None,
) -> dict[int, JobColumns]:
    """Return the edges of columns of jobs.

    They are those that events state for each sink (stated_edges.py) and whole sources
    (job_steps.py). `sources` has all sinks for which something is stated. What several runs of a
    job state alike is one edge. Columns have the names that they have now, or had at the moment
    `until`, in the case in which schemas list them.
    """
    runs = {run for run, _ in sources.of_sinks}
    sets = edge_sets_of(connection, runs, columns=True)
    tables = {use.sink for uses in sets.of_run.values() for use in uses}
    tables |= {edge.source for of_set in sets.edges.values() for edge in of_set}
    renamed = renamed_columns_of(connection, tables, until, runs)
    stated = StatedEdges(sets)
    sinks = {
        job: list(_sinks(of_job, sources, stated, renamed)) for job, of_job in relations.items()
    }
    columns = _columns_named(chain.from_iterable(sinks.values()))
    spellings = spellings_of(connection, columns, until)
    return {
        job: JobColumns([sink._replace(spellings=spellings) for sink in of_job])
        for job, of_job in sinks.items()
    }


def _columns_named(sinks: Iterable[SinkColumns]) -> dict[int, set[str]]:
    """Return the columns of each dataset that the edges into sinks name."""
    columns: dict[int, set[str]] = defaultdict(set)
    for sink in sinks:
        go_on()
        for stated in sink.stated:
            for dataset, column in sink.ends(stated):
                if column:
                    columns[dataset].add(column)
    return columns


def edges_of(
    connection: Connection, edges: Collection[JobEdge], until: int | None = None
) -> Iterator[ColumnEdge]:
    """Yield all edges of columns of the jobs of these edges, now or at the moment `until`."""
    sources = stated_sources(connection, edges)
    for job in columns_of_jobs(connection, by_job(edges), sources, until).values():
        yield from job.edges()


def _sinks(
    relations: JobRelations,
    sources: StatedSources,
    stated: StatedEdges,
    renamed: RenamedColumns,
) -> Iterator[SinkColumns]:
    whole_sources = _WholeSources(relations, sources)
    alike: dict[
        tuple[int, tuple[SetUse, ...], tuple[frozenset[int], frozenset[int]], int], list[JobEdge]
    ] = defaultdict(list)
    for sink in relations.written:
        uses = stated.counting(sink.run, sink.dataset)
        renames = renamed.count_by(renamed.named_at(sink))
        alike[sink.dataset, uses, whole_sources.of(sink), renames].append(sink)
    for (_, uses, whole, _), sinks in alike.items():
        owners = frozenset([sink.owner for sink in sinks])
        sighting = sinks[0].seen._replace(at=sinks[-1].at, owners=owners)
        yield SinkColumns(sinks[0], sighting, stated.edges(uses), *whole, renamed, {})


class _WholeSources:
    """The sources of sinks that go into them as a whole; sinks of one run share them."""

    def __init__(self, relations: JobRelations, sources: StatedSources) -> None:
        self._relations = relations
        self._sources = sources
        self._known: dict[tuple[object, ...], tuple[frozenset[int], frozenset[int]]] = {}

    def of(self, sink: JobEdge) -> tuple[frozenset[int], frozenset[int]]:
        """Return the sources of a sink that no column names: those that are no views, and views."""
        stated = self._sources.of_sinks.get((sink.run, sink.dataset))
        key: tuple[object, ...] = (sink.run,)
        if stated is not None:
            key = sink.run, stated.rule, stated.named, stated.rest
        if key not in self._known:
            read = self._relations.sources_of(sink)
            whole = frozenset(read) if stated is None else stated.without_columns(read)
            views = self._sources.views.get(sink.run)
            shown = whole.intersection(views.below if views is not None else ())
            self._known[key] = whole - shown, shown
        return self._known[key]


def uncovered(columns: Iterable[str], known: Iterable[str]) -> list[str]:
    """Return the columns that are neither known, nor fields of a known one, nor the reverse.

    >>> uncovered({"item.sku", "total", ""}, ["item"])
    ['total']
    """
    names = set(known)
    above = {name for column in names for name in columns_above(column)}
    return sorted(
        column
        for column in columns
        if column
        and column not in names
        and column not in above
        and names.isdisjoint(columns_above(column))
    )
