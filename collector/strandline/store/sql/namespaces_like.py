"""The condition for rows in the namespaces that a pattern names."""

from sqlalchemy import ColumnElement, Connection, Table, select

from strandline.core.wildcards import ANYTHING, is_like
from strandline.store.schema.run_tables import namespaces
from strandline.store.sql.id_lists import among


def in_namespaces(
    connection: Connection, table: Table, pattern: str | None
) -> list[ColumnElement[bool]]:
    """Return the condition for jobs or datasets in such namespaces.

    In a pattern `*` stands for anything; None stands for every namespace.
    """
    if pattern is None:
        return []
    if ANYTHING not in pattern:
        return [table.c.namespace == pattern]
    rows = connection.execute(select(namespaces.c.id, namespaces.c.name))
    return [among(table.c.namespace_id, [row.id for row in rows if is_like(row.name, pattern)])]
