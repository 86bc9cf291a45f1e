"""Sources: where datasets are. Every namespace of datasets is one; others can be created."""

from typing import Any

import msgspec
import orjson
from sqlalchemy import Connection

from strandline.api.endpoints.version_requests import body_as
from strandline.api.http.operations import Ask, Operation
from strandline.api.http.paging import connected
from strandline.api.marquez.parameters import API, OBJECT, PAGE, SOURCE, page_of
from strandline.api.marquez.shapes.times import time_text
from strandline.api.marquez.writing import note
from strandline.core.openlineage.names import id_of
from strandline.core.redaction.text import redact_text
from strandline.errors import NotFoundError
from strandline.store.marquez import annotations
from strandline.store.marquez.names import sources_page


class NewSource(msgspec.Struct, rename="camel"):
    """The body of PUT."""

    type: str
    connection_url: str
    description: str | None = None


def list_sources(ask: Ask) -> dict[str, Any]:
    """A page of sources by name."""
    limit, offset = page_of(ask)
    with connected(ask) as connection:
        found = _sources(connection)
    names = sorted(found)[offset : offset + limit]
    return {"sources": [found[name] for name in names], "totalCount": len(found)}


def get_source(ask: Ask) -> dict[str, Any]:
    """One source."""
    with connected(ask) as connection:
        found = _sources(connection).get(ask.given["source"])
    if found is None:
        raise NotFoundError(f"unknown source: {ask.given['source']!r}")
    return found


def put_source(ask: Ask) -> dict[str, Any]:
    """Create a source; what is secret in its address is not stored."""
    new, name = body_as(ask, NewSource), ask.given["source"]
    url = redact_text(new.connection_url)
    value = orjson.dumps({"type": new.type.upper(), "connectionUrl": url, "description": new.description}).decode()
    note(ask, [annotations.Note(id_of("source", name), f"source:{name}", annotations.SOURCE, name=name, value=value)])
    return get_source(ask)


def _sources(connection: Connection) -> dict[str, dict[str, Any]]:
    found = {}
    for name, first, last in sources_page(connection):
        kind = name.partition(":")[0].upper() if ":" in name else "UNKNOWN"
        found[name] = _answer(name, (first, last), {"type": kind, "connectionUrl": name, "description": None})
    for name, value, at in annotations.named_annotations(connection, annotations.SOURCE):
        found[name] = _answer(name, (at, at), orjson.loads(value))
    return found


def _answer(name: str, span: tuple[int, int], more: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "createdAt": time_text(span[0]), "updatedAt": time_text(span[1]), **more}


_BODY = {
    "type": "object",
    "required": ["type", "connectionUrl"],
    "properties": {
        "type": {"type": "string"},
        "connectionUrl": {"type": "string"},
        "description": {"type": ["string", "null"]},
    },
}
_ONE = f"{API}/sources/{{source}}"
OPERATIONS = (
    Operation("GET", f"{API}/sources", "All sources", list_sources, PAGE, answer=OBJECT, scope="read"),
    Operation("GET", _ONE, "A source", get_source, (SOURCE,), answer=OBJECT, refusals=(404,), scope="read"),
    Operation(
        "PUT", _ONE, "Create a source", put_source, (SOURCE,), body=_BODY, answer=OBJECT, scope="ingest", whole=True
    ),
)
