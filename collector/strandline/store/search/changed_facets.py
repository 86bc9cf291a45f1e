"""Which facets of a batch differ from what is stored: those that name datasets, or that the search finds, are worked on again.

What is stored is asked for, not remembered: another writer may have changed it, and a facet may come back. The rows that are
read stay locked until the transaction ends, so no two writers decide about one dataset at once. A dataset or job that has a facet
in a set has it in a row of its own too, of an earlier transaction (core/changes/facet_sets.py): there is always one to lock.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

from sqlalchemy import Connection, Select, select

from strandline.core.changes.compact import Rows
from strandline.core.changes.facet_sets import FacetSet
from strandline.core.changes.parse_cache import Halves
from strandline.core.changes.rows import FacetSeen, FacetSetUsed
from strandline.core.openlineage.facets import DATASET, JOB
from strandline.store.schema.tables import facet_sets, facet_uses, facets
from strandline.store.sql.id_lists import among, among_given

NAMING = frozenset(((DATASET, "catalog"), (DATASET, "symlinks")))
SOUGHT = frozenset(((DATASET, "schema"), (DATASET, "tags"), (JOB, "sql"), (JOB, "tags")))
WATCHED = NAMING | SOUGHT
PAGE = 5000
Members = tuple[tuple[int, str, bytes], ...]  # kind, key and hash of the watched facets of a set


class FacetPlace(NamedTuple):
    """A facet's kind and key, and whose it is."""

    kind: int
    key: str
    entity_id: int


class _StoredFacet(NamedTuple):
    """What decides between the facets of one place: the greatest counts. unread: no label was ever made of it."""

    at: int
    hash: bytes
    unread: bool = False


Places = dict[FacetPlace, _StoredFacet]


def changed_facets(connection: Connection, rows: Rows, remembered: Halves) -> set[FacetPlace]:
    """The places of watched facets whose content is not the one that is stored; `remembered` has the `Members` of sets by id."""
    sets = {id_: _members(one, remembered) for id_, one in rows.sets.items()}
    given = _given(rows, sets)
    stored = _stored(connection, {place.entity_id for place in given}, sets, remembered)
    return {place for place, one in given.items() if _differs(one, stored.get(place))}


def _members(facets_: FacetSet, remembered: Halves) -> Members:
    found: Members | None = remembered.get(facets_.id)
    if found is None:
        watched = (one for one in facets_.facets if (facets_.kind, one.key) in WATCHED)
        found = remembered.put(facets_.id, tuple([(facets_.kind, one.key, one.hash) for one in watched]))
    return found


def _differs(given: _StoredFacet, stored: _StoredFacet | None) -> bool:
    return stored is None or stored.hash != given.hash or stored.unread


def _given(rows: Rows, sets: Mapping[int, Members]) -> Places:
    found: Places = {}
    for row in rows.of(FacetSeen):
        if (row.kind, row.key) in WATCHED:
            found[FacetPlace(row.kind, row.key, row.entity_id)] = _StoredFacet(row.at, row.hash)
    for used in rows.of(FacetSetUsed):
        _put_members(found, used, sets[used.set_id])
    return found


def _put_members(found: Places, used: FacetSetUsed, members: Members) -> None:
    for kind, key, hash_ in members:
        _put(found, FacetPlace(kind, key, used.entity_id), _StoredFacet(used.at, hash_))


def _put(found: Places, place: FacetPlace, one: _StoredFacet) -> None:
    if place not in found or found[place] < one:
        found[place] = one


def _stored(connection: Connection, entities: Collection[int], sets: dict[int, Members], remembered: Halves) -> Places:
    """The watched facets that entities have in the store, locked."""
    found: Places = {}
    for page in _pages(entities):
        for id_, key, kind, at, hash_, apart in connection.execute(_by_themselves(), {"ids": page}).all():
            unread = key == "catalog" and apart  # by the reader of an older version, as it was too long
            found[FacetPlace(kind, key, id_)] = _StoredFacet(at, bytes(hash_), unread)
        uses = [FacetSetUsed(*row) for row in connection.execute(_in_sets(), {"ids": page}).all()]
        sets |= _other_members(connection, {one.set_id for one in uses}.difference(sets), remembered)
        for used in uses:
            _put_members(found, used, sets[used.set_id])
    return found


def _other_members(connection: Connection, ids: Iterable[int], remembered: Halves) -> dict[int, Members]:
    """The members of sets that are not in this batch."""
    found: dict[int, Members | None] = {id_: remembered.get(id_) for id_ in ids}
    unknown = {id_: list[tuple[int, str, bytes]]() for id_, members in found.items() if members is None}
    query = select(facet_sets.c.set_id, facet_sets.c.kind, facet_sets.c.key, facet_sets.c.hash)
    for id_, kind, key, hash_ in (
        connection.execute(query.where(among(facet_sets.c.set_id, unknown))) if unknown else ()
    ):
        if (kind, key) in WATCHED:
            unknown[id_].append((kind, key, bytes(hash_)))
    read = {id_: remembered.put(id_, tuple(members)) for id_, members in unknown.items()}
    return {id_: read[id_] if members is None else members for id_, members in found.items()}


@cache
def _by_themselves() -> Select[Any]:
    columns = (facets.c.entity_id, facets.c.key, facets.c.kind, facets.c.at, facets.c.hash, facets.c.body.is_(None))
    query = select(*columns).where(
        among_given(facets.c.entity_id, "ids"),
        facets.c.kind.in_(sorted({kind for kind, _ in WATCHED})),
        facets.c.key.in_(sorted({key for _, key in WATCHED})),
    )
    return query.order_by(facets.c.entity_id, facets.c.key).with_for_update()


@cache
def _in_sets() -> Select[Any]:
    columns = (facet_uses.c.entity_id, facet_uses.c.set_id, facet_uses.c.at)
    return select(*columns).where(among_given(facet_uses.c.entity_id, "ids"))


def _pages(ids: Iterable[int]) -> Iterator[list[int]]:
    """Ids in sorted pages."""
    ordered = sorted(ids)
    for start in range(0, len(ordered), PAGE):
        yield ordered[start : start + PAGE]
