"""The lookup of a table or job of the model by name.

By namespace and name under any symlink, or by catalog, database, table.
"""

from collections.abc import Iterable

from sqlalchemy import Connection, select

from strandline.core.access.granted import Access
from strandline.core.openlineage.names import TableName, id_of
from strandline.core.versions.facts import Job, Table
from strandline.core.versions.model import Model
from strandline.errors import NotFoundError
from strandline.store.lineage.lookup import dataset_at, dataset_of
from strandline.store.lineage.table_labels import labels_of
from strandline.store.schema.dataset_tables import datasets
from strandline.store.sql.narrowed import access_of
from strandline.store.versions.unnamed_tables import unnamed


def table_of(connection: Connection, model: Model, namespace: str, name: str) -> Table:
    """The table of this name or symlink.

    A NotFoundError with candidates when neither model nor store know it.
    """
    asked = (namespace, name)
    if (asked in model.group_of or asked in model.reused) and access_of(connection).allows(
        namespace
    ):
        return asked
    node = dataset_of(connection, namespace, name)
    return known_name(connection, model, (node.namespace, node.name))


def known_name(connection: Connection, model: Model, canonical: Table) -> Table:
    """The name under which the model knows a dataset.

    Symlinks may have come after its first barrier.
    """
    if canonical in model.group_of:
        return canonical
    ids = (
        select(datasets.c.canonical_id)
        .where(datasets.c.id == id_of("dataset", *canonical))
        .scalar_subquery()
    )
    for row in connection.execute(
        select(datasets.c.namespace, datasets.c.name).where(datasets.c.canonical_id == ids)
    ):
        if (row.namespace, row.name) in model.group_of:
            return (row.namespace, row.name)
    return canonical


def table_at(connection: Connection, model: Model, place: TableName) -> Table:
    """The one table at a place, or a NotFoundError with candidates."""
    node = dataset_at(connection, place)
    return known_name(connection, model, (node.namespace, node.name))


def table_to_register(connection: Connection, model: Model, place: TableName) -> Table:
    """The table at a place, or the place itself where no event has named a table there.

    Several are refused.
    """
    try:
        return table_at(connection, model, place)
    except NotFoundError as error:
        if str(error).startswith("several"):
            raise
        return unnamed(place)


def job_called(model: Model, job: Job, access: Access) -> Job:
    """The tracked or registered job that `access` sees, or a NotFoundError with candidates."""
    jobs = [
        one
        for one in (*model.places, *model.registered)
        if one[1] == job[1] and access.allows(one[0])
    ]
    if job in jobs:
        return job
    near = sorted(f"job:{one[0]}:{one[1]}" for one in jobs)
    raise NotFoundError(f"no tracked job is called {job[1]!r} in namespace {job[0]!r}", near)


def call(connection: Connection, model: Model, tables: Iterable[Table]) -> None:
    """Let the model's words call tables as people do.

    Catalog.database.table, where that is known.
    """
    model.called.update(labels_of(connection, tables))
