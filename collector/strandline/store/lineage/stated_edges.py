"""The edges that runs stated into their sinks, and the rule that counts.

Edges are stored in sets. Each set is read once, however many of the runs made it.

A `lineage` facet says from which datasets a sink is made. Where it names no field it says nothing
of columns. Which goes where is left to the `columnLineage` facet, as far as it keeps to these
datasets. A dataset that no column names is one that perhaps goes into all of them.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

from sqlalchemy import (
    BigInteger,
    CompoundSelect,
    Connection,
    Select,
    cast,
    func,
    null,
    select,
    union_all,
)

from strandline.core.changes.edges import (
    BY_COLUMNS,
    BY_LINEAGE,
    NO_EDGES,
    READ_BY_VIEW,
    RENAMED_COLUMNS,
    Edge,
    edges_in,
)
from strandline.core.views import ViewsRead
from strandline.store.lineage.run_state import MOMENT, run_owners
from strandline.store.schema.dataset_tables import datasets
from strandline.store.schema.relation_tables import (
    edge_columns,
    edge_uses,
    run_templates,
    template_edges,
)
from strandline.store.sql.compression import expand
from strandline.store.sql.id_lists import among_given


class SetUse(NamedTuple):
    """A set of edges into a sink (canonical), by a rule."""

    sink: int
    rule: int
    set_hash: bytes


class SetEdges(NamedTuple):
    """The edges of a set that come from one source (canonical).

    `columns` is packed, empty unless it was asked for.
    """

    source: int
    columns: bytes


class EdgeSets(NamedTuple):
    """The sorted sets of outputs of runs, their members, and the views that the runs read."""

    of_run: dict[int, tuple[SetUse, ...]]
    edges: dict[bytes, list[SetEdges]]
    views: dict[int, ViewsRead]


def edge_sets_of(
    connection: Connection, runs: Collection[int], *, columns: bool = False
) -> EdgeSets:
    """The sets that these runs made. columns: with the columns of their edges."""
    uses: dict[int, list[SetUse]] = defaultdict(list)
    of_views: dict[int, list[SetUse]] = defaultdict(list)
    edges: dict[bytes, list[SetEdges]] = defaultdict(list)
    rows = connection.execute(_used(columns), {"runs": list(runs)}) if runs else ()
    for run, rule, dataset, set_hash, packed in rows:
        if run is None:
            edges[bytes(set_hash)].append(SetEdges(dataset, packed or b""))
        else:
            of_rule = of_views if rule <= READ_BY_VIEW else uses
            of_rule[run].append(SetUse(dataset, rule, bytes(set_hash)))
    views: dict[int, ViewsRead] = {}
    alike: dict[tuple[SetUse, ...], ViewsRead] = {}
    for run, of_run in of_views.items():
        key = tuple(sorted(of_run))
        if key not in alike:
            alike[key] = _views(key, edges)
        views[run] = alike[key]
    return EdgeSets({run: tuple(sorted(of_run)) for run, of_run in uses.items()}, edges, views)


def _views(uses: Iterable[SetUse], edges: Mapping[bytes, Iterable[SetEdges]]) -> ViewsRead:
    above: dict[int, set[int]] = {}
    for view, _, set_hash in uses:
        for edge in edges.get(set_hash, ()):
            above.setdefault(edge.source, set()).add(view)
    return ViewsRead(above)


def views_among(connection: Connection, ids: Collection[int]) -> list[int]:
    """Return those of these datasets (canonical) that a run read as views."""
    return list(connection.scalars(_views_among(), {"ids": list(ids)})) if ids else []


@cache
def _views_among() -> Select[Any]:
    joined = datasets.join(template_edges, template_edges.c.sink_id == datasets.c.id)
    return (
        select(datasets.c.canonical_id)
        .distinct()
        .select_from(joined)
        .where(
            among_given(datasets.c.canonical_id, "ids"),
            template_edges.c.rule <= READ_BY_VIEW,
        )
    )


def newest_readers(
    connection: Connection, views: Collection[int], moment: int | None
) -> list[tuple[int, int]]:
    """Return a run and its owning job for each set of sources that runs stated for these views.

    Of the runs that said it, by `moment` (in microseconds) if there is one, it is the newest.
    """
    if not views:
        return []
    bound = {"views": list(views), "moment": 2**63 - 1 if moment is None else moment}
    rows = connection.execute(_newest_readers(), bound)
    return [(run, job) for run, job in rows]


@cache
def _newest_readers() -> Select[Any]:
    newest_first = (run_templates.c.newest_at.desc(), run_templates.c.run_id)
    of_set = (datasets.c.canonical_id, template_edges.c.set_hash)
    readers = (
        select(
            run_templates.c.run_id,
            func.row_number().over(partition_by=of_set, order_by=newest_first).label("place"),
        )
        .join(template_edges, template_edges.c.template_id == run_templates.c.template_id)
        .join(datasets, datasets.c.id == template_edges.c.sink_id)
        .where(
            among_given(datasets.c.canonical_id, "views"),
            template_edges.c.rule <= READ_BY_VIEW,
            run_templates.c.first_at <= MOMENT,
        )
        .subquery("readers")
    )
    return (
        select(readers.c.run_id, run_owners.c.job_id)
        .distinct()
        .join(run_owners, run_owners.c.run_id == readers.c.run_id)
        .where(readers.c.place == 1)
    )


@cache
def _used(columns: bool) -> CompoundSelect[Any]:
    """First what the runs made, then (without a run) what is in the sets.

    In one statement, as most walks are over few runs.
    """
    sinks = datasets.alias("sinks")
    uses = (
        select(edge_uses.c.run_id, edge_uses.c.rule, sinks.c.canonical_id, edge_uses.c.set_hash)
        .join_from(edge_uses, sinks, sinks.c.id == edge_uses.c.sink_id)
        .where(
            among_given(edge_uses.c.run_id, "runs"),
            edge_uses.c.set_hash != NO_EDGES.hash,
            edge_uses.c.rule != RENAMED_COLUMNS,
        )
        .cte("uses")
    )
    packed = edge_columns.c.columns if columns else null()
    of_sets = (
        select(
            null(),
            cast(null(), BigInteger),
            datasets.c.canonical_id,
            edge_columns.c.set_hash,
            packed,
        )
        .join_from(edge_columns, datasets, datasets.c.id == edge_columns.c.source_id)
        .where(edge_columns.c.set_hash.in_(select(uses.c.set_hash)))
    )
    return union_all(select(uses, null()), of_sets)


@dataclass(frozen=True, slots=True)
class StatedInputs:
    """By run and output (canonical) the inputs (canonical) that the output was made of.

    What states none may be of all.
    """

    of_output: Mapping[tuple[int, int], Collection[int]]

    def admit(self, run: int, output: int, source: int) -> bool:
        """Return whether the run may have made the output of this input."""
        stated = self.of_output.get((run, output))
        return stated is None or source in stated


def stated_inputs(connection: Connection, runs: Collection[int]) -> StatedInputs:
    """Return the `lineage` facets of these runs."""
    sets = edge_sets_of(connection, runs)
    inputs: dict[tuple[int, int], set[int]] = defaultdict(set)
    for run, uses in sets.of_run.items():
        for use in uses:
            if use.rule == BY_LINEAGE:
                inputs[run, use.sink].update(
                    edge.source for edge in sets.edges.get(use.set_hash, ())
                )
    return StatedInputs(inputs)


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
