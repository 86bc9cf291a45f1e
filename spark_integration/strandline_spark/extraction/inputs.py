"""The inputs of a statement, as datasets and as the values of its leaves' columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from strandline_spark.columns.expression import Ref, Value, column
from strandline_spark.extraction.datasets_of_plan import Parts, Read
from strandline_spark.model.statement import Dataset, each_once


def key_of(dataset: Dataset) -> tuple[str, str]:
    """Return the key of a dataset."""
    return dataset.namespace, dataset.name


def lasting(parts: Parts, inputs: Sequence[Dataset]) -> list[Dataset]:
    """Return the facts about the inputs that later statements may use.

    What a micro-batch reads is that micro-batch's only.
    """
    streams = any(read.streams for read in parts.reads)
    return [
        replace(dataset, snapshots=(), streamed=False) if streams else dataset for dataset in inputs
    ]


def values_of_leaves(reads: Sequence[Read]) -> dict[int, Value]:
    """Return the columns that the ids of leaves stand for.

    Datasets that are read as one have their columns together, as in a UNION. Metadata about
    rows (`_metadata.file_path`, `_change_type`) is not a column of the dataset.
    """
    values: dict[int, Value] = {}
    for read in reads:
        schema = {field.name.lower() for field in read.dataset.schema}
        for expr_id, name in read.mention.columns:
            if read.queried is not None:
                own = read.queried.get(expr_id, ())
            elif schema and name.lower() not in schema:
                continue
            else:
                own = column(_ref(read.dataset, name))
            values[expr_id] = (*values.get(expr_id, ()), *own)
    return values


def _ref(dataset: Dataset, name: str) -> Ref:
    return Ref(key_of(dataset), name, dataset.table or dataset.name)


def distinct(datasets: Sequence[Dataset]) -> tuple[Dataset, ...]:
    """Each dataset once; one that is read at several snapshots keeps them all."""
    merged: dict[tuple[str, str], Dataset] = {}
    for dataset in datasets:
        key = key_of(dataset)
        earlier = merged.get(key)
        merged[key] = dataset if earlier is None else _joined(earlier, dataset)
    return tuple(merged.values())


def _joined(earlier: Dataset, later: Dataset) -> Dataset:
    snapshots = each_once((*earlier.snapshots, *later.snapshots))
    through = tuple(dict.fromkeys((*earlier.through, *later.through)))
    streamed = earlier.streamed or later.streamed
    return replace(earlier, snapshots=snapshots, streamed=streamed, through=through)
