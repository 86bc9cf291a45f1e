"""The stored facets of an entity, as they came: of a run, a job, a dataset under all its names, a relation.

They are handed on as bytes inside the JSON of an answer, never decoded.
"""

from collections.abc import Sequence
from typing import Any

import orjson
from sqlalchemy import Connection, func, select

from strandline.store.compression import expand
from strandline.store.tables import facet_bodies, facets

Facets = dict[str, orjson.Fragment]


def facets_of(connection: Connection, kind: int, ids: Sequence[int]) -> dict[int, Facets]:
    """The facets of each entity of one kind, by key."""
    found: dict[int, Facets] = {}
    for row in connection.execute(_current(kind, ids)):
        found.setdefault(row.entity_id, {})[row.key] = orjson.Fragment(expand(row.content))
    return found


def merged_facets(connection: Connection, kind: int, ids: Sequence[int]) -> Facets:
    """The facets of one entity that has several ids (a dataset and its symlinks): the newest of each key."""
    rows = connection.execute(_current(kind, ids)).all()
    return {
        row.key: orjson.Fragment(expand(row.content)) for row in sorted(rows, key=lambda row: (row.at, row.entity_id))
    }


def quarantined(connection: Connection, kind: int, ids: Sequence[int]) -> dict[str, str]:
    """Facets that were kept and not used, with the reason."""
    bad = select(facets.c.key, facets.c.problem).where(
        facets.c.kind == kind, facets.c.entity_id.in_(ids), facets.c.problem != ""
    )
    return {row.key: row.problem for row in connection.execute(bad)}


def _current(kind: int, ids: Sequence[int]) -> Any:
    content = func.coalesce(facets.c.body, facet_bodies.c.body)
    return (
        select(facets.c.entity_id, facets.c.key, facets.c.at, content.label("content"))
        .outerjoin(facet_bodies, facet_bodies.c.hash == facets.c.hash)
        .where(facets.c.kind == kind, facets.c.entity_id.in_(ids), facets.c.deleted == 0, content.is_not(None))
    )
