"""Tags of datasets, of their columns and of jobs; and what each tag means."""

from typing import Annotated

from fastapi import Query as InQuery
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from strandline.api.http.route import refused
from strandline.api.http.session import (
    IngestSession,
    ReadSession,
    Session,
    WholeIngestSession,
)
from strandline.api.marquez.datasets import get_dataset
from strandline.api.marquez.jobs import get_job
from strandline.api.marquez.models import MarquezDataset, MarquezJob
from strandline.api.marquez.notes import write_notes
from strandline.api.marquez.parameters import (
    JSON,
    MOST,
    D,
    DatasetName,
    FieldName,
    J,
    JobName,
    NamespaceName,
    Number,
    PageQuery,
    TagName,
    marquez_router,
)
from strandline.core.openlineage.names import id_of
from strandline.errors import NotFoundError
from strandline.store.lineage.lookup import dataset_of, job_of
from strandline.store.marquez import annotations
from strandline.store.marquez.annotations import Note, tag_meanings, tags_in_use

router = marquez_router()
OF_DATASET = D + "/tags/{tag:name}"
OF_FIELD = D + "/fields/{field:name}/tags/{tag:name}"
OF_JOB = J + "/tags/{tag:name}"


class TagsQuery(PageQuery):
    """A page of tags."""

    limit: Annotated[Number, Field(description="Maximum number of items")] = MOST


class NewTag(BaseModel):
    """A tag's description."""

    description: str | None = None


class Tag(TypedDict):
    """A tag, and what it means."""

    name: str
    description: str | None


class Tags(TypedDict):
    """A page of tags."""

    tags: list[Tag]


@router.get("/tags", response_model=Tags)
def list_tags(query: Annotated[TagsQuery, InQuery()], session: ReadSession) -> JSON:
    """All tags by name, with their descriptions."""
    with session.connected() as connection:
        meanings = tag_meanings(connection)
        names = sorted({*meanings, *tags_in_use(connection)})
    limit, offset = query.page
    page = names[offset:][:limit]
    return {"tags": [{"name": name, "description": meanings.get(name) or None} for name in page]}


@router.put("/tags/{tag:name}", response_model=Tag)
def put_tag(tag: TagName, new: NewTag, session: WholeIngestSession) -> JSON:
    """Describe a tag."""
    itself, meaning = annotations.TAG_ITSELF, new.description or ""
    note = Note(id_of("tag", tag), f"tag:{tag}", itself, name=tag, value=meaning)
    write_notes(session, [note])
    return {"name": tag, "description": new.description}


@router.post(OF_DATASET, response_model=MarquezDataset, responses=refused(404))
def tag_dataset(
    namespace: NamespaceName, dataset: DatasetName, tag: TagName, session: IngestSession
) -> JSON:
    """Tag a dataset."""
    write_notes(session, [_of_dataset(session, namespace, dataset, tag)])
    return get_dataset(namespace, dataset, session)


@router.delete(OF_DATASET, response_model=MarquezDataset, responses=refused(404))
def untag_dataset(
    namespace: NamespaceName, dataset: DatasetName, tag: TagName, session: IngestSession
) -> JSON:
    """Take a tag from a dataset."""
    write_notes(session, [], [_of_dataset(session, namespace, dataset, tag)])
    return get_dataset(namespace, dataset, session)


@router.post(OF_FIELD, response_model=MarquezDataset, responses=refused(404))
def tag_field(
    namespace: NamespaceName,
    dataset: DatasetName,
    field: FieldName,
    tag: TagName,
    session: IngestSession,
) -> JSON:
    """Tag a column that the dataset has."""
    fields = [field["name"] for field in get_dataset(namespace, dataset, session)["fields"]]
    if field not in fields:
        raise NotFoundError(f"unknown column of {dataset!r}: {field!r}", fields[:10])
    write_notes(session, [_of_dataset(session, namespace, dataset, tag, field)])
    return get_dataset(namespace, dataset, session)


@router.delete(OF_FIELD, response_model=MarquezDataset, responses=refused(404))
def untag_field(
    namespace: NamespaceName,
    dataset: DatasetName,
    field: FieldName,
    tag: TagName,
    session: IngestSession,
) -> JSON:
    """Take a tag from a column."""
    write_notes(session, [], [_of_dataset(session, namespace, dataset, tag, field)])
    return get_dataset(namespace, dataset, session)


@router.post(OF_JOB, response_model=MarquezJob, responses=refused(404))
def tag_job(namespace: NamespaceName, job: JobName, tag: TagName, session: IngestSession) -> JSON:
    """Tag a job."""
    write_notes(session, [_of_job(session, namespace, job, tag)])
    return get_job(namespace, job, session)


@router.delete(OF_JOB, response_model=MarquezJob, responses=refused(404))
def untag_job(namespace: NamespaceName, job: JobName, tag: TagName, session: IngestSession) -> JSON:
    """Take a tag from a job."""
    write_notes(session, [], [_of_job(session, namespace, job, tag)])
    return get_job(namespace, job, session)


def _of_dataset(session: Session, namespace: str, dataset: str, tag: str, field: str = "") -> Note:
    with session.connected() as connection:
        dataset_id = dataset_of(connection, namespace, dataset)
    return Note(dataset_id.id, str(dataset_id), annotations.TAG, field, tag)


def _of_job(session: Session, namespace: str, job: str, tag: str) -> Note:
    with session.connected() as connection:
        job_id = job_of(connection, namespace, job)
    return Note(job_id.id, str(job_id), annotations.TAG, name=tag)
