"""The stored facets of an entity, as they came: of a run, a job, a dataset under all its names, a relation.

They are handed on as bytes inside the JSON of an answer; only what the answer is made of is decoded (`value_of`).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
import orjson
from sqlalchemy import ColumnElement, Connection, and_, func, literal, select

from strandline.core.changes.rows import QUARANTINED
from strandline.core.openlineage.facets import MODELS
from strandline.store.schema.tables import facet_bodies, facets
from strandline.store.sql.compression import expand, expander
from strandline.store.sql.id_lists import among

Facets = dict[str, orjson.Fragment]


def facets_of(connection: Connection, kind: int, ids: Sequence[int]) -> dict[int, Facets]:
    """The facets of each entity of one kind, by key."""
    rows: dict[int, list[Any]] = {}
    for row in connection.execute(_current(kind, ids)):
        rows.setdefault(row.entity_id, []).append(row)
    return {entity_id: _shown(own) for entity_id, own in rows.items()}


def merged_facets(connection: Connection, kind: int, ids: Sequence[int]) -> Facets:
    """The facets of one entity that has several ids (a dataset and its symlinks): the newest of each key."""
    return _shown(connection.execute(_current(kind, ids)))


def merged_facets_each(connection: Connection, kind: int, group_of: Mapping[int, int]) -> dict[int, Facets]:
    """The same of many entities: `group_of` has the entity that each id is one of."""
    rows: dict[int, list[Any]] = {}
    for row in connection.execute(_current(kind, list(group_of))):
        rows.setdefault(group_of[row.entity_id], []).append(row)
    return {entity_id: _shown(own) for entity_id, own in rows.items()}


def value_of(connection: Connection, kind: int, ids: Sequence[int], key: str) -> Any:
    """What the newest facet of this key says, decoded as it is modelled; None where none was or all are quarantined."""
    rows = connection.execute(_current(kind, ids).where(facets.c.key == key, facets.c.problem == ""))
    row = _newest(rows).get(key)
    return None if row is None else msgspec.json.decode(expand(row.content), type=MODELS[kind, key])


def values_among(connection: Connection, kind: int, ids: Iterable[int], key: str) -> Iterator[tuple[int, Any]]:
    """(entity, what its facet of this key says as plain JSON) of as many entities as there are; not quarantined ones."""
    content = func.coalesce(facets.c.body, facet_bodies.c.body)
    query = (
        select(facets.c.entity_id, content)
        .outerjoin(facet_bodies, facet_bodies.c.hash == facets.c.hash)
        .where(among(facets.c.entity_id, ids), facets.c.key == key, facets.c.kind == kind)
        .where(facets.c.deleted == 0, content.is_not(None))
    )
    expanded = expander()
    for entity, body in connection.execute(query):
        yield entity, orjson.loads(expanded(body))


def _shown(rows: Iterable[Any]) -> Facets:
    expanded = expander()
    return {key: orjson.Fragment(expanded(row.content)) for key, row in _newest(rows).items()}


def _newest(rows: Iterable[Any]) -> dict[str, Any]:
    """By key; what the newest one says is deleted is gone under every name. A quarantined one is shown where no other is."""
    newest = {row.key: row for row in sorted(rows, key=lambda row: (row.kind < QUARANTINED, row.at, row.hash))}
    return {key: row for key, row in newest.items() if not row.deleted}


def quarantined(connection: Connection, kind: int, ids: Sequence[int]) -> dict[str, str]:
    """The facets of which the newest was kept and not used, with the reason."""
    return {key: problem for _, key, problem in _quarantined(connection, kind, ids, literal(0))}


def quarantined_each(connection: Connection, kind: int, ids: Sequence[int]) -> dict[int, dict[str, str]]:
    """The same of each entity of one kind that has such facets."""
    found: dict[int, dict[str, str]] = {}
    for entity_id, key, problem in _quarantined(connection, kind, ids, facets.c.entity_id):
        found.setdefault(entity_id, {})[key] = problem
    return found


def _quarantined(
    connection: Connection, kind: int, ids: Sequence[int], entity: ColumnElement[int]
) -> list[tuple[int, str, str]]:
    problems = select(entity.label("entity"), facets.c.key, facets.c.problem).where(_of(kind, ids))
    rows = connection.execute(problems.order_by(facets.c.at, facets.c.hash))
    newest = {(row.entity, row.key): row.problem for row in rows}
    return [(*place, problem) for place, problem in newest.items() if problem]


def _of(kind: int, ids: Sequence[int]) -> ColumnElement[bool]:
    return and_(facets.c.kind.in_((kind, kind + QUARANTINED)), among(facets.c.entity_id, ids))


def _current(kind: int, ids: Sequence[int]) -> Any:
    content = func.coalesce(facets.c.body, facet_bodies.c.body)
    return (
        select(
            *(facets.c[name] for name in ("entity_id", "key", "kind", "at", "hash", "deleted")),
            content.label("content"),
        )
        .outerjoin(facet_bodies, facet_bodies.c.hash == facets.c.hash)
        .where(_of(kind, ids), content.is_not(None))
    )
