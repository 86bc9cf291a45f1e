"""Datasets: lists, details with the columns that each column comes from, hiding."""

from typing import Annotated, Any

from fastapi import Query as InQuery
from sqlalchemy import Connection
from typing_extensions import TypedDict

from strandline.api.http.route import refused
from strandline.api.http.session import AdminSession, ReadSession
from strandline.api.marquez.models import MarquezDataset
from strandline.api.marquez.notes import write_notes
from strandline.api.marquez.parameters import (
    JSON,
    D,
    DatasetName,
    N,
    NamespaceName,
    PageQuery,
    marquez_router,
)
from strandline.api.marquez.shapes.columns import column_inputs
from strandline.api.marquez.shapes.datasets import called, dataset_answers
from strandline.store.lineage.lookup import dataset_of
from strandline.store.marquez.annotations import Note
from strandline.store.marquez.datasets import RequestedDataset, dataset_asked, datasets_page
from strandline.store.marquez.names import namespace_called
from strandline.store.marquez.versions import versions_page
from strandline.store.schema.annotation_tables import DELETED

router = marquez_router()


class Datasets(TypedDict):
    """A page of datasets."""

    datasets: list[MarquezDataset]
    totalCount: int


@router.get(f"{N}/datasets", response_model=Datasets, responses=refused(404))
def list_datasets(
    namespace: NamespaceName, query: Annotated[PageQuery, InQuery()], session: ReadSession
) -> JSON:
    """Return the datasets of a namespace by name."""
    with session.connected() as connection:
        _, namespace = namespace_called(connection, namespace)
        rows, total = datasets_page(connection, namespace, *query.page)
        answers = dataset_answers(connection, rows, session.micros)
        inputs = column_inputs(connection, rows, session.micros)
        datasets = [answers[row.id] | {"columnLineage": inputs.get(row.id)} for row in rows]
        return {"datasets": datasets, "totalCount": total}


@router.get(D, response_model=MarquezDataset, responses=refused(404))
def get_dataset(namespace: NamespaceName, dataset: DatasetName, session: ReadSession) -> JSON:
    """Return a dataset, under the name by which it is asked for."""
    with session.connected() as connection:
        requested = dataset_asked(connection, namespace, dataset)
        return dataset_answer(connection, requested, session.micros)


def dataset_answer(connection: Connection, requested: RequestedDataset, now: int) -> dict[str, Any]:
    """Return a dataset with its newest version and what its columns come from."""
    answer = dataset_answers(connection, [requested.row], now)[requested.row.id]
    newest = versions_page(connection, requested.row, now, 1, 0)[0][0]
    inputs = column_inputs(connection, [requested.row], now).get(requested.row.id)
    more = {"currentVersion": newest.id, "columnLineage": inputs}
    return called(answer | more, requested.namespace, requested.name)


@router.delete(D, response_model=MarquezDataset, responses=refused(404))
def delete_dataset(namespace: NamespaceName, dataset: DatasetName, session: AdminSession) -> JSON:
    """Hide a dataset in this API; its events stay."""
    answer = get_dataset(namespace, dataset, session)
    with session.connected() as connection:
        dataset_id = dataset_of(connection, namespace, dataset)
    write_notes(session, [Note(dataset_id.id, str(dataset_id), DELETED)])
    return answer
