"""Sources: every namespace of datasets is one."""

from typing import Any

from sqlalchemy import Connection

from strandline.api.http.operations import Ask, Operation
from strandline.api.http.paging import connected
from strandline.api.marquez.parameters import API, OBJECT, PAGE, SOURCE, page_of
from strandline.api.marquez.shapes.times import time_text
from strandline.errors import NotFoundError
from strandline.store.marquez.names import sources_page


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


def _sources(connection: Connection) -> dict[str, dict[str, Any]]:
    return {
        name: {
            "name": name,
            "createdAt": time_text(first),
            "updatedAt": time_text(last),
            "type": name.partition(":")[0].upper() if ":" in name else "UNKNOWN",
            "connectionUrl": name,
            "description": None,
        }
        for name, first, last in sources_page(connection)
    }


_ONE = f"{API}/sources/{{source}}"
OPERATIONS = (
    Operation(
        "GET", f"{API}/sources", "All sources", list_sources, PAGE, answer=OBJECT, scope="read"
    ),
    Operation(
        "GET", _ONE, "A source", get_source, (SOURCE,), answer=OBJECT, refusals=(404,), scope="read"
    ),
)
