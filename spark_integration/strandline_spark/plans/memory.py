"""What earlier statements made of the ids of their columns.

A checkpoint, and the rows given to a foreachBatch, come back as a relation of rows with the same ids and nothing else;
what was known of the ids is what those rows are made of.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence

from strandline_spark.columns.terms import Value
from strandline_spark.statement import Dataset

_IDS = 4096

Sources = Mapping[tuple[str, str], Dataset]


class Memory:
    """The newest ids with their values, and the datasets that these come from, as the statement read them."""

    def __init__(self) -> None:
        self._values: OrderedDict[int, tuple[Value, Sources]] = OrderedDict()

    def keep(self, values: Mapping[int, Value], datasets: Iterable[Dataset]) -> None:
        """Remember what a statement gave."""
        sources = {(dataset.namespace, dataset.name): dataset for dataset in datasets}
        for expr_id, value in values.items():
            self._values[expr_id] = value, sources
            self._values.move_to_end(expr_id)
        while len(self._values) > _IDS:
            self._values.popitem(last=False)

    def recall(self) -> Recalled:
        """For one statement: what it asks for is noted."""
        return Recalled(self._values)


class Recalled:
    """What one statement takes from memory."""

    def __init__(self, values: Mapping[int, tuple[Value, Sources]]) -> None:
        self._values = values
        self._used: dict[int, Sources] = {}

    def value(self, expr_id: int) -> Value | None:
        """What an id was made of."""
        found = self._values.get(expr_id)
        if found is None:
            return None
        self._used[expr_id] = found[1]
        return found[0]

    def sources(self, origins: Iterable[tuple[str, str]], present: Sequence[Dataset]) -> list[Dataset]:
        """The datasets that columns come from although the statement itself does not read them."""
        here = {(dataset.namespace, dataset.name) for dataset in present}
        missing = [origin for origin in dict.fromkeys(origins) if origin not in here]
        told = list({id(sources): sources for sources in self._used.values()}.values())
        return [sources[origin] for origin in missing for sources in told if origin in sources]
