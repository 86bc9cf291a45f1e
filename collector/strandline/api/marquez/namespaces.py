"""Namespaces: those that jobs and datasets are named in."""

from typing import Any

from sqlalchemy import Connection

from strandline.api.http.operations import Ask, Operation
from strandline.api.http.paging import connected
from strandline.api.marquez.parameters import API, NAMESPACE, OBJECT, PAGE, N, now_of, page_of
from strandline.api.marquez.shapes.times import time_text
from strandline.store.marquez.names import namespace_called, namespace_spans, namespaces_page

NOBODY = "anonymous"  # as Marquez calls the owner of a namespace that came with an event


def list_namespaces(ask: Ask) -> dict[str, Any]:
    """A page of namespaces by name."""
    with connected(ask) as connection:
        found = namespaces_page(connection, *page_of(ask))
        return {"namespaces": namespace_answers(connection, found, now_of(ask))}


def get_namespace(ask: Ask) -> dict[str, Any]:
    """One namespace."""
    with connected(ask) as connection:
        found = namespace_called(connection, ask.given["namespace"])
        return namespace_answers(connection, [found], now_of(ask))[0]


def namespace_answers(connection: Connection, found: Any, now: int) -> list[dict[str, Any]]:
    """Namespaces as Marquez shows them."""
    spans = namespace_spans(connection, [id_ for id_, _ in found])
    answers = []
    for id_, name in found:
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


OPERATIONS = (
    Operation(
        "GET",
        f"{API}/namespaces",
        "All namespaces",
        list_namespaces,
        PAGE,
        answer=OBJECT,
        scope="read",
    ),
    Operation(
        "GET",
        N,
        "A namespace",
        get_namespace,
        (NAMESPACE,),
        answer=OBJECT,
        refusals=(404,),
        scope="read",
    ),
)
