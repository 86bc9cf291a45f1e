"""Edges into the sinks of an event, and the rule that made them.

Edges come from `lineage` facets, else from `columnLineage`, else (for an event that stands for
itself) from all of its sources; beside columns, from the sources that no column names. Of events
that do not stand for themselves, all sources of the run, or those that none of its columns names,
are found when somebody asks for them.

A job's `lineage` facet declares datasets that the job makes from origins, and those that it
consumes itself. On a JobEvent that is the job's declared lineage, on a RunEvent lineage that was
observed during that run. So what it names is the job's even if it is not among the event's inputs
and outputs.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from strandline.core.changes.datasets import DatasetUse
from strandline.core.changes.memory import Memory
from strandline.core.changes.rows import DatasetSeen, EdgeSeen, EdgeSet
from strandline.core.openlineage import facets as f
from strandline.core.openlineage.facets import Facet, Facets, content_hash
from strandline.core.openlineage.names import clean, is_delta_log

BY_SOURCES, BY_COLUMNS, BY_LINEAGE = 1, 2, 3
RENAMED_COLUMNS = 0  # no rule: from each column's name before to its name after, of one dataset
# No rules: from what a view's query read to the view, and from a dataset to itself if the run that
# read it through a view also read it directly. A run has the sets of all its events, so each set's
# number is this one minus 63 bits of its hash.
READ_BY_VIEW = -1
RULE_OF_FACET = {"columnLineage": BY_COLUMNS, "lineage": BY_LINEAGE}
# What a rule's deleted facet leaves; no source at all would be an assertion.
NO_EDGES = EdgeSet(bytes(16), (), ())
PLAIN = f.Transformation()

Origin = tuple[str, f.InputField, f.Transformation]  # sink column, origin, transformation
StatedEdges = tuple[int, int, EdgeSet]  # sink, rule, edges


class EventEdge(NamedTuple):
    """One edge into a sink as an event states it; sets are hashed as JSON arrays of these."""

    sink_column: str  # '': of the whole dataset
    source_id: int
    source_column: str
    type: str
    subtype: str
    transform: str
    masking: int | None


class Edge(NamedTuple):
    """One edge of a set, from a source that is known: `position` is its place in the set."""

    position: int
    sink_column: str  # '': of the whole dataset
    source_column: str
    type: str  # DIRECT, INDIRECT or ''
    subtype: str  # IDENTITY, AGGREGATION, FILTER, ...
    transform: str
    masking: int | None


_EDGES = msgspec.json.Decoder(list[Edge])


class EventNames(NamedTuple):
    """The datasets that an event's facets name. own: those that are stored under another name."""

    memory: Memory
    own: Mapping[tuple[str, str], DatasetSeen]

    def dataset(self, namespace: str, name: str) -> DatasetSeen | None:
        """Return the dataset that the event calls so; None if it is nobody's lineage."""
        own = self.own.get((namespace, name))
        if own is not None:
            return own
        return None if is_delta_log(name) else self.memory.dataset(namespace, name)


class Declared(NamedTuple):
    """The datasets that a job's `lineage` facet declares, by id.

    sinks: those that the job makes. origins: of the sinks that have any. sources: what the job
    consumes itself.
    """

    sinks: Mapping[int, DatasetSeen]
    origins: Mapping[int, list[Origin]]
    sources: Mapping[int, DatasetSeen]


def names_of(memory: Memory, uses: Iterable[DatasetUse]) -> EventNames:
    """Return the names by which an event's facets name its inputs, or its outputs."""
    own: dict[tuple[str, str], DatasetSeen] = {}
    for use in uses:
        stored_as = use.dataset.namespace, use.dataset.name
        if stored_as != use.sent_as and use.dataset.id != memory.dataset(*use.sent_as).id:
            own[use.sent_as] = use.dataset
    return EventNames(memory, own)


def declared_by(
    memory: Memory,
    job_id: int,
    lineage: f.JobLineage | None,
    inputs: Iterable[DatasetUse],
    outputs: Iterable[DatasetUse],
) -> Declared:
    """Return the edges that the facet declares in an event with these inputs and outputs.

    Entries for other jobs are none of this one's.
    """
    sinks: dict[int, DatasetSeen] = {}
    origins: dict[int, list[Origin]] = {}
    sources: dict[int, DatasetSeen] = {}
    written, read = names_of(memory, outputs), names_of(memory, inputs)
    for entry in lineage.entries if lineage else ():
        if entry.type == "JOB":
            if _is_own(memory, job_id, entry):
                sources |= _consumed(read, entry.inputs or ())
        elif entry.namespace and entry.name:
            sink = written.dataset(entry.namespace, entry.name)
            of_sink = origins_of(entry)
            if sink is not None:
                sinks[sink.id] = sink
            if sink is not None and of_sink is not None:
                origins.setdefault(sink.id, []).extend(of_sink)
    return Declared(sinks, origins, sources)


def _is_own(memory: Memory, job_id: int, entry: f.Lineage) -> bool:
    """Return whether an entry for a job is for the event's own, which needs no name."""
    return not entry.name or memory.job(entry.namespace or "", entry.name).id == job_id


def _consumed(read: EventNames, inputs: Iterable[f.InputField]) -> dict[int, DatasetSeen]:
    """Return the datasets that a job consumes itself."""
    consumed: dict[int, DatasetSeen] = {}
    for origin in inputs:
        if origin.type == "JOB" or not (origin.namespace and origin.name):
            continue
        dataset = read.dataset(origin.namespace, origin.name)
        if dataset is not None:
            consumed[dataset.id] = dataset
    return consumed


def origins_of(lineage: f.Lineage) -> list[Origin] | None:
    """Return the origins that a lineage facet or entry states.

    [] is "none", which only `inputs` can say. None says nothing.
    """
    origins = _origins_in("", lineage.inputs or ())
    for column, entry in (lineage.fields or {}).items():
        origins += _origins_in(column, entry.inputs)
    return None if lineage.inputs is None and not origins else origins


def _origins_in(column: str, inputs: Iterable[f.InputField]) -> list[Origin]:
    """Return the origins of one column, or of all (""), without jobs."""
    origins: list[Origin] = []
    for origin in inputs:
        if origin.type != "JOB":
            origins += [(column, origin, how) for how in origin.transformations or (PLAIN,)]
    return origins


def edges_of(
    memory: Memory,
    inputs: Sequence[DatasetUse],
    outputs: Sequence[DatasetUse],
    declared: Declared,
    job_facets: Facets,
    *,
    stands_alone: bool,
) -> Iterator[StatedEdges]:
    """Yield the sets of edges that an event states; a sink that is listed twice has one."""
    sources = names_of(memory, inputs)
    sinks: dict[int, list[DatasetUse]] = {}
    for use in outputs:
        sinks.setdefault(use.dataset.id, []).append(use)
    origins = {**declared.origins, **_stated_origins(sinks)}
    for sink_id, of_sink in origins.items():
        yield sink_id, BY_LINEAGE, _edge_set(sources, of_sink)
    columns = {
        sink_id: _column_edges(sources, _facets(listed, "columnLineage"))
        for sink_id, listed in sinks.items()
    }
    named = {
        edge.source_id
        for sink_id, edges in columns.items()
        if sink_id not in origins
        for edge in edges.edges
    }
    for sink_id, listed in sinks.items():
        for rule in _rules_taken_back(job_facets, listed):
            yield sink_id, rule, NO_EDGES
        has_columns = bool(columns[sink_id].edges)
        if has_columns:
            yield sink_id, BY_COLUMNS, columns[sink_id]
        if stands_alone and sink_id not in origins:
            without_edges = named if has_columns else ()
            yield sink_id, BY_SOURCES, _all_sources(memory, inputs, without_edges)


def _stated_origins(sinks: Mapping[int, Iterable[DatasetUse]]) -> dict[int, list[Origin]]:
    """Return the origins that lineage facets of the sinks state; other sinks have no entry."""
    stated: dict[int, list[Origin]] = {}
    for sink_id, listed in sinks.items():
        for facet in _facets(listed, "lineage"):
            origins = origins_of(facet.value)
            if origins is not None:
                stated[sink_id] = stated.get(sink_id, []) + origins
    return stated


def _facets(listed: Iterable[DatasetUse], key: str) -> list[Facet]:
    """Return the facets that one sink has where it is listed, each once."""
    facets = [use.facets[key] for use in listed if key in use.facets]
    return list({facet.hash: facet for facet in facets}.values())


def _rules_taken_back(job_facets: Facets, listed: Iterable[DatasetUse]) -> set[int]:
    """Return the rules whose facets of the job or a sink were deleted."""
    of_sink = {facet.key for use in listed for facet in use.stored if facet.deleted}
    rules = {RULE_OF_FACET[key] for key in of_sink.intersection(RULE_OF_FACET)}
    if any(facet.deleted and facet.key == "lineage" for facet in job_facets.stored):
        rules.add(BY_LINEAGE)
    return rules


def mentioned_by(memory: Memory, facets: Facets) -> list[DatasetSeen]:
    """Return the datasets that a dataset's own facets name as its sources."""
    columns, lineage = facets.get("columnLineage"), facets.value("lineage")
    names = EventNames(memory, {})
    mentions: list[DatasetSeen] = []
    if columns:
        mentions += _column_edges(names, [columns]).mentions
    if lineage:
        mentions += _edge_set(names, origins_of(lineage) or ()).mentions
    return mentions


def _column_edges(sources: EventNames, facets: Sequence[Facet]) -> EdgeSet:
    """Return the edges of all `columnLineage` facets of one sink.

    Without any they say nothing: constants and counts have no origin either.
    """

    def make() -> EdgeSet:
        origins = [origin for facet in facets for origin in _column_origins(facet.value)]
        return _edge_set(sources, origins)

    if not facets:
        return NO_EDGES
    if len(facets) > 1 or sources.own:
        return make()
    return sources.memory.result(("columns", facets[0].hash), make, _size)


def _column_origins(columns: f.ColumnLineage) -> list[Origin]:
    origins: list[Origin] = []
    for origin in columns.dataset or ():
        origins += [("", origin, how) for how in origin.transformations or (PLAIN,)]
    for column, entry in columns.fields.items():
        older = f.Transformation(
            entry.transformation_type or "", None, entry.transformation_description
        )
        for origin in entry.input_fields:
            origins += [(column, origin, how) for how in origin.transformations or (older,)]
    return origins


def _all_sources(memory: Memory, inputs: Sequence[DatasetUse], but: Collection[int]) -> EdgeSet:
    """Return plain edges from all inputs but these."""
    sources = tuple(sorted({use.dataset.id for use in inputs}.difference(but)))

    def make() -> EdgeSet:
        return _set_of([EventEdge("", source, "", "", "", "", None) for source in sources], ())

    return memory.result(("sources", sources), make, _size)


def _size(edges: EdgeSet) -> int:
    return 1000 + sum(500 + len(edge.columns) for edge in edges.edges)


def _edge_set(sources: EventNames, origins: Iterable[Origin]) -> EdgeSet:
    datasets: dict[tuple[str, str], DatasetSeen | None] = {}
    edges: list[EventEdge] = []
    for column, origin, how in origins:
        name = (origin.namespace, origin.name)
        if name not in datasets:
            datasets[name] = sources.dataset(*name)
        source = datasets[name]
        if source is not None:
            edges.append(_event_edge(column, source.id, origin.field or "", how))
    mentions = {source.id: source for source in datasets.values() if source is not None}
    if len(mentions) < len(datasets):  # two names are one dataset, or one is nobody's lineage
        edges = list(dict.fromkeys(edges))
    return _set_of(edges, tuple(mentions.values()))


def _event_edge(
    sink_column: str, source_id: int, source_column: str, how: f.Transformation
) -> EventEdge:
    masking = None if how.masking is None else int(how.masking)
    subtype, transform = how.subtype or "", how.description or ""
    return EventEdge(sink_column, source_id, source_column, how.type, subtype, transform, masking)


def _set_of(edges: Sequence[EventEdge], mentions: tuple[DatasetSeen, ...]) -> EdgeSet:
    encoded = msgspec.json.encode(edges)
    if b"\\u0000" in encoded:
        edges = [_cleaned(edge) for edge in edges]
        encoded = msgspec.json.encode(edges)
    hash_ = content_hash(encoded)
    by_source: dict[int, list[Edge]] = {}
    for position, edge in enumerate(edges):
        of_source = Edge(
            position,
            edge.sink_column,
            edge.source_column,
            edge.type,
            edge.subtype,
            edge.transform,
            edge.masking,
        )
        by_source.setdefault(edge.source_id, []).append(of_source)
    rows = [
        EdgeSeen(hash_, source_id, msgspec.json.encode(columns))
        for source_id, columns in by_source.items()
    ]
    return EdgeSet(hash_, tuple(rows), mentions)


def _cleaned(edge: EventEdge) -> EventEdge:
    return EventEdge(
        clean(edge.sink_column),
        edge.source_id,
        clean(edge.source_column),
        clean(edge.type),
        clean(edge.subtype),
        clean(edge.transform),
        edge.masking,
    )


def renamed_columns(dataset_id: int, names: Mapping[str, str]) -> EdgeSet:
    """Return columns of a dataset that were renamed, each an edge from its name before."""
    edges = [
        EventEdge(after, dataset_id, before, "", "", "", None)
        for before, after in sorted(names.items())
        if before and after and before != after
    ]
    return _set_of(edges, ()) if edges else NO_EDGES


def edges_into_view(source_ids: Collection[int]) -> tuple[int, EdgeSet]:
    """Return the edges from what a view's query read to the view, and their number as a rule."""
    edges = _set_of([EventEdge("", id_, "", "", "", "", None) for id_ in sorted(source_ids)], ())
    return READ_BY_VIEW - (int.from_bytes(edges.hash[:8]) >> 1), edges


def edges_in(columns: bytes) -> list[Edge]:
    """Return the edges that `EdgeSeen.columns` holds."""
    return _EDGES.decode(columns)
