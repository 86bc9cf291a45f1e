"""Sources: every namespace of datasets is one."""

from typing import Annotated, Any

from fastapi import Query as InQuery
from sqlalchemy import Connection
from typing_extensions import TypedDict

from strandline.api.http.route import refused
from strandline.api.http.session import ReadSession
from strandline.api.marquez.models import MarquezSource
from strandline.api.marquez.parameters import JSON, PageQuery, SourceName, marquez_router
from strandline.api.marquez.shapes.times import time_text
from strandline.errors import NotFoundError
from strandline.store.marquez.names import sources_page

router = marquez_router()


class Sources(TypedDict):
    """A page of sources by name."""

    sources: list[MarquezSource]
    totalCount: int


@router.get("/sources", response_model=Sources)
def list_sources(query: Annotated[PageQuery, InQuery()], session: ReadSession) -> JSON:
    """All sources."""
    limit, offset = query.page
    with session.connected() as connection:
        sources = _sources(connection)
    names = sorted(sources)[offset : offset + limit]
    return {"sources": [sources[name] for name in names], "totalCount": len(sources)}


@router.get("/sources/{source:name}", response_model=MarquezSource, responses=refused(404))
def get_source(source: SourceName, session: ReadSession) -> JSON:
    """Return a source."""
    with session.connected() as connection:
        answer = _sources(connection).get(source)
    if answer is None:
        raise NotFoundError(f"unknown source: {source!r}")
    return answer


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
