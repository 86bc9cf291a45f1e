"""Edges into the sinks of an event, and the rule that made them: `lineage` facets, else `columnLineage`, else (for an event
that stands for itself) all of its sources. Sinks without a rule get all sources of the run when they are asked for.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import msgspec

from strandline.core import facets as f
from strandline.core.bundles import EdgeSet, Link
from strandline.core.changes import DatasetSeen, EdgeSeen
from strandline.core.facets import content_hash
from strandline.core.memo import Dataset, Memo, Said
from strandline.core.naming import clean

BY_SOURCES, BY_COLUMNS, BY_LINEAGE = 1, 2, 3
FACETS = {"columnLineage": BY_COLUMNS, "lineage": BY_LINEAGE}
NOTHING_SAID = EdgeSet(bytes(16), (), ())  # what a rule's deleted facet leaves; no source at all would be an assertion

# sink column, origin, transformation
Origin = tuple[str, f.InputField, f.Transformation]
_PLAIN = f.Transformation()
# sink column ('' for the whole dataset), source, its column, type, subtype, transform, masking
Row = tuple[str, int, str, str, str, str, int | None]


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


class Ends(Protocol):
    """A dataset of an event, under the name that the event has for it, with what its facets say."""

    @property
    def called(self) -> tuple[str, str]:
        """Namespace and name, as they came."""

    @property
    def known(self) -> Dataset:
        """What it is stored as."""

    @property
    def link(self) -> Link:
        """Which."""

    @property
    def said(self) -> Said:
        """What."""


class Sources(NamedTuple):
    """How the source of an edge is found: `own` are inputs of the same event that are stored as their names do not tell."""

    memo: Memo
    own: Mapping[tuple[str, str], Dataset]

    def dataset(self, name: tuple[str, str]) -> Dataset:
        """The dataset that the event calls so."""
        return self.own.get(name) or self.memo.dataset(*name)


def edges_of(
    memo: Memo, inputs: Sequence[Ends], outputs: Sequence[Ends], said_of_job: Said, stands_alone: bool
) -> Iterable[tuple[int, int, EdgeSet]]:
    """The sets of edges that an event states, each with its sink and the rule."""
    sources = Sources(memo, {one.called: one.known for one in inputs if _is_renamed(memo, one)})
    stated = dict(_stated_by_job(sources, said_of_job.value("lineage")))
    for sink in outputs:
        lineage = sink.said.value("lineage")
        if lineage is not None and (origins := origins_of(lineage)) is not None:
            stated[sink.link.dataset_id] = _edge_set(sources, origins)
    for sink_id, edges in stated.items():
        yield sink_id, BY_LINEAGE, edges
    for sink in outputs:
        sink_id = sink.link.dataset_id
        for rule in _taken_back(sink):
            yield sink_id, rule, NOTHING_SAID
        if "columnLineage" in sink.said:
            yield sink_id, BY_COLUMNS, _columns(sources, sink.said["columnLineage"])
        elif stands_alone and sink_id not in stated:
            yield sink_id, BY_SOURCES, _all_sources(memo, inputs)


def _taken_back(sink: Ends) -> list[int]:
    """The rules whose facets were deleted."""
    return [FACETS[facet.key] for facet in sink.link.facets if facet.deleted and facet.key in FACETS]


def _is_renamed(memo: Memo, one: Ends) -> bool:
    """Whether it is stored as another dataset than its name tells; mostly it is stored under this very name."""
    return one.known.named[2:4] != one.called and one.known.id != memo.dataset(*one.called).id


def origins_of(lineage: f.Lineage) -> list[Origin] | None:
    """The origins that a lineage facet or entry states; [] is "none", None says nothing."""
    if lineage.inputs is None and not lineage.fields:
        return None
    origins = [("", one, how) for one in lineage.inputs or () for how in one.transformations or (_PLAIN,)]
    for column, entry in (lineage.fields or {}).items():
        origins += [(column, one, how) for one in entry.inputs for how in one.transformations or (_PLAIN,)]
    return [origin for origin in origins if origin[1].type != "JOB"]


def _stated_by_job(sources: Sources, lineage: f.JobLineage | None) -> Iterable[tuple[int, EdgeSet]]:
    for entry in lineage.entries if lineage else ():
        origins = origins_of(entry)
        if entry.type != "JOB" and entry.namespace and entry.name and origins is not None:
            yield sources.memo.dataset(entry.namespace, entry.name).id, _edge_set(sources, origins)


def _columns(sources: Sources, facet: f.Facet) -> EdgeSet:
    def make() -> EdgeSet:
        return _edge_set(sources, _column_origins(facet.value))

    return make() if sources.own else sources.memo.derived(("columns", facet.hash), make, _size)


def _column_origins(columns: f.ColumnLineage) -> list[Origin]:
    origins: list[Origin] = [
        ("", one, how) for one in columns.dataset or () for how in one.transformations or (_PLAIN,)
    ]
    for column, entry in columns.fields.items():
        older = f.Transformation(entry.transformation_type or "", None, entry.transformation_description)
        origins += [(column, one, how) for one in entry.input_fields for how in one.transformations or (older,)]
    return origins


def _all_sources(memo: Memo, inputs: Sequence[Ends]) -> EdgeSet:
    sources = tuple(sorted({source.link.dataset_id for source in inputs}))

    def make() -> EdgeSet:
        return _set_of([("", one, "", "", "", "", None) for one in sources], ())

    return memo.derived(("sources", sources), make, _size)


def _size(edges: EdgeSet) -> int:
    return 1000 + sum(500 + len(one.columns) for one in edges.edges)


def _edge_set(sources: Sources, origins: Iterable[Origin]) -> EdgeSet:
    found: dict[tuple[str, str], Dataset] = {}
    rows: list[Row] = []
    for column, one, how in origins:
        name = (one.namespace, one.name)
        source = found.get(name) or found.setdefault(name, sources.dataset(name))
        if not source.noise:
            masking = None if how.masking is None else int(how.masking)
            said = (how.type, how.subtype or "", how.description or "")
            rows.append((column, source.id, one.field or "", *said, masking))
    mentions = {source.id: source.mention for source in found.values() if not source.noise}
    return _set_of(rows if len(mentions) == len(found) else list(dict.fromkeys(rows)), tuple(mentions.values()))


def _set_of(rows: Sequence[Row], mentions: tuple[DatasetSeen, ...]) -> EdgeSet:
    encoded = msgspec.json.encode(rows)
    if b"\\u0000" in encoded:
        rows = [_cleaned(row) for row in rows]
        encoded = msgspec.json.encode(rows)
    hash_ = content_hash(encoded)
    by_source: dict[int, list[tuple[Any, ...]]] = {}
    for position, row in enumerate(rows):
        by_source.setdefault(row[1], []).append((position, row[0], *row[2:]))  # an Edge, which only readers need
    edges = tuple([EdgeSeen(hash_, source_id, msgspec.json.encode(found)) for source_id, found in by_source.items()])
    return EdgeSet(hash_, edges, mentions)


def _cleaned(row: Row) -> Row:
    column, source_id, source_column, type_, subtype, transform, masking = row
    return clean(column), source_id, clean(source_column), clean(type_), clean(subtype), clean(transform), masking


def edges_in(columns: bytes) -> list[Edge]:
    """The edges that `EdgeSeen.columns` holds."""
    return _EDGES.decode(columns)
