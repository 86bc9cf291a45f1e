"""The lookup of a table or job of the model by name.

By namespace and name under any symlink, or by catalog, database, table.
"""

from collections.abc import Iterable
from functools import cache
from typing import Any

from sqlalchemy import Connection, Select, select

from strandline.core.access.granted import Access
from strandline.core.openlineage.names import TableName, id_of
from strandline.core.versions.facts import Job, Table
from strandline.core.versions.model import Model
from strandline.errors import NotFoundError
from strandline.store.lineage.lookup import dataset_at, dataset_of, labels_of
from strandline.store.schema.dataset_tables import datasets
from strandline.store.sql.id_lists import among_given
from strandline.store.sql.narrowed import access_of
from strandline.store.sql.shared_settings import agreed_naming
from strandline.store.versions.unnamed_tables import unnamed


def table_of(connection: Connection, model: Model, namespace: str, name: str) -> Table:
    """The table of this name or symlink.

    A NotFoundError with candidates when neither model nor store know it.
    """
    key = (namespace, name)
    if (key in model.group_of or key in model.reused) and access_of(connection).allows(namespace):
        return key
    node = dataset_of(connection, namespace, name)
    return known_name(connection, model, (node.namespace, node.name))


def known_name(connection: Connection, model: Model, name: Table) -> Table:
    """Return the name under which the model knows a dataset; the given one if it does not."""
    return known_names(connection, model, [name])[name]


def known_names(connection: Connection, model: Model, names: Iterable[Table]) -> dict[Table, Table]:
    """Map each name of a dataset to the one under which the model knows the dataset, or to itself.

    Symlinks may have come after its first barrier.
    """
    known = {name: name for name in names}
    others = {id_of("dataset", *name): name for name in known if name not in model.group_of}
    if not others or not model.group_of:
        return known
    for row in connection.execute(_all_names(), {"ids": list(others)}):
        if (row.namespace, row.name) in model.group_of:
            known[others[row.id]] = (row.namespace, row.name)
    return known


@cache
def _all_names() -> Select[Any]:
    """Select all names of the datasets that have names of these ids."""
    one = datasets.alias("one")
    return (
        select(one.c.id, datasets.c.namespace, datasets.c.name)
        .join(datasets, datasets.c.canonical_id == one.c.canonical_id)
        .where(among_given(one.c.id, "ids"))
    )


def table_at(connection: Connection, model: Model, place: TableName) -> Table:
    """Return the table at a place, or raise a NotFoundError with candidates."""
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


def job_called(connection: Connection, model: Model, job: Job, access: Access) -> Job:
    """The tracked or registered job that `access` sees, or a NotFoundError with candidates.

    A job that is joined with others is tracked under the pattern of their names.
    """
    joined = agreed_naming(connection).job_name_of(*job)
    jobs = [
        one
        for one in (*model.places, *model.registered)
        if one[1] in (job[1], joined[1]) and access.allows(one[0])
    ]
    for known in (job, joined):
        if known in jobs:
            return known
    near = sorted(f"job:{job[0]}:{job[1]}" for job in jobs)
    raise NotFoundError(f"no tracked job is called {job[1]!r} in namespace {job[0]!r}", near)


def call(connection: Connection, model: Model, tables: Iterable[Table]) -> None:
    """Let the model's words call tables as people do.

    Catalog.database.table, where that is known.
    """
    model.called.update(labels_of(connection, tables))
