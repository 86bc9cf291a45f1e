"""Facets of many entities at once: decoded, or as they came."""

from collections.abc import Collection, Mapping
from typing import Any

import orjson
from sqlalchemy import Connection, select

from strandline.store.lineage.facets import Facets
from strandline.store.sql.compression import expander
from strandline.store.sql.facet_rows import any_value, facet_rows, one_of

Values = dict[int, dict[str, dict[str, Any]]]


def facet_values(
    connection: Connection, kind: int, groups: Mapping[int, int], keys: Collection[str]
) -> Values:
    """The newest facet of each of these keys by entity, decoded.

    `groups` leads from each id to the entity's own.
    """
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
    """By entity and key.

    What its newest facet calls deleted an entity has not; a quarantined facet is none.
    """
    held = facet_rows(one_of(groups), (kind,), any_value if keys is None else one_of(keys))
    query = select(held.c.entity_id, held.c.key, held.c.deleted, held.c.content)
    query = query.where(held.c.content.is_not(None)).order_by(held.c.at, held.c.hash)
    newest = {(groups[row.entity_id], row.key): row for row in connection.execute(query)}
    expanded = expander()
    return {place: expanded(row.content) for place, row in newest.items() if not row.deleted}
