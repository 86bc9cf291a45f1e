"""Edges into the sinks of an event, and the rule that made them.

`lineage` facets, else `columnLineage`, else (for an event
that stands for itself) all of its sources; beside columns, the sources that no column names. Of
events that do not stand for themselves, all sources of the run, or those that none of its columns
names, are found when they are asked for.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

import msgspec

from strandline.core.changes.bundles import EdgeSet, Group, Link
from strandline.core.changes.declared_lineage import (
    PLAIN,
    Declared,
    EventNames,
    Origin,
    declared_by,
    names_of,
    origins_of,
)
from strandline.core.changes.parse_cache import Memo
from strandline.core.changes.rows import DatasetSeen, EdgeSeen
from strandline.core.changes.usable_facets import UsableFacets
from strandline.core.openlineage import facets as f
from strandline.core.openlineage.facets import content_hash
from strandline.core.openlineage.names import clean

BY_SOURCES, BY_COLUMNS, BY_LINEAGE = 1, 2, 3
FACETS = {"columnLineage": BY_COLUMNS, "lineage": BY_LINEAGE}
NO_EDGES = EdgeSet(
    bytes(16), (), ()
)  # what a rule's deleted facet leaves; no source at all would be an assertion


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


def edges_of(
    memo: Memo, inputs: Sequence[Link], outputs: Sequence[Link], of_job: "OfJob", stands_alone: bool
) -> Iterable[tuple[int, int, EdgeSet]]:
    """The sets of edges that an event states, each with its sink and the rule.

    A sink that is listed twice has one.
    """
    sources = names_of(memo, inputs)
    sinks = _by_sink(outputs)
    stated = {**of_job.declared.origins, **_stated(sinks)}
    for sink_id, origins in stated.items():
        yield sink_id, BY_LINEAGE, _edge_set(sources, origins)
    columns = {
        sink_id: _columns(sources, _facets(listed, "columnLineage"))
        for sink_id, listed in sinks.items()
    }
    named = _sources_in(set_ for sink_id, set_ in columns.items() if sink_id not in stated)
    for sink_id, listed in sinks.items():
        for rule in {*of_job.taken_back, *chain.from_iterable(map(_taken_back, listed))}:
            yield sink_id, rule, NO_EDGES
        if columns[sink_id].edges:
            yield sink_id, BY_COLUMNS, columns[sink_id]
        if stands_alone and sink_id not in stated:
            yield (
                sink_id,
                BY_SOURCES,
                _all_sources(memo, inputs, named if columns[sink_id].edges else ()),
            )


def _sources_in(sets: Iterable[EdgeSet]) -> set[int]:
    return {edge.source_id for one in sets for edge in one.edges}


def _by_sink(outputs: Iterable[Link]) -> dict[int, list[Link]]:
    sinks: dict[int, list[Link]] = {}
    for one in outputs:
        sinks.setdefault(one.dataset.id, []).append(one)
    return sinks


def _stated(sinks: Mapping[int, Iterable[Link]]) -> dict[int, list[Origin]]:
    """The origins that lineage facets of the sinks state.

    A sink without such a facet has no entry.
    """
    stated: dict[int, list[Origin]] = {}
    for sink_id, listed in sinks.items():
        for facet in _facets(listed, "lineage"):
            origins = origins_of(facet.value)
            if origins is not None:
                stated[sink_id] = stated.get(sink_id, []) + origins
    return stated


class OfJob(NamedTuple):
    """What the job's `lineage` facet has to do with an event's edges.

    What it declares, and the rules that it takes back.
    """

    declared: Declared
    taken_back: Sequence[int]


def of_job(
    memo: Memo, job_id: int, group: Group, inputs: Sequence[Link], outputs: Sequence[Link]
) -> OfJob:
    """What a job's facets have to do with the edges of an event with these inputs and outputs."""
    gone = any(facet.deleted and facet.key == "lineage" for facet in group.rows)
    declared = declared_by(memo, job_id, group.facets.value("lineage"), inputs, outputs)
    return OfJob(declared, (BY_LINEAGE,) if gone else ())


def mentioned_by(memo: Memo, facets: UsableFacets) -> list[DatasetSeen]:
    """The datasets that a dataset's own facets name as its sources, where no job tells of it."""
    columns, lineage = facets.get("columnLineage"), facets.value("lineage")
    names = EventNames(memo, {})
    sets = [_columns(names, [columns])] if columns else []
    sets += [_edge_set(names, origins_of(lineage) or ())] if lineage else []
    return [mention for edges in sets for mention in edges.mentions]


def _facets(listed: Iterable[Link], key: str) -> list[f.Facet]:
    """The facets that one sink has where it is listed, each once."""
    found = {
        facets[key].hash: facets[key]
        for facets in (one.group.facets for one in listed)
        if key in facets
    }
    return list(found.values())


def _taken_back(sink: Link) -> list[int]:
    """The rules whose facets were deleted."""
    return [FACETS[facet.key] for facet in sink.group.rows if facet.deleted and facet.key in FACETS]


def _columns(sources: EventNames, facets: Sequence[f.Facet]) -> EdgeSet:
    """The edges of all facets of one sink.

    Without any they say nothing: constants and counts have no origin either.
    """

    def make() -> EdgeSet:
        return _edge_set(sources, chain.from_iterable(_column_origins(one.value) for one in facets))

    if len(facets) != 1 or sources.own:
        return make() if facets else NO_EDGES
    return sources.memo.derived(("columns", facets[0].hash), make, _size)


def _column_origins(columns: f.ColumnLineage) -> list[Origin]:
    origins: list[Origin] = [
        ("", one, how) for one in columns.dataset or () for how in one.transformations or (PLAIN,)
    ]
    for column, entry in columns.fields.items():
        older = f.Transformation(
            entry.transformation_type or "", None, entry.transformation_description
        )
        origins += [
            (column, one, how)
            for one in entry.input_fields
            for how in one.transformations or (older,)
        ]
    return origins


def _all_sources(memo: Memo, inputs: Sequence[Link], but: Collection[int]) -> EdgeSet:
    sources = tuple(sorted({source.dataset.id for source in inputs}.difference(but)))

    def make() -> EdgeSet:
        return _set_of([EventEdge("", one, "", "", "", "", None) for one in sources], ())

    return memo.derived(("sources", sources), make, _size)


def _size(edges: EdgeSet) -> int:
    return 1000 + sum(500 + len(one.columns) for one in edges.edges)


def _edge_set(sources: EventNames, origins: Iterable[Origin]) -> EdgeSet:
    found: dict[tuple[str, str], DatasetSeen | None] = {}
    stated: list[EventEdge] = []
    for column, one, how in origins:
        name = (one.namespace, one.name)
        source = found.get(name) or found.setdefault(name, sources.dataset(name))
        if source is not None:
            stated.append(_stated_edge(column, source.id, one.field or "", how))
    mentions = {source.id: source for source in found.values() if source is not None}
    return _set_of(
        stated if len(mentions) == len(found) else list(dict.fromkeys(stated)),
        tuple(mentions.values()),
    )


def _stated_edge(
    sink_column: str, source_id: int, source_column: str, how: f.Transformation
) -> EventEdge:
    masking = None if how.masking is None else int(how.masking)
    subtype, transform = how.subtype or "", how.description or ""
    return EventEdge(sink_column, source_id, source_column, how.type, subtype, transform, masking)


def _set_of(stated: Sequence[EventEdge], mentions: tuple[DatasetSeen, ...]) -> EdgeSet:
    encoded = msgspec.json.encode(stated)
    if b"\\u0000" in encoded:
        stated = [_cleaned(one) for one in stated]
        encoded = msgspec.json.encode(stated)
    hash_ = content_hash(encoded)
    by_source: dict[int, list[Edge]] = {}
    for position, one in enumerate(stated):
        columns = one.sink_column, one.source_column
        edge = Edge(position, *columns, one.type, one.subtype, one.transform, one.masking)
        by_source.setdefault(one.source_id, []).append(edge)
    edges = tuple(
        [
            EdgeSeen(hash_, source_id, msgspec.json.encode(found))
            for source_id, found in by_source.items()
        ]
    )
    return EdgeSet(hash_, edges, mentions)


def _cleaned(one: EventEdge) -> EventEdge:
    return EventEdge(
        clean(one.sink_column),
        one.source_id,
        clean(one.source_column),
        clean(one.type),
        clean(one.subtype),
        clean(one.transform),
        one.masking,
    )


def edges_in(columns: bytes) -> list[Edge]:
    """The edges that `EdgeSeen.columns` holds."""
    return _EDGES.decode(columns)
