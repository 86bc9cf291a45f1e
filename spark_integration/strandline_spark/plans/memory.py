"""What earlier statements made of the ids of their columns.

A checkpoint, and the rows given to a foreachBatch, come back as a relation of rows with the same ids and nothing else;
what was known of the ids is what those rows are made of.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from strandline_spark.columns.terms import Value
from strandline_spark.statement import Dataset

_IDS = 4096
_DATASETS = 512


class Memory:
    """The newest ids with their values, and the datasets that these come from."""

    def __init__(self) -> None:
        self._values: OrderedDict[int, Value] = OrderedDict()
        self._datasets: OrderedDict[tuple[str, str], Dataset] = OrderedDict()

    def value(self, expr_id: int) -> Value | None:
        """What an id was made of."""
        return self._values.get(expr_id)

    def keep(self, values: Mapping[int, Value], datasets: Iterable[Dataset]) -> None:
        """Remember what a statement gave."""
        for expr_id, value in values.items():
            self._values[expr_id] = value
            self._values.move_to_end(expr_id)
        for dataset in datasets:
            key = (dataset.namespace, dataset.name)
            self._datasets[key] = dataset
            self._datasets.move_to_end(key)
        _shrink(self._values, _IDS)
        _shrink(self._datasets, _DATASETS)

    def sources(self, origins: Iterable[tuple[str, str]], present: Sequence[Dataset]) -> list[Dataset]:
        """The datasets that columns come from although the statement itself does not read them."""
        here = {(dataset.namespace, dataset.name) for dataset in present}
        missing = dict.fromkeys(origin for origin in origins if origin not in here)
        return [self._datasets[origin] for origin in missing if origin in self._datasets]


def _shrink(remembered: OrderedDict[Any, Any], most: int) -> None:
    while len(remembered) > most:
        remembered.popitem(last=False)
