"""The spelling of columns in the newest schemas, for names that differ from them in case.

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
    ids = list(columns)
    named = connection.execute(_named(), {"ids": ids}) if ids else ()
    canonical = {row.id: row.canonical_id for row in named}
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
