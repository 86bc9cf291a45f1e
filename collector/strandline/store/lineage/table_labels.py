"""What Spark calls tables: catalog.database.table, where that is known."""

from collections.abc import Iterable

from sqlalchemy import Connection, select

from strandline.core.openlineage.names import TableName, id_of
from strandline.store.schema.tables import datasets
from strandline.store.sql.id_lists import among

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


def newest_datasets(connection: Connection, namespace: str | None, most: int) -> tuple[list[int], bool]:
    """The ids of the datasets that were heard of last, and whether there are more of them."""
    query = select(datasets.c.id).where(datasets.c.id == datasets.c.canonical_id)
    if namespace is not None:
        query = query.where(datasets.c.namespace == namespace)
    found = list(connection.scalars(query.order_by(datasets.c.newest_at.desc(), datasets.c.id).limit(most + 1)))
    return found[:most], len(found) > most
