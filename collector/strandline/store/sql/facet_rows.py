"""Reading facets, which are stored in rows of their own or in sets that many entities have."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, TypeVar

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    Subquery,
    delete,
    func,
    literal,
    select,
    true,
    union_all,
)

from strandline.core.changes.compact import fold_rows
from strandline.core.changes.rows import FacetSeen
from strandline.store.schema.dataset_tables import facet_bodies, facet_sets, facet_uses, facets
from strandline.store.sql.id_lists import among
from strandline.store.sql.upsert import upsert

One = TypeVar("One", int, str)
Condition = Callable[[ColumnElement[Any]], ColumnElement[bool]]
NO_PROBLEM = ""  # no quarantined facet is in a set
AT_ONCE = 2_000


def one_of(values: Iterable[One]) -> Condition:
    """Return the condition that a column has one of these values."""
    return partial(among, values=list(values))


def any_value(_: ColumnElement[Any]) -> ColumnElement[bool]:
    """Return the condition that is always true: all entities, or all keys."""
    return true()


def facet_rows(entities: Condition, kinds: Iterable[int], keys: Condition = any_value) -> Subquery:
    """Return the facets of these kinds that entities have.

    The columns are entity_id, key, kind, at, hash, content (packed), deleted and problem. Of
    several rows with one entity, key and kind the newest counts, by its time and then its hash.
    """
    conditions = entities, tuple(kinds), keys
    return union_all(_in_own_rows(*conditions), _in_sets(*conditions)).subquery("facets_held")


def _in_own_rows(entities: Condition, kinds: tuple[int, ...], keys: Condition) -> Select[Any]:
    own = facets.c
    content = func.coalesce(own.body, facet_bodies.c.body).label("content")
    return (
        select(
            own.entity_id, own.key, own.kind, own.at, own.hash, content, own.deleted, own.problem
        )
        .outerjoin(facet_bodies, facet_bodies.c.hash == own.hash)
        .where(entities(own.entity_id), own.kind.in_(kinds), keys(own.key))
    )


def _in_sets(entities: Condition, kinds: tuple[int, ...], keys: Condition) -> Select[Any]:
    used, facet = facet_uses.c, facet_sets.c
    content = func.coalesce(facet.body, facet_bodies.c.body).label("content")
    problem = literal(NO_PROBLEM).label("problem")
    columns = (used.entity_id, facet.key, facet.kind, used.at, facet.hash, content)
    return (
        select(*columns, facet.deleted, problem)
        .select_from(facet_uses)
        .join(facet_sets, facet.set_id == used.set_id)
        .outerjoin(facet_bodies, facet_bodies.c.hash == facet.hash)
        .where(entities(used.entity_id), facet.kind.in_(kinds), keys(facet.key))
    )


def newest_rows(rows: Iterable[Any]) -> list[Any]:
    """Return the newest row of each entity, key and kind, oldest first."""
    ordered = sorted(rows, key=lambda row: (row.at, row.hash))
    return list({(row.entity_id, row.key, row.kind): row for row in ordered}.values())


def store_by_themselves(connection: Connection, entities: Iterable[int]) -> None:
    """Give each facet that these entities have in sets a row of its own, where it can be changed.

    The caller keeps writers out.
    """
    ordered = sorted(set(entities))
    for start in range(0, len(ordered), AT_ONCE):
        page = ordered[start : start + AT_ONCE]
        own = (facet_uses.c.entity_id, facet_sets.c.key, facet_sets.c.kind, facet_uses.c.at)
        query = select(*own, facet_sets.c.hash, facet_sets.c.body, facet_sets.c.deleted)
        query = query.join(facet_sets, facet_sets.c.set_id == facet_uses.c.set_id)
        rows = connection.execute(query.where(among(facet_uses.c.entity_id, page))).all()
        if rows:
            upsert(connection, FacetSeen, fold_rows(FacetSeen, [_row(*row) for row in rows]))
            connection.execute(delete(facet_uses).where(among(facet_uses.c.entity_id, page)))


def _row(
    entity: int, key: str, kind: int, at: int, hash_: bytes, body: bytes | None, deleted: int
) -> FacetSeen:
    packed = None if body is None else bytes(body)
    return FacetSeen(entity, key, kind, at, bytes(hash_), packed, deleted, NO_PROBLEM)
