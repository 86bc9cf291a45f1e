"""The format and the location of tables, as their events report them."""

from collections.abc import Iterable

from sqlalchemy import Connection, select

from strandline.core.versions.facts import Table
from strandline.core.versions.rollback_statements import StoredTable
from strandline.store.lineage.lookup import ids_of_names
from strandline.store.lineage.table_labels import labels_of
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
    """Return the path of a table; a table of a catalog alone has none here."""
    named = select(datasets.c.namespace, datasets.c.name).where(
        datasets.c.id.in_(ids_of_names(table)), datasets.c.name.startswith("/")
    )
    row = connection.execute(named.order_by(datasets.c.newest_at.desc()).limit(1)).first()
    if row is None or row.namespace == "file":
        return row.name if row is not None else ""
    return f"{row.namespace.rstrip('/')}{row.name}" if "://" in row.namespace else ""
