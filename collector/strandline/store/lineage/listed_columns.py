"""The columns that the newest schemas of datasets list, for names that differ from them in case.

Engines differ in whether case matters. A name that no schema lists means the one listed column that
differs from it only in case; where several do, it means none of them.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache, partial
from typing import Any

import msgspec
from sqlalchemy import Connection, Select, select

from strandline.core.openlineage.facets import DATASET, Schema
from strandline.store.schema.dataset_tables import datasets
from strandline.store.sql.compression import expander
from strandline.store.sql.facet_rows import facet_rows, newest_rows, one_of
from strandline.store.sql.id_lists import among_given


class ListedColumns:
    """The listed columns of some canonical datasets, those inside a struct with their path."""

    def __init__(self, columns: Mapping[int, Collection[str]]) -> None:
        self._columns = {dataset: frozenset(listed) for dataset, listed in columns.items()}
        self._alike: dict[int, dict[str, set[str]]] = {}

    def spell(self, dataset: int, column: str) -> str:
        """Return a column, or a field of it, as the schema of its dataset spells it.

        >>> listed = ListedColumns({1: ["id", "item", "x", "X"], 2: []})
        >>> listed.spell(1, "ID"), listed.spell(1, "Item.sku"), listed.spell(2, "ID")
        ('id', 'item.sku', 'ID')
        >>> listed.spell(1, "X.y"), ListedColumns({1: ["aB", "Ab"]}).spell(1, "ab")
        ('X.y', 'ab')
        """
        listed = self._columns.get(dataset)
        if not listed or column in listed:
            return column
        alike = self._alike.get(dataset)
        if alike is None:
            alike = self._alike[dataset] = defaultdict(set)
            for name in listed:
                alike[name.lower()].add(name)
        parts = column.split(".")
        for end in range(len(parts), 0, -1):
            above = ".".join(parts[:end])
            if above in listed:
                return column
            if above.lower() in alike:
                fits = alike[above.lower()]
                return ".".join([*fits, *parts[end:]]) if len(fits) == 1 else column
        return column


def listed_columns_of(
    connection: Connection, dataset_ids: Iterable[int], until: int | None = None
) -> ListedColumns:
    """Return the columns that the newest schema under any name of each dataset lists.

    A dataset has none if its newest schema was stated after the moment `until`: its columns of
    then may be others of these names.
    """
    ids = list(dataset_ids)
    named = connection.execute(_named(), {"ids": ids}) if ids else ()
    canonical = {row.id: row.canonical_id for row in named}
    if not canonical:
        return ListedColumns({})
    rows = newest_rows(connection.execute(_schemas(), {"ids": list(canonical)}))
    newest = {canonical[row.entity_id]: row for row in rows}
    expanded, decoder = expander(), msgspec.json.Decoder(Schema)
    return ListedColumns(
        {
            dataset: set(column_paths(decoder.decode(expanded(row.content)).fields or ()))
            for dataset, row in newest.items()
            if not row.deleted and row.content is not None and (until is None or row.at <= until)
        }
    )


@cache
def _named() -> Select[Any]:
    return select(datasets.c.id, datasets.c.canonical_id).where(
        among_given(datasets.c.canonical_id, "ids")
    )


@cache
def _schemas() -> Select[Any]:
    return select(facet_rows(partial(among_given, name="ids"), (DATASET,), one_of(["schema"])))


def column_paths(fields: Iterable[Any], above: str = "") -> Iterator[str]:
    """Yield the fields of a schema, each with the columns that it is inside of."""
    for field in fields:
        yield above + field.name
        if field.fields:
            yield from column_paths(field.fields, f"{above}{field.name}.")
