"""Spark's names of tables: catalog.database.table, where that is known."""

from collections.abc import Iterable

from sqlalchemy import Connection, func, select

from strandline.core.openlineage.names import TableName, id_of
from strandline.store.schema.dataset_tables import datasets
from strandline.store.sql.id_lists import among
from strandline.store.sql.namespaces_like import in_namespaces

Table = tuple[str, str]


def labels_of(connection: Connection, tables: Iterable[Table]) -> dict[Table, str]:
    """The name that Spark has for each of these tables; its own name where it has none."""
    wanted = {id_of("dataset", *table): table for table in tables}
    labels = {table: table[1] for table in wanted.values()}
    columns = (datasets.c.id, datasets.c.catalog, datasets.c.database_name, datasets.c.table_name)
    for row in connection.execute(select(*columns).where(among(datasets.c.id, wanted))):
        place = TableName(row.catalog, row.database_name, row.table_name)
        labels[wanted[row.id]] = place.called(*wanted[row.id])
    return labels


def newest_datasets(
    connection: Connection, namespace: str | None, most: int
) -> tuple[list[int], int]:
    """The ids of the datasets that were heard of last, and how many more there are."""
    of_namespace = in_namespaces(connection, datasets, namespace)
    query = select(datasets.c.id).where(datasets.c.id == datasets.c.canonical_id, *of_namespace)
    rows = list(
        connection.scalars(
            query.order_by(datasets.c.newest_at.desc(), datasets.c.id).limit(most + 1)
        )
    )
    if len(rows) <= most:
        return rows, 0
    counted = (
        connection.scalar(select(func.count()).select_from(query.order_by(None).subquery())) or 0
    )
    return rows[:most], counted - most
