"""What is read of a table beside its rows.

An Iceberg table's metadata (`t.snapshots`) and changes (`t.changes`), Delta's change feed.

To read that is to read the table. The columns are not the table's.
"""

from collections.abc import Collection, Iterable, Sequence

from strandline.core.changes.usable_facets import UsableFacets
from strandline.core.openlineage.facets import Catalog, Schema, Symlinks
from strandline.core.openlineage.names import (
    is_whole_name,
    may_be_metadata_table,
    metadata_table_in,
)

CHANGES, FEED = "changes", ""  # a feed has the table's own name
_CHANGE_COLUMNS = {"_change_type", "_change_ordinal", "_commit_snapshot_id"}
_FEED_COLUMNS = {"_change_type", "_commit_version", "_commit_timestamp"}
_OF_THE_PART = frozenset(("schema", "symlinks", "symlink"))


def part_read(name: str, facets: UsableFacets) -> str | None:
    """Which part of a table an input with these facets is: `snapshots`, CHANGES and so on.

    None for its rows.
    """
    schema: Schema | None = facets.value("schema")
    columns = {one.name for one in (schema and schema.fields) or ()}
    catalog: Catalog | None = facets.value("catalog")
    of_iceberg = catalog if catalog is not None and catalog.is_iceberg else None
    part = _part_among((name, *_called(facets)), of_iceberg.name, columns) if of_iceberg else None
    return FEED if part is None and columns >= _FEED_COLUMNS else part


def without(name: str, part: str) -> str:
    """The name of the table that has a part of this name.

    >>> without("/lake/bank/orders/changes", "changes"), without("bank.orders.snapshots", "snapshots")
    ('/lake/bank/orders', 'bank.orders')
    """
    table = name[: -len(part) - 1]
    return table if part and table and name.endswith(tuple(mark + part for mark in "/.#")) else name


def is_of_the_table(key: str, part: str) -> bool:
    """Whether a facet of a part that was read is the table's as well."""
    return key != "schema" if part == FEED else key not in _OF_THE_PART


def _part_among(names: Sequence[str], catalog: str, columns: Collection[str]) -> str | None:
    """The part by one of a dataset's names, of which the first is its own."""
    for one in names:
        part = _part_in(one, catalog, changes=_CHANGE_COLUMNS.issubset(columns))
        if part == CHANGES or (part and (one == names[0] or not names[0].endswith(f"/{part}"))):
            return part  # else it is the folder of a table that is called so
    return None


def _part_in(name: str, catalog: str, *, changes: bool) -> str:
    if (
        changes
        and "." in without(name, CHANGES)
        and name.endswith(f".{CHANGES}")
        and not is_whole_name(name, catalog)
    ):
        return CHANGES
    return metadata_table_in(name) if may_be_metadata_table(name, catalog) else ""


def _called(facets: UsableFacets) -> Iterable[str]:
    symlinks: Symlinks | None = facets.value("symlinks")
    return [one.name for one in symlinks.identifiers if one.name] if symlinks else []
