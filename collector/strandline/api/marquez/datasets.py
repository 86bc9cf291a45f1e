"""Datasets: lists, details with the columns that each column comes from, hiding."""

from typing import Any

from sqlalchemy import Connection

from strandline.api.http.operations import Ask, Operation
from strandline.api.http.paging import connected
from strandline.api.marquez.notes import write_notes
from strandline.api.marquez.parameters import (
    DATASET,
    NAMESPACE,
    OBJECT,
    PAGE,
    D,
    N,
    now_of,
    page_of,
)
from strandline.api.marquez.shapes.columns import column_inputs
from strandline.api.marquez.shapes.datasets import called, dataset_answers
from strandline.store.lineage.lookup import dataset_of
from strandline.store.marquez.annotations import Note
from strandline.store.marquez.datasets import RequestedDataset, dataset_asked, datasets_page
from strandline.store.marquez.names import namespace_called
from strandline.store.marquez.versions import versions_page
from strandline.store.schema.annotation_tables import DELETED


def list_datasets(ask: Ask) -> dict[str, Any]:
    """A page of a namespace's datasets by name."""
    with connected(ask) as connection:
        _, namespace = namespace_called(connection, ask.given["namespace"])
        rows, total = datasets_page(connection, namespace, *page_of(ask))
        answers = dataset_answers(connection, rows, now_of(ask))
        return {"datasets": [answers[row.id] for row in rows], "totalCount": total}


def get_dataset(ask: Ask) -> dict[str, Any]:
    """One dataset, under the name by which it is asked for."""
    with connected(ask) as connection:
        asked = dataset_asked(connection, ask.given["namespace"], ask.given["dataset"])
        return dataset_answer(connection, asked, now_of(ask))


def dataset_answer(connection: Connection, asked: RequestedDataset, now: int) -> dict[str, Any]:
    """A dataset with its newest version and what its columns come from."""
    answer = dataset_answers(connection, [asked.row], now)[asked.row.id]
    newest = versions_page(connection, asked.row, now, 1, 0)[0][0]
    more = {"currentVersion": newest.id, "columnLineage": column_inputs(connection, asked.row, now)}
    return called(answer | more, asked.namespace, asked.name)


def delete_dataset(ask: Ask) -> dict[str, Any]:
    """Hide a dataset in this API; what is stored of it stays."""
    answer = get_dataset(ask)
    with connected(ask) as connection:
        found = dataset_of(connection, ask.given["namespace"], ask.given["dataset"])
    write_notes(ask, [Note(found.id, str(found), DELETED)])
    return answer


_NAMED = (NAMESPACE, DATASET)
OPERATIONS = (
    Operation(
        "GET", f"{N}/datasets", "The datasets of a namespace", list_datasets, (NAMESPACE, *PAGE),
        answer=OBJECT, refusals=(404,), scope="read",
    ),
    Operation("GET", D, "A dataset", get_dataset, _NAMED, answer=OBJECT, refusals=(404,), scope="read"),
    Operation("DELETE", D, "Hide a dataset", delete_dataset, _NAMED, answer=OBJECT, refusals=(404,), scope="admin"),
)  # fmt: skip
