"""The edges of columns that runs state for a sink, by the rule that counts.

A `lineage` facet says from which datasets a sink is made. Where it names no field it says nothing
of columns. Which goes where is left to the `columnLineage` facet, as far as it keeps to these
datasets. A dataset that no column names is one that perhaps goes into all of them.
"""

from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from strandline.core.changes.edges import BY_COLUMNS, BY_LINEAGE, Edge, edges_in
from strandline.store.lineage.edge_sets import EdgeSets, SetUse
from strandline.store.sql.compression import expand


class StatedEdge(NamedTuple):
    """An edge as it was stated, by a rule, from a dataset that stands for its group of names.

    is_opaque: a lineage facet names the dataset and no field, and does not say that only its rows
    matter.
    """

    edge: Edge
    rule: int
    source: int
    is_opaque: bool = False


class StatedEdges:
    """The edges of sets, each set unpacked once."""

    def __init__(self, sets: EdgeSets) -> None:
        self._sets = sets
        self._unpacked: dict[tuple[SetUse, ...], list[StatedEdge]] = {}

    def counting(self, run: int, sink: int) -> tuple[SetUse, ...]:
        """The sets of a run into a sink that count.

        Those by the strongest rule, and columns beside a lineage facet.
        """
        uses = [entry for entry in self._sets.of_run.get(run, ()) if entry.sink == sink]
        strongest = uses[-1].rule if uses else 0
        rules = {BY_LINEAGE, BY_COLUMNS} if strongest == BY_LINEAGE else {strongest}
        return tuple([use for use in uses if use.rule in rules])

    def edges(self, uses: tuple[SetUse, ...]) -> list[StatedEdge]:
        """The edges of these sets, all of which are of one sink."""
        found = self._unpacked.get(uses)
        if found is None:
            of_lineage = self._unpack(use for use in uses if use.rule == BY_LINEAGE)
            others = self._unpack(use for use in uses if use.rule != BY_LINEAGE)
            has_lineage = bool(uses) and uses[-1].rule == BY_LINEAGE
            found = self._unpacked[uses] = _joined(of_lineage, others) if has_lineage else others
        return found

    def _unpack(self, uses: Iterable[SetUse]) -> list[StatedEdge]:
        return sorted(
            StatedEdge(edge, rule, source)
            for _, rule, set_hash in uses
            for source, columns in self._sets.edges.get(set_hash, ())
            for edge in edges_in(expand(columns))
        )


def _joined(of_lineage: list[StatedEdge], of_columns: list[StatedEdge]) -> list[StatedEdge]:
    """Return the edges of a sink with a lineage facet.

    None leads from a dataset that the facet does not name.
    """
    sources = {edge.source for edge in of_lineage}
    fields = [edge for edge in of_lineage if _names_field(edge.edge)]
    fields = fields or [of_column for of_column in of_columns if of_column.source in sources]
    return [*fields, *_of_whole(of_lineage, {field.source for field in fields})]


def _of_whole(of_lineage: Iterable[StatedEdge], named: Collection[int]) -> Iterator[StatedEdge]:
    """The edges of whole datasets.

    Where fields of one are named, only those that say that its rows matter as well.
    """
    for edge in of_lineage:
        if _names_field(edge.edge):
            continue
        if edge.edge.type.upper() == "INDIRECT":
            yield edge
        elif edge.source not in named:
            yield edge._replace(is_opaque=True)


def _names_field(edge: Edge) -> bool:
    return bool(edge.sink_column or edge.source_column)
