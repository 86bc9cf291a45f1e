"""Options of catalogs, written by whoever configures one.

`table-lineage` and `data-lineage` switch the two kinds off.

What is off is not shown in the proposals' tables; it is stored all the same, so switching it on
again shows it.
"""

from sqlalchemy import Connection, delete, insert, select

from strandline.errors import NotFoundError, RefusedError
from strandline.store.schema.snapshot_tables import catalog_options

SWITCHES = ("table-lineage", "data-lineage")
_SAID = ("true", "false")


def set_option(connection: Connection, catalog: str, key: str, value: str) -> None:
    """Write an option of a catalog, in place of what it was.

    Raises RefusedError for a switch that is neither on nor off.
    """
    if not catalog or not key:
        raise RefusedError("an option needs a catalog and a key", "option")
    if key in SWITCHES and value.lower() not in _SAID:
        raise RefusedError(f"{key}: {value!r} is not one of {', '.join(_SAID)}", "option")
    _drop(connection, catalog, key)
    row = {"key": key, "value": value, "namespace": "", "catalog": catalog, "consistency_group": ""}
    connection.execute(insert(catalog_options).values(row))


def drop_option(connection: Connection, catalog: str, key: str) -> None:
    """Let an option be as it is by default. Raises NotFoundError where it was never written."""
    if not _drop(connection, catalog, key):
        raise NotFoundError(f"catalog {catalog} has no option {key}")


def options_of(connection: Connection) -> list[tuple[str, str, str]]:
    """All options: catalog, key, value."""
    stored = catalog_options.c
    rows = connection.execute(
        select(stored.catalog, stored.key, stored.value).order_by(stored.catalog, stored.key)
    )
    return [(row.catalog, row.key, row.value) for row in rows]


def _drop(connection: Connection, catalog: str, key: str) -> int:
    same = (
        catalog_options.c.namespace == "",
        catalog_options.c.catalog == catalog,
        catalog_options.c.key == key,
    )
    return connection.execute(delete(catalog_options).where(*same)).rowcount
