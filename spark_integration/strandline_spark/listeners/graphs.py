"""Statements as FLIP-314's lineage graph.

And a user's or provider's vertices as datasets of a Statement.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from strandline_spark.model.flip314 import (
    Boundedness,
    DatasetSchemaFacet,
    LineageDataset,
    LineageEdge,
    LineageGraph,
    ModifyType,
    TableColumnLineageEdge,
    TableLineageDataset,
    TableLineageEdge,
    TableSinkLineageVertex,
    TableSourceLineageVertex,
)
from strandline_spark.model.statement import Column, Dataset, Field, Origin, Output, Statement

_MODIFY = {"delete": ModifyType.DELETE, "update": ModifyType.UPDATE, "merge": ModifyType.UPDATE}


def graph_of(statements: Sequence[Statement], streaming: bool) -> LineageGraph:
    """Return a graph: inputs are its sources, outputs are its sinks.

    An edge leads from each input of a statement to each of its outputs.
    """
    boundedness = Boundedness.CONTINUOUS_UNBOUNDED if streaming else Boundedness.BOUNDED
    sources = {d: TableSourceLineageVertex((d,), boundedness) for d in _inputs(statements)}
    sinks: dict[LineageDataset, TableSinkLineageVertex] = {}
    relations: list[LineageEdge] = []
    for statement in statements:
        for output in statement.outputs:
            dataset = lineage_dataset(output.dataset)
            sink = sinks.setdefault(
                dataset,
                TableSinkLineageVertex(
                    (dataset,), _MODIFY.get(output.operation, ModifyType.INSERT)
                ),
            )
            for read in statement.inputs:
                source = lineage_dataset(read)
                relations.append(
                    TableLineageEdge(sources[source], sink, column_edges(source, statement))
                )
    return LineageGraph(
        tuple(sources.values()), tuple(sinks.values()), tuple(dict.fromkeys(relations))
    )


def _inputs(statements: Sequence[Statement]) -> list[LineageDataset]:
    return list(
        dict.fromkeys(
            lineage_dataset(read) for statement in statements for read in statement.inputs
        )
    )


def column_edges(
    source: LineageDataset, statement: Statement
) -> tuple[TableColumnLineageEdge, ...]:
    """For each column of the output, the columns of this source that it is made of."""
    edges = []
    for column in statement.columns:
        origins = [o.column for o in column.origins if o.dataset == (source.namespace, source.name)]
        if origins:
            edges.append(TableColumnLineageEdge(source, tuple(dict.fromkeys(origins)), column.name))
    return tuple(edges)


def lineage_dataset(dataset: Dataset) -> LineageDataset:
    """Return a Statement's dataset as FLIP-314's, a table where it is one."""
    facets: dict[str, Any] = dict(dataset.facets)
    if dataset.schema:
        facets["schema"] = DatasetSchemaFacet(
            {column.name: column.type for column in dataset.schema}
        )
    if dataset.table is None:
        return LineageDataset(dataset.name, dataset.namespace, facets)
    catalog, _, path = dataset.table.partition(".")
    return TableLineageDataset(
        dataset.name, dataset.namespace, facets, catalog, dataset.table, path
    )


def dataset_of(dataset: LineageDataset, kind: str) -> Dataset:
    """Return a user's or provider's dataset as a Statement has it."""
    schema = dataset.facets.get("schema")
    fields = (
        tuple(Field(n, t) for n, t in schema.fields.items())
        if isinstance(schema, DatasetSchemaFacet)
        else ()
    )
    facets = {
        key: facet
        for key, facet in dataset.facets.items()
        if not isinstance(facet, DatasetSchemaFacet)
    }
    table = dataset.table if isinstance(dataset, TableLineageDataset) and dataset.table else None
    return Dataset(dataset.namespace, dataset.name, kind, fields, table=table, facets=facets)


def with_edges(statements: Sequence[Statement], edges: Sequence[LineageEdge]) -> list[Statement]:
    """Return the statements with a user's edges in place of what was found.

    One statement a sink, so that each has its own.

    Snapshots and schemas that were found stay with their datasets; a sink that no edge names has no
    source.
    """
    datasets = {
        _key(d): d for s in statements for d in (*s.inputs, *(o.dataset for o in s.outputs))
    }
    written = {
        _key(output.dataset): output for statement in statements for output in statement.outputs
    }
    for edge in edges:
        for sink in edge.sink.datasets:
            written.setdefault(
                (sink.namespace, sink.name), Output(dataset_of(sink, "user"), "append")
            )
    return [_statement(output, edges, datasets) for output in written.values()]


def _statement(
    output: Output, edges: Sequence[LineageEdge], datasets: Mapping[tuple[str, str], Dataset]
) -> Statement:
    own = [edge for edge in edges if _writes(edge, output.dataset)]
    sources = dict.fromkeys(dataset for edge in own for dataset in edge.source.datasets)
    inputs = tuple(datasets.get((d.namespace, d.name)) or dataset_of(d, "user") for d in sources)
    columns = [c for edge in own if isinstance(edge, TableLineageEdge) for c in edge.column_edges]
    return Statement("UserEdges", inputs, (output,), _columns(columns))


def _writes(edge: LineageEdge, dataset: Dataset) -> bool:
    return any(
        (dataset_.namespace, dataset_.name) == _key(dataset) for dataset_ in edge.sink.datasets
    )


def _columns(edges: Sequence[TableColumnLineageEdge]) -> tuple[Column, ...]:
    columns: dict[str, list[Origin]] = {}
    for edge in edges:
        origins = [
            Origin((edge.source.namespace, edge.source.name), column, "DIRECT", "TRANSFORMATION")
            for column in edge.source_columns
        ]
        columns.setdefault(edge.sink_column, []).extend(origins)
    return tuple(Column(name, tuple(origins)) for name, origins in columns.items())


def _key(dataset: Dataset) -> tuple[str, str]:
    return dataset.namespace, dataset.name
