"""Facets of many entities at once: decoded, or as they came."""

from collections.abc import Collection, Mapping
from typing import Any

import orjson
from sqlalchemy import Connection, func, select

from strandline.store.lineage.facets import Facets
from strandline.store.schema.tables import facet_bodies, facets
from strandline.store.sql.compression import expander
from strandline.store.sql.id_lists import among

Values = dict[int, dict[str, dict[str, Any]]]


def facet_values(connection: Connection, kind: int, groups: Mapping[int, int], keys: Collection[str]) -> Values:
    """The newest facet of each of these keys by entity, decoded; `groups` leads from each id to the entity's own."""
    found: Values = {}
    for (entity, key), body in _newest(connection, kind, groups, keys).items():
        value = orjson.loads(body)
        if isinstance(value, dict):
            found.setdefault(entity, {})[key] = value
    return found


def all_facets(connection: Connection, kind: int, groups: Mapping[int, int]) -> dict[int, Facets]:
    """The newest facet of each key by entity, as it came."""
    found: dict[int, Facets] = {}
    for (entity, key), body in _newest(connection, kind, groups, None).items():
        found.setdefault(entity, {})[key] = orjson.Fragment(body)
    return found


def _newest(
    connection: Connection, kind: int, groups: Mapping[int, int], keys: Collection[str] | None
) -> dict[tuple[int, str], bytes]:
    """By entity and key. What its newest facet calls deleted an entity has not; a quarantined facet is none."""
    content = func.coalesce(facets.c.body, facet_bodies.c.body).label("content")
    query = (
        select(facets.c.entity_id, facets.c.key, facets.c.deleted, content)
        .outerjoin(facet_bodies, facet_bodies.c.hash == facets.c.hash)
        .where(among(facets.c.entity_id, groups), facets.c.kind == kind, facets.c.problem == "", content.is_not(None))
        .order_by(facets.c.at, facets.c.hash)
    )
    if keys is not None:
        query = query.where(facets.c.key.in_(keys))
    newest = {(groups[row.entity_id], row.key): row for row in connection.execute(query)}
    expanded = expander()
    return {place: expanded(row.content) for place, row in newest.items() if not row.deleted}
