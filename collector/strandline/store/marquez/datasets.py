"""Rows of datasets as the Marquez-compatible API lists them.

Each under its canonical name, without deleted ones.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection, func, select

from strandline.core.openlineage.names import id_of
from strandline.errors import NotFoundError
from strandline.store.catalog.lists import never_made
from strandline.store.lineage.lookup import Node, dataset_of
from strandline.store.marquez.annotations import dataset_is_deleted
from strandline.store.schema.dataset_tables import datasets
from strandline.store.sql.id_lists import among


class RequestedDataset(NamedTuple):
    """A dataset's row, and the names by which it was asked for."""

    row: Any
    namespace: str
    name: str


def datasets_page(
    connection: Connection, namespace: str, limit: int, offset: int
) -> tuple[Sequence[Any], int]:
    """The datasets of a namespace by name, and how many there are."""
    of_namespace = (
        datasets.c.namespace_id == id_of("namespace", namespace),
        datasets.c.id == datasets.c.canonical_id,
        ~dataset_is_deleted(),
    )
    total = connection.scalar(select(func.count()).select_from(datasets).where(*of_namespace)) or 0
    page = (
        select(datasets).where(*of_namespace).order_by(datasets.c.name).limit(limit).offset(offset)
    )
    rows = connection.execute(page).all()
    unmade = never_made(connection, [row.id for row in rows])
    return [row for row in rows if row.id not in unmade], total


def dataset_asked(connection: Connection, namespace: str, name: str) -> RequestedDataset:
    """A dataset by any of its names; a NotFoundError for one that is unknown or deleted."""
    dataset_id = dataset_of(connection, namespace, name)
    row = rows_of(connection, [dataset_id.id]).get(dataset_id.id)
    if row is None:
        raise NotFoundError(f"deleted dataset: {name!r} in namespace {namespace!r}")
    return RequestedDataset(row, namespace, name)


def rows_of(connection: Connection, ids: Iterable[int]) -> dict[int, Any]:
    """The rows of these canonical datasets that are not deleted."""
    query = select(datasets).where(among(datasets.c.id, ids), ~dataset_is_deleted())
    return {row.id: row for row in connection.execute(query)}


def node_of_row(row: Any) -> Node:
    """The node of a dataset's row."""
    return Node("dataset", row.id, row.namespace, row.name)
