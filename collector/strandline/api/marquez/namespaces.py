"""Namespaces: those that jobs and datasets are named in."""

from typing import Annotated, Any

from fastapi import Query as InQuery
from sqlalchemy import Connection
from typing_extensions import TypedDict

from strandline.api.http.route import refused
from strandline.api.http.session import ReadSession
from strandline.api.marquez.models import MarquezNamespace
from strandline.api.marquez.parameters import JSON, N, NamespaceName, PageQuery, marquez_router
from strandline.api.marquez.shapes.times import time_text
from strandline.store.marquez.names import namespace_called, namespace_spans, namespaces_page

router = marquez_router()


class Namespaces(TypedDict):
    """A page of namespaces by name."""

    namespaces: list[MarquezNamespace]


NOBODY = "anonymous"  # as Marquez calls the owner of a namespace that came with an event


@router.get("/namespaces", response_model=Namespaces)
def list_namespaces(query: Annotated[PageQuery, InQuery()], session: ReadSession) -> JSON:
    """All namespaces."""
    with session.connected() as connection:
        page = namespaces_page(connection, *query.page)
        return {"namespaces": namespace_answers(connection, page, session.micros)}


@router.get(N, response_model=MarquezNamespace, responses=refused(404))
def get_namespace(namespace: NamespaceName, session: ReadSession) -> JSON:
    """Return a namespace."""
    with session.connected() as connection:
        namespace_id = namespace_called(connection, namespace)
        return namespace_answers(connection, [namespace_id], session.micros)[0]


def namespace_answers(connection: Connection, namespaces: Any, now: int) -> list[dict[str, Any]]:
    """Namespaces as Marquez shows them."""
    spans = namespace_spans(connection, [id_ for id_, _ in namespaces])
    answers = []
    for id_, name in namespaces:
        created, updated = spans.get(id_, (now, now))
        answers.append({
            "name": name,
            "createdAt": time_text(created),
            "updatedAt": time_text(updated),
            "ownerName": NOBODY,
            "description": None,
            "isHidden": False,
        })  # fmt: skip
    return answers
