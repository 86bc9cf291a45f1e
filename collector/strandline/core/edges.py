"""Edges into the sinks of an event, and the rule that made them: `lineage` facets, else `columnLineage`, else (for an event
that stands for itself) all of its sources. Sinks without a rule get all sources of the run when they are asked for.
"""

from collections.abc import Iterable, Sequence
from typing import Protocol

import msgspec

from strandline.core import facets as f
from strandline.core.bundles import EdgeSet, Link
from strandline.core.changes import DatasetSeen, EdgeSeen
from strandline.core.facets import content_hash
from strandline.core.memo import Memo, Said
from strandline.core.naming import clean

BY_SOURCES, BY_COLUMNS, BY_LINEAGE = 1, 2, 3

# sink column, origin, transformation
Origin = tuple[str, f.InputField, f.Transformation]
_PLAIN = f.Transformation()


class Ends(Protocol):
    """A dataset of an event, with what its facets say."""

    @property
    def link(self) -> Link:
        """Which."""

    @property
    def said(self) -> Said:
        """What."""


def edges_of(
    memo: Memo, inputs: Sequence[Ends], outputs: Sequence[Ends], said_of_job: Said, stands_alone: bool
) -> Iterable[tuple[int, int, EdgeSet]]:
    """The sets of edges that an event states, each with its sink and the rule."""
    stated = dict(_stated_by_job(memo, said_of_job.value("lineage")))
    for sink in outputs:
        lineage = sink.said.value("lineage")
        if lineage is not None and (origins := origins_of(lineage)) is not None:
            stated[sink.link.dataset_id] = _edge_set(memo, origins)
    for sink_id, edges in stated.items():
        yield sink_id, BY_LINEAGE, edges
    for sink in outputs:
        sink_id = sink.link.dataset_id
        if "columnLineage" in sink.said:
            yield sink_id, BY_COLUMNS, _columns(memo, sink.said["columnLineage"])
        elif stands_alone and sink_id not in stated:
            yield sink_id, BY_SOURCES, _all_sources(memo, inputs)


def origins_of(lineage: f.Lineage) -> list[Origin] | None:
    """The origins that a lineage facet or entry states; [] is "none", None says nothing."""
    if lineage.inputs is None and not lineage.fields:
        return None
    origins = [("", one, how) for one in lineage.inputs or () for how in one.transformations or (_PLAIN,)]
    for column, entry in (lineage.fields or {}).items():
        origins += [(column, one, how) for one in entry.inputs for how in one.transformations or (_PLAIN,)]
    return [origin for origin in origins if origin[1].type != "JOB"]


def _stated_by_job(memo: Memo, lineage: f.JobLineage | None) -> Iterable[tuple[int, EdgeSet]]:
    for entry in lineage.entries if lineage else ():
        origins = origins_of(entry)
        if entry.type != "JOB" and entry.namespace and entry.name and origins is not None:
            yield memo.dataset(entry.namespace, entry.name).id, _edge_set(memo, origins)


def _columns(memo: Memo, facet: f.Facet) -> EdgeSet:
    return memo.derived(("columns", facet.hash), lambda: _edge_set(memo, _column_origins(facet.value)))


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

    return memo.derived(("sources", sources), make)


def _edge_set(memo: Memo, origins: Iterable[Origin]) -> EdgeSet:
    mentions: dict[int, DatasetSeen] = {}
    rows = []
    for column, one, how in origins:
        source = memo.dataset(one.namespace, one.name)
        mentions[source.id] = source.mention
        if not source.noise:
            masking = None if how.masking is None else int(how.masking)
            type_, subtype, transform = map(clean, (how.type, how.subtype or "", how.description or ""))
            rows.append((clean(column), source.id, clean(one.field or ""), type_, subtype, transform, masking))
    return _set_of(rows, tuple(mentions.values()))


def _set_of(
    rows: Sequence[tuple[str, int, str, str, str, str, int | None]], mentions: tuple[DatasetSeen, ...]
) -> EdgeSet:
    hash_ = content_hash(msgspec.json.encode(rows))
    return EdgeSet(hash_, tuple(EdgeSeen(hash_, position, *row) for position, row in enumerate(rows)), mentions)
