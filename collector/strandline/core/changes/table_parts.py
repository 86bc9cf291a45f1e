"""Parts of an Iceberg table that are read under names of their own: its metadata (`t.snapshots`) and its changes (`t.changes`).

To read one is to read the table. Its columns are not the table's.
"""

from collections.abc import Iterable

from strandline.core.changes.usable_facets import UsableFacets
from strandline.core.openlineage.facets import Catalog, Schema, Symlinks
from strandline.core.openlineage.names import may_be_metadata_table, metadata_table_in

CHANGES = "changes"
_CHANGE_COLUMNS = {"_change_type", "_change_ordinal", "_commit_snapshot_id"}


def part_of(name: str, facets: UsableFacets) -> str:
    """Which part of a table a dataset with these facets is: `snapshots`, `changes` and so on; '' where it is none."""
    catalog: Catalog | None = facets.value("catalog")
    if catalog is None or not catalog.is_iceberg:
        return ""
    schema: Schema | None = facets.value("schema")
    columns = {one.name for one in (schema and schema.fields) or ()}
    if without(name, CHANGES) != name and columns >= _CHANGE_COLUMNS:
        return CHANGES
    for one in (name, *_called(facets)):
        part = metadata_table_in(one) if may_be_metadata_table(one, catalog.name) else ""
        if part and (
            one == name or not name.endswith(f"/{part}")
        ):  # else it is the folder of a table that is called so
            return part
    return ""


def without(name: str, part: str) -> str:
    """The name of the table that has a part of this name.

    >>> without("/lake/bank/orders/changes", "changes"), without("bank.orders.snapshots", "snapshots")
    ('/lake/bank/orders', 'bank.orders')
    """
    table = name[: -len(part) - 1]
    return table if part and table and name.endswith(tuple(mark + part for mark in "/.#")) else name


def _called(facets: UsableFacets) -> Iterable[str]:
    symlinks: Symlinks | None = facets.value("symlinks")
    return [one.name for one in symlinks.identifiers if one.name] if symlinks else []
