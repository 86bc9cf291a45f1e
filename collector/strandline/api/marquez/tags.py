"""Tags of datasets, of their columns and of jobs; and what each tag means."""

from typing import Any

import msgspec

from strandline.api.endpoints.version_requests import body_as
from strandline.api.http.operations import Ask, Operation, Parameter, Whole
from strandline.api.http.paging import connected
from strandline.api.marquez.datasets import get_dataset
from strandline.api.marquez.jobs import get_job
from strandline.api.marquez.notes import write_notes
from strandline.api.marquez.parameters import (
    API,
    DATASET,
    FIELD,
    JOB,
    MOST,
    NAMESPACE,
    OBJECT,
    OFFSET,
    TAG,
    D,
    J,
)
from strandline.core.openlineage.names import id_of
from strandline.errors import NotFoundError
from strandline.store.lineage.lookup import dataset_of, job_of
from strandline.store.marquez import annotations
from strandline.store.marquez.annotations import Note, tag_meanings, tags_in_use

_MOST_TAGS = Parameter("limit", "How many at most", Whole(0, 2**31 - 1), default=MOST)


class NewTag(msgspec.Struct):
    """The body of PUT."""

    description: str | None = None


def list_tags(ask: Ask) -> dict[str, Any]:
    """All tags by name, with what they mean."""
    with connected(ask) as connection:
        meanings = tag_meanings(connection)
        names = sorted({*meanings, *tags_in_use(connection)})
    page = names[ask.given["offset"] :][: min(ask.given["limit"], MOST)]
    return {"tags": [{"name": name, "description": meanings.get(name) or None} for name in page]}


def put_tag(ask: Ask) -> dict[str, Any]:
    """Create a tag, or say what it means."""
    new, tag = body_as(ask, NewTag), ask.given["tag"]
    write_notes(
        ask,
        [
            Note(
                id_of("tag", tag),
                f"tag:{tag}",
                annotations.TAG_ITSELF,
                name=tag,
                value=new.description or "",
            )
        ],
    )
    return {"name": tag, "description": new.description}


def tag_dataset(ask: Ask) -> dict[str, Any]:
    """Tag a dataset."""
    write_notes(ask, [_of_dataset(ask)])
    return get_dataset(ask)


def untag_dataset(ask: Ask) -> dict[str, Any]:
    """Take a tag from a dataset."""
    write_notes(ask, [], [_of_dataset(ask)])
    return get_dataset(ask)


def tag_field(ask: Ask) -> dict[str, Any]:
    """Tag a column that the dataset has."""
    fields = [one["name"] for one in get_dataset(ask)["fields"]]
    if ask.given["field"] not in fields:
        raise NotFoundError(
            f"unknown column of {ask.given['dataset']!r}: {ask.given['field']!r}", fields[:10]
        )
    write_notes(ask, [_of_dataset(ask, ask.given["field"])])
    return get_dataset(ask)


def untag_field(ask: Ask) -> dict[str, Any]:
    """Take a tag from a column."""
    write_notes(ask, [], [_of_dataset(ask, ask.given["field"])])
    return get_dataset(ask)


def tag_job(ask: Ask) -> dict[str, Any]:
    """Tag a job."""
    write_notes(ask, [_of_job(ask)])
    return get_job(ask)


def untag_job(ask: Ask) -> dict[str, Any]:
    """Take a tag from a job."""
    write_notes(ask, [], [_of_job(ask)])
    return get_job(ask)


def _of_dataset(ask: Ask, field: str = "") -> Note:
    with connected(ask) as connection:
        found = dataset_of(connection, ask.given["namespace"], ask.given["dataset"])
    return Note(found.id, str(found), annotations.TAG, field, ask.given["tag"])


def _of_job(ask: Ask) -> Note:
    with connected(ask) as connection:
        found = job_of(connection, ask.given["namespace"], ask.given["job"])
    return Note(found.id, str(found), annotations.TAG, name=ask.given["tag"])


_BODY = {"type": "object", "properties": {"description": {"type": ["string", "null"]}}}
_TAGGED = (
    (f"{D}/tags/{{tag}}", "a dataset", tag_dataset, untag_dataset, (NAMESPACE, DATASET, TAG)),
    (
        f"{D}/fields/{{field}}/tags/{{tag}}",
        "a column",
        tag_field,
        untag_field,
        (NAMESPACE, DATASET, FIELD, TAG),
    ),
    (f"{J}/tags/{{tag}}", "a job", tag_job, untag_job, (NAMESPACE, JOB, TAG)),
)
OPERATIONS = (
    Operation(
        "GET",
        f"{API}/tags",
        "All tags",
        list_tags,
        (_MOST_TAGS, OFFSET),
        answer=OBJECT,
        scope="read",
    ),
    Operation(
        "PUT",
        f"{API}/tags/{{tag}}",
        "Say what a tag means",
        put_tag,
        (TAG,),
        body=_BODY,
        answer=OBJECT,
        scope="ingest",
        whole=True,
    ),
    *(
        Operation(
            "POST", path, f"Tag {what}", tag, names, answer=OBJECT, refusals=(404,), scope="ingest"
        )
        for path, what, tag, _, names in _TAGGED
    ),
    *(
        Operation(
            "DELETE",
            path,
            f"Take a tag from {what}",
            untag,
            names,
            answer=OBJECT,
            refusals=(404,),
            scope="ingest",
        )
        for path, what, _, untag, names in _TAGGED
    ),
)
