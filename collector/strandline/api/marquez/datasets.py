"""Datasets: lists, details with the columns that each column comes from, creating and deleting."""

from typing import Any, Literal

import msgspec
import orjson
from sqlalchemy import Connection

from strandline.api.endpoints.version_requests import body_as
from strandline.api.http.operations import Ask, Operation
from strandline.api.http.paging import connected
from strandline.api.marquez.parameters import DATASET, NAMESPACE, OBJECT, PAGE, D, N, now_of, page_of
from strandline.api.marquez.shapes.columns import column_inputs
from strandline.api.marquez.shapes.datasets import called, dataset_answers
from strandline.api.marquez.writing import event, facet, named, note, registration, write
from strandline.core.redaction.text import redact_text
from strandline.store.catalog.runs_called import run_called, runs_by_id
from strandline.store.lineage.lookup import dataset_of
from strandline.store.marquez.annotations import DELETED, DESCRIPTION, SOURCE, TAG, Note, named_annotations
from strandline.store.marquez.datasets import RequestedDataset, dataset_asked, datasets_page
from strandline.store.marquez.names import namespace_called
from strandline.store.marquez.versions import versions_page


class NewField(msgspec.Struct):
    """A column in the body of PUT."""

    name: str
    type: str | None = None
    description: str | None = None
    tags: list[str] | None = None


class NewDataset(msgspec.Struct, rename="camel"):
    """The body of PUT."""

    type: Literal["DB_TABLE", "STREAM"]
    physical_name: str
    source_name: str
    fields: list[NewField] | None = None
    tags: list[str] | None = None
    description: str | None = None
    run_id: str | None = None
    schema_location: str | None = None


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
    newest = versions_page(connection, asked.row, 1, 0)[0][0]
    more = {"currentVersion": newest.id, "columnLineage": column_inputs(connection, asked.row, now)}
    return called(answer | more, asked.namespace, asked.name)


def put_dataset(ask: Ask) -> dict[str, Any]:
    """State what a dataset is, as an event; what people say of it is an annotation. A deleted one is there again."""
    new, name = body_as(ask, NewDataset), (ask.given["namespace"], ask.given["dataset"])
    with connected(ask) as connection:
        sources = named_annotations(connection, SOURCE, new.source_name)
    url = orjson.loads(sources[0][1]).get("connectionUrl") if sources else None
    described = named(*name, _facets(new, url or redact_text(new.source_name)))
    if new.run_id is None:
        write(ask, event("DatasetEvent", ask.now, dataset=described))
    else:
        with connected(ask) as connection:
            id_ = run_called(connection, new.run_id)
            run = runs_by_id(connection, [id_])[id_]
        job = named(run.job_namespace, run.job_name)
        of_run = {"runId": run.run_id, "facets": {}}
        write(ask, event("RunEvent", ask.now, eventType="OTHER", run=of_run, job=job, inputs=[], outputs=[described]))
    with connected(ask) as connection:
        found = dataset_of(connection, *name)
    entity = (found.id, str(found))
    note(ask, _notes(new, entity), [Note(*entity, DELETED)])
    return get_dataset(ask)


def _facets(new: NewDataset, url: str) -> dict[str, Any]:
    fields = [{"name": one.name, "type": one.type, "description": one.description} for one in new.fields or ()]
    schema = [{key: value for key, value in one.items() if value is not None} for one in fields]
    more = {} if new.schema_location is None else {"schemaLocation": redact_text(new.schema_location)}
    source = facet("DatasourceDatasetFacet", "1-0-1", name=new.source_name, uri=url)
    kind = "TABLE" if new.type == "DB_TABLE" else "STREAM"
    return {
        "dataSource": source,
        "datasetType": facet("DatasetTypeDatasetFacet", "1-0-0", datasetType=kind),
        "strandline_registration": registration("Dataset", physicalName=new.physical_name, **more),
    } | ({"schema": facet("SchemaDatasetFacet", "1-1-1", fields=schema)} if new.fields is not None else {})


def _notes(new: NewDataset, entity: tuple[int, str]) -> list[Note]:
    notes = [Note(*entity, TAG, name=tag) for tag in new.tags or ()]
    notes += [Note(*entity, TAG, one.name, tag) for one in new.fields or () for tag in one.tags or ()]
    return notes if new.description is None else [*notes, Note(*entity, DESCRIPTION, value=new.description)]


def delete_dataset(ask: Ask) -> dict[str, Any]:
    """Hide a dataset; what is stored of it stays."""
    answer = get_dataset(ask)
    with connected(ask) as connection:
        found = dataset_of(connection, ask.given["namespace"], ask.given["dataset"])
    note(ask, [Note(found.id, str(found), DELETED)])
    return answer


_FIELD = {
    "type": "object",
    "required": ["name"],
    "properties": {
        "name": {"type": "string"},
        "type": {"type": ["string", "null"]},
        "description": {"type": ["string", "null"]},
        "tags": {"type": ["array", "null"], "items": {"type": "string"}},
    },
}
_BODY = {
    "type": "object",
    "required": ["type", "physicalName", "sourceName"],
    "properties": {
        "type": {"type": "string", "enum": ["DB_TABLE", "STREAM"]},
        "physicalName": {"type": "string"},
        "sourceName": {"type": "string"},
        "fields": {"type": ["array", "null"], "items": _FIELD},
        "tags": {"type": ["array", "null"], "items": {"type": "string"}},
        "description": {"type": ["string", "null"]},
        "runId": {"type": ["string", "null"]},
        "schemaLocation": {"type": ["string", "null"]},
    },
}
_NAMED = (NAMESPACE, DATASET)
OPERATIONS = (
    Operation(
        "GET", f"{N}/datasets", "The datasets of a namespace", list_datasets, (NAMESPACE, *PAGE),
        answer=OBJECT, refusals=(404,), scope="read",
    ),
    Operation("GET", D, "A dataset", get_dataset, _NAMED, answer=OBJECT, refusals=(404,), scope="read"),
    Operation(
        "PUT", D, "State what a dataset is", put_dataset, _NAMED,
        body=_BODY, answer=OBJECT, refusals=(404, 422), scope="ingest",
    ),
    Operation("DELETE", D, "Hide a dataset", delete_dataset, _NAMED, answer=OBJECT, refusals=(404,), scope="admin"),
)  # fmt: skip
