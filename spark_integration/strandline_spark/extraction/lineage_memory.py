"""The memory of column ids of earlier statements.

A checkpoint, and the rows given to a foreachBatch, come back as a relation of rows with the same
ids and nothing else. What was known of the ids is what those rows are made of. Rows whose ids are
exactly a statement's output are that statement's: all that it read is read, what decided its rows
decides, and what was opaque in it is opaque.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence

from strandline_spark.columns.expression import Value
from strandline_spark.columns.scopes import Scope
from strandline_spark.model.statement import Dataset

_IDS = 4096
_OUTPUTS = 512

Sources = Mapping[tuple[str, str], Dataset]
Ids = tuple[int, ...]


class Memory:
    """The newest ids with their values, the newest outputs, and the datasets of both.

    The datasets are as the statement read them.
    """

    def __init__(self) -> None:
        self._values: OrderedDict[int, tuple[Value, Sources]] = OrderedDict()
        self._outputs: OrderedDict[Ids, tuple[Scope, Sources]] = OrderedDict()

    def keep(self, scope: Scope, datasets: Iterable[Dataset]) -> None:
        """Remember what a statement gave."""
        sources = {(dataset.namespace, dataset.name): dataset for dataset in datasets}
        ids = tuple(expr_id for expr_id, _ in scope.output)
        for expr_id in ids:
            if expr_id in scope.values:
                self._values[expr_id] = scope.values[expr_id], sources
                self._values.move_to_end(expr_id)
        if ids:
            self._outputs[ids] = Scope(scope.output, {}, scope.indirect, scope.opaque), sources
            self._outputs.move_to_end(ids)
        while len(self._values) > _IDS:
            self._values.popitem(last=False)
        while len(self._outputs) > _OUTPUTS:
            self._outputs.popitem(last=False)

    def recall(self) -> Recalled:
        """For one statement: what it asks for is noted."""
        return Recalled(self._values, self._outputs)


class Recalled:
    """The part of memory that one statement uses."""

    def __init__(
        self,
        values: Mapping[int, tuple[Value, Sources]],
        outputs: Mapping[Ids, tuple[Scope, Sources]],
    ) -> None:
        self._values = values
        self._outputs = outputs
        self._used: dict[int, Sources] = {}
        self._read: dict[tuple[str, str], Dataset] = {}

    def value(self, expr_id: int) -> Value | None:
        """Return the sources of an id."""
        value_found = self._values.get(expr_id)
        if value_found is None:
            return None
        self._used[expr_id] = value_found[1]
        return value_found[0]

    def output(self, ids: Ids) -> Scope | None:
        """Return the deciding and the opaque columns of the statement whose output this is.

        Its sources count as read.
        """
        output_found = self._outputs.get(ids)
        if output_found is None:
            return None
        self._read.update(output_found[1])
        return output_found[0]

    def sources(
        self, origins: Iterable[tuple[str, str]], present: Sequence[Dataset]
    ) -> list[Dataset]:
        """Return the datasets of the rows that the statement itself does not read.

        With the views that they were read through.
        """
        here = {(dataset.namespace, dataset.name) for dataset in present}
        remembered = [
            self._read,
            *{id(sources): sources for sources in self._used.values()}.values(),
        ]
        waiting = [*origins, *self._read]
        sources_found = list[Dataset]()
        for origin in waiting:
            sources = next((sources for sources in remembered if origin in sources), None)
            if origin in here or sources is None:
                continue
            here.add(origin)
            sources_found.append(sources[origin])
            waiting += [view for view in sources[origin].through if view is not None]
        return sources_found
