"""The names of columns: as schemas spell them, and as they are since a column was renamed.

Engines differ in whether case matters. A name that no schema lists means the one listed column that
differs from it only in case; where several do, it means none of them.

A rename counts from its event on: an edge that was stated before it follows the column, and one
that was stated after it means another column of that name. A batch run knows the names of when it
began, even if it states them again at its end. A streaming run plans anew and knows those of its
last event.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache, partial
from typing import Any, NamedTuple

import msgspec
from sqlalchemy import Connection, Select, case, func, select

from strandline.core.changes.edges import RENAMED_COLUMNS, edges_in
from strandline.core.openlineage.facets import DATASET, Schema
from strandline.store.lineage.lookup import names_of_datasets
from strandline.store.lineage.recent_runs import JobEdge
from strandline.store.schema.dataset_tables import datasets
from strandline.store.schema.relation_tables import edge_columns, edge_uses
from strandline.store.schema.run_tables import runs
from strandline.store.sql.compression import expand, expander
from strandline.store.sql.facet_rows import facet_rows, newest_rows, one_of
from strandline.store.sql.id_lists import among_given


def spellings(listed: Collection[str], columns: Collection[str]) -> dict[str, str]:
    """Map columns, or fields of them, that a schema lists in another case to its spelling.

    >>> spellings(["id", "item", "x", "X"], ["ID", "Item.sku", "X.y", "z"])
    {'ID': 'id', 'Item.sku': 'item.sku'}
    >>> spellings(["aB", "Ab"], ["ab", "aB"])
    {}
    """
    exact = frozenset(listed)
    others = [column for column in columns if column not in exact]
    if not others:
        return {}
    alike: dict[str, set[str]] = defaultdict(set)
    for name in exact:
        alike[name.lower()].add(name)
    spelled = ((column, _spelled(column, exact, alike)) for column in others)
    return {column: name for column, name in spelled if name != column}


def _spelled(column: str, listed: Collection[str], alike: Mapping[str, Collection[str]]) -> str:
    parts = column.split(".")
    for end in range(len(parts), 0, -1):
        above = ".".join(parts[:end])
        if above in listed:
            return column
        if above.lower() in alike:
            fits = alike[above.lower()]
            return ".".join([*fits, *parts[end:]]) if len(fits) == 1 else column
    return column


def spellings_of(
    connection: Connection, columns: Mapping[int, Collection[str]], until: int | None = None
) -> dict[tuple[int, str], str]:
    """Map columns of canonical datasets that schemas list in another case to their spelling.

    The newest schema under any name of a dataset counts, unless it was stated after the moment
    `until`: the columns of then may be others of these names.
    """
    canonical = names_of_datasets(connection, columns)
    if not canonical:
        return {}
    rows = newest_rows(connection.execute(_schemas(), {"ids": list(canonical)}))
    newest = {canonical[row.entity_id]: row for row in rows}
    expanded, decoder = expander(), msgspec.json.Decoder(Schema)
    spelled: dict[tuple[int, str], str] = {}
    for dataset, row in newest.items():
        if row.deleted or row.content is None or (until is not None and row.at > until):
            continue
        listed = set(column_paths(decoder.decode(expanded(row.content)).fields or ()))
        for column, name in spellings(listed, columns[dataset]).items():
            spelled[dataset, column] = name
    return spelled


@cache
def _schemas() -> Select[Any]:
    return select(facet_rows(partial(among_given, name="ids"), (DATASET,), one_of(["schema"])))


def column_paths(fields: Iterable[Any], above: str = "") -> Iterator[str]:
    """Yield the fields of a schema, each with the columns that it is inside of."""
    for field in fields:
        yield above + field.name
        if field.fields:
            yield from column_paths(field.fields, f"{above}{field.name}.")


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
