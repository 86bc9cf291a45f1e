"""Python data sources that know their own lineage.

The provider's datasets in place of the one that Spark can name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from strandline_spark.formats.python import OPTIONS
from strandline_spark.listeners.graphs import dataset_of
from strandline_spark.model.flip314 import LineageVertexProvider
from strandline_spark.model.statement import Column, Dataset, Statement
from strandline_spark.swallowed import swallowed

_SCHEME = "python://"


def provided(statement: Statement) -> Statement:
    """Return the statement with each provider's datasets for its source or sink."""
    if not any(OPTIONS in dataset.facets for dataset in _datasets(statement)):
        return statement
    replacements = {
        (d.namespace, d.name): _datasets_of_provider(d)
        for d in _datasets(statement)
        if OPTIONS in d.facets
    }
    inputs = [
        dataset_
        for d in statement.inputs
        for dataset_ in replacements.get((d.namespace, d.name), [d])
    ]
    outputs = [
        replace(output, dataset=dataset_)
        for output in statement.outputs
        for dataset_ in replacements.get(
            (output.dataset.namespace, output.dataset.name), [output.dataset]
        )
    ]
    return replace(
        statement,
        inputs=tuple(inputs),
        outputs=tuple(outputs),
        columns=_columns(statement, replacements),
    )


def _datasets(statement: Statement) -> list[Dataset]:
    return [*statement.inputs, *(output.dataset for output in statement.outputs)]


def _columns(
    statement: Statement, replacements: Mapping[tuple[str, str], list[Dataset]]
) -> tuple[Column, ...]:
    """Origins under the provider's name.

    Where it tells of several datasets, nobody knows which one a column is of.
    """
    columns = []
    for column in statement.columns:
        origins = []
        for origin in column.origins:
            datasets = replacements.get(origin.dataset)
            if datasets is None:
                origins.append(origin)
            elif len(datasets) == 1:
                origins.append(replace(origin, dataset=(datasets[0].namespace, datasets[0].name)))
        columns.append(Column(column.name, tuple(origins)))
    return tuple(columns)


def _datasets_of_provider(dataset: Dataset) -> list[Dataset]:
    """Return the provider's answer.

    The dataset as Spark names it, where there is no provider or it fails.
    """
    facets = dict(dataset.facets)
    options = facets.pop(OPTIONS)
    plain = replace(dataset, facets=facets)
    provider = _provider(dataset.namespace.removeprefix(_SCHEME))
    if provider is None:
        return [plain]
    try:
        vertex = provider(options=options).get_lineage_vertex()
    except Exception as error:
        swallowed(f"{provider.__name__} tells no vertex", error)
        return [plain]
    datasets = [dataset_of(dataset_, dataset.format) for dataset_ in vertex.datasets]
    return [
        replace(dataset_, schema=dataset_.schema or dataset.schema) for dataset_ in datasets
    ] or [plain]


def _provider(name: str) -> Any:
    """Return the data source's class, found by its short name among the program's providers."""
    for provider in _below(LineageVertexProvider):
        named = getattr(provider, "name", None)
        if callable(named) and named() == name:
            return provider
    return None


def _below(root: type[LineageVertexProvider]) -> list[type[LineageVertexProvider]]:
    return [kind for child in root.__subclasses__() for kind in (child, *_below(child))]
