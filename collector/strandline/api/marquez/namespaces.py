"""Namespaces: those that jobs and datasets are named in, and those that somebody creates."""

from typing import Any

import msgspec
from sqlalchemy import Connection

from strandline.api.endpoints.version_requests import body_as
from strandline.api.http.operations import Ask, Operation
from strandline.api.http.paging import connected
from strandline.api.marquez.parameters import API, NAMESPACE, OBJECT, PAGE, N, now_of, page_of
from strandline.api.marquez.shapes.times import time_text
from strandline.api.marquez.writing import note
from strandline.core.openlineage.names import LONGEST_NAMESPACE, stored_name
from strandline.store.marquez.annotations import DELETED, DESCRIPTION, OWNER, Note, annotations_of
from strandline.store.marquez.names import create_namespace, namespace_called, namespace_spans, namespaces_page

NOBODY = "anonymous"  # as Marquez calls the owner of a namespace that came with an event


class NewNamespace(msgspec.Struct, rename="camel"):
    """The body of PUT: who owns it."""

    owner_name: str = NOBODY
    description: str | None = None


def list_namespaces(ask: Ask) -> dict[str, Any]:
    """A page of namespaces by name, deleted ones too: those are hidden."""
    with connected(ask) as connection:
        found = namespaces_page(connection, *page_of(ask))
        return {"namespaces": namespace_answers(connection, found, now_of(ask))}


def get_namespace(ask: Ask) -> dict[str, Any]:
    """One namespace."""
    with connected(ask) as connection:
        found = namespace_called(connection, ask.given["namespace"])
        return namespace_answers(connection, [found], now_of(ask))[0]


def put_namespace(ask: Ask) -> dict[str, Any]:
    """Create a namespace, or give it another owner; a deleted one is there again."""
    new, name = body_as(ask, NewNamespace), stored_name(ask.given["namespace"], LONGEST_NAMESPACE)
    with ask.engine.begin() as connection:
        entity = (create_namespace(connection, name), f"namespace:{name}")
    notes = [Note(*entity, OWNER, name=name, value=new.owner_name)]
    if new.description is not None:
        notes.append(Note(*entity, DESCRIPTION, value=new.description))
    note(ask, notes, [Note(*entity, DELETED)])
    return get_namespace(ask)


def delete_namespace(ask: Ask) -> dict[str, Any]:
    """Hide a namespace with its jobs and datasets; what is stored of them stays."""
    with connected(ask) as connection:
        id_, name = namespace_called(connection, ask.given["namespace"])
    note(ask, [Note(id_, f"namespace:{name}", DELETED)])
    return get_namespace(ask)


def namespace_answers(connection: Connection, found: Any, now: int) -> list[dict[str, Any]]:
    """Namespaces as Marquez shows them."""
    ids = [id_ for id_, _ in found]
    spans, noted = namespace_spans(connection, ids), annotations_of(connection, {id_: id_ for id_ in ids})
    answers = []
    for id_, name in found:
        created, updated = spans.get(id_, (now, now))
        of = noted[id_]
        answers.append({
            "name": name,
            "createdAt": time_text(created),
            "updatedAt": time_text(updated),
            "ownerName": of.owner or NOBODY,
            "description": of.description,
            "isHidden": of.deleted,
        })  # fmt: skip
    return answers


_BODY = {
    "type": "object",
    "properties": {"ownerName": {"type": "string"}, "description": {"type": ["string", "null"]}},
}
OPERATIONS = (
    Operation("GET", f"{API}/namespaces", "All namespaces", list_namespaces, PAGE, answer=OBJECT, scope="read"),
    Operation("GET", N, "A namespace", get_namespace, (NAMESPACE,), answer=OBJECT, refusals=(404,), scope="read"),
    Operation("PUT", N, "Create a namespace", put_namespace, (NAMESPACE,), body=_BODY, answer=OBJECT, scope="ingest"),
    Operation(
        "DELETE", N, "Hide a namespace", delete_namespace, (NAMESPACE,), answer=OBJECT, refusals=(404,), scope="admin"
    ),
)
