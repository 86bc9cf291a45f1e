"""The format and the location of tables, as their events report them."""

from collections.abc import Iterable

from sqlalchemy import Connection, select

from strandline.core.openlineage.names import is_object_store
from strandline.core.versions.facts import Table
from strandline.core.versions.rollback_statements import StoredTable
from strandline.store.lineage.lookup import ids_of_names, labels_of
from strandline.store.schema.dataset_tables import datasets
from strandline.store.schema.snapshot_tables import snapshots


def stored_tables(connection: Connection, tables: Iterable[Table]) -> dict[Table, StoredTable]:
    """Return how each table is reached."""
    return {
        table: StoredTable(called, _format(connection, table), _location(connection, table))
        for table, called in labels_of(connection, tables).items()
    }


def _format(connection: Connection, table: Table) -> str:
    stated = select(snapshots.c.format).where(
        snapshots.c.dataset_id.in_(ids_of_names(table)), snapshots.c.format != ""
    )
    return connection.scalar(stated.order_by(snapshots.c.at.desc()).limit(1)) or ""


def _location(connection: Connection, table: Table) -> str:
    """Return the path of a table, "" if it is known as a table of a catalog alone."""
    named = select(datasets.c.namespace, datasets.c.name).where(
        datasets.c.id.in_(ids_of_names(table))
    )
    rows = connection.execute(named.order_by(datasets.c.newest_at.desc()))
    return next(filter(None, (_path(row.namespace, row.name) for row in rows)), "")


def _path(namespace: str, name: str) -> str:
    """Return the address of a dataset whose name is a path, "" of any other.

    >>> _path("s3://bucket", "lake/t"), _path("file", "/lake/t"), _path("hive://lake", "db.t")
    ('s3://bucket/lake/t', '/lake/t', '')
    """
    if namespace == "file":
        return name
    is_path = is_object_store(namespace) or ("://" in namespace and name.startswith("/"))
    return f"{namespace.rstrip('/')}/{name.lstrip('/')}" if is_path else ""
