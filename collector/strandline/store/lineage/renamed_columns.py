"""The names that columns have now, for edges that were stated under earlier ones.

A rename counts from its event on: an edge that was stated before it follows the column, and one
that was stated after it means another column of that name. A batch run knows the names of when it
began, even if it states them again at its end. A streaming run plans anew and knows those of its
last event.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable
from functools import cache
from typing import Any, NamedTuple

from sqlalchemy import Connection, Select, case, func, select

from strandline.core.changes.edges import RENAMED_COLUMNS, edges_in
from strandline.store.lineage.recent_runs import JobEdge
from strandline.store.schema.dataset_tables import datasets
from strandline.store.schema.relation_tables import edge_columns, edge_uses
from strandline.store.schema.run_tables import runs
from strandline.store.sql.compression import expand
from strandline.store.sql.id_lists import among_given

# The moment whose names of columns an edge of a run uses. The query joins `edge_uses` with `runs`.
NAMED_AT = case(
    (runs.c.streaming == 1, edge_uses.c.at), else_=func.coalesce(runs.c.first_at, edge_uses.c.at)
)


class Renames(NamedTuple):
    """The columns of a dataset that a run renamed at a moment, by their names before."""

    at: int
    names: dict[str, str]


class RenamedColumns:
    """The renamed columns of some canonical datasets."""

    def __init__(
        self, renames: Iterable[tuple[int, Renames]], streaming: Collection[int] = ()
    ) -> None:
        self._streaming = streaming
        self._of_dataset: dict[int, list[Renames]] = defaultdict(list)
        for dataset, of_run in sorted(renames, key=lambda pair: pair[1].at):
            self._of_dataset[dataset].append(of_run)
        self._moments = sorted(
            of_run.at for of_dataset in self._of_dataset.values() for of_run in of_dataset
        )

    def __bool__(self) -> bool:
        return bool(self._moments)

    def named_at(self, sink: JobEdge) -> int:
        """Return the moment whose names of columns a write uses."""
        return sink.at if sink.run in self._streaming else sink.since

    def count_by(self, moment: int) -> int:
        """Return the number of renames until a moment."""
        return bisect_right(self._moments, moment)

    def name(self, dataset: int, column: str, moment: int) -> str:
        """Return the name of what was this column, or this field of one, at a moment."""
        for of_run in self._of_dataset.get(dataset, ()):
            if of_run.at > moment:
                column = _renamed(column, of_run.names)
        return column


def _renamed(column: str, names: dict[str, str]) -> str:
    """Return the new name of a column, or of a field of it.

    >>> _renamed("item.sku", {"item": "article"}), _renamed("item.sku", {"sku": "id"})
    ('article.sku', 'item.sku')
    """
    parts = column.split(".")
    for end in range(len(parts), 0, -1):
        above = ".".join(parts[:end])
        if above in names:
            return ".".join([names[above], *parts[end:]])
    return column


def renamed_columns_of(
    connection: Connection,
    dataset_ids: Iterable[int],
    until: int | None = None,
    run_ids: Iterable[int] = (),
) -> RenamedColumns:
    """Return the renamed columns of canonical datasets, all or until a moment.

    `run_ids` are the runs whose writes are to be named.
    """
    ids = list(dataset_ids)
    rows = connection.execute(_renames(), {"ids": ids}) if ids else ()
    renames = [
        (row.canonical_id, Renames(row.at, names_in(expand(row.columns))))
        for row in rows
        if until is None or row.at <= until
    ]
    if not renames:
        return RenamedColumns(())
    streaming = connection.scalars(_streaming(), {"runs": list(run_ids)})
    return RenamedColumns(renames, frozenset(streaming))


def names_in(columns: bytes) -> dict[str, str]:
    """Return the new name of each column that a set of renamed columns names."""
    return {edge.source_column: edge.sink_column for edge in edges_in(columns)}


@cache
def _streaming() -> Select[Any]:
    return select(runs.c.id).where(among_given(runs.c.id, "runs"), runs.c.streaming == 1)


@cache
def _renames() -> Select[Any]:
    joined = edge_uses.join(datasets, datasets.c.id == edge_uses.c.sink_id)
    joined = joined.join(edge_columns, edge_columns.c.set_hash == edge_uses.c.set_hash)
    return (
        select(datasets.c.canonical_id, edge_uses.c.at, edge_columns.c.columns)
        .select_from(joined)
        .where(among_given(datasets.c.canonical_id, "ids"), edge_uses.c.rule == RENAMED_COLUMNS)
    )
