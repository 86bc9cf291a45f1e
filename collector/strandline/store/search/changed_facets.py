"""The facets of a batch that differ from the stored ones.

Those that name datasets, or that the search finds, are worked on again.

What is stored is asked for, not remembered: another writer may have changed it, and a facet may
come back. The rows that are read stay locked until the transaction ends, so no two writers decide
about one dataset at once. A dataset or job with a facet in a set also has it in a row of its own,
of an earlier transaction (core/changes/facet_sets.py). So there is always one to lock.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from operator import itemgetter
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, Select, func, select

from strandline.core.changes.compact import Rows
from strandline.core.changes.facet_sets import FacetSet
from strandline.core.changes.memory import BoundedCache
from strandline.core.changes.rows import FacetSeen, FacetSetUsed
from strandline.core.openlineage.facets import DATASET, JOB, RUN
from strandline.store.schema.dataset_tables import facet_sets, facet_uses, facets
from strandline.store.sql.id_lists import among, among_given

NAMING = frozenset(((DATASET, "catalog"), (DATASET, "symlinks")))
SOUGHT = frozenset(
    (
        (RUN, "spark_applicationDetails"),
        (DATASET, "schema"),
        (DATASET, "tags"),
        (JOB, "sql"),
        (JOB, "tags"),
    )
)
WATCHED = NAMING | SOUGHT
PAGE = 5000
_AT = itemgetter(0)
Members = tuple[tuple[int, str, bytes], ...]  # kind, key and hash of the watched facets of a set


class FacetPlace(NamedTuple):
    """A facet's kind and key, and whose it is."""

    kind: int
    key: str
    entity_id: int


class _StoredFacet(NamedTuple):
    """The order between facets of one place: the greatest counts.

    unread: no label was ever made of it.
    """

    at: int
    hash: bytes
    unread: bool = False


Places = dict[FacetPlace, _StoredFacet]
_OwnFacet = tuple[int, str, int, bytes, bool]  # kind, key, and the three of a _StoredFacet


class _Facets(NamedTuple):
    """The watched facets of an entity.

    Those in rows of their own, and sets with the moment they were had last.
    """

    own: list[_OwnFacet]
    used: list[tuple[int, Members]]


_ByEntity = dict[int, _Facets]


def changed_facets(connection: Connection, rows: Rows, remembered: BoundedCache) -> set[FacetPlace]:
    """Return the places of watched facets that will have another content than is stored.

    `remembered` has the `Members` of sets by id.
    """
    sets = {id_: _members(key, remembered) for id_, key in rows.sets.items()}
    changed = _given(rows, sets)
    places: set[FacetPlace] = set()
    for page in _pages(changed):
        locked = connection.execute(_locked(), {"ids": page})
        newest = {id_: at for id_, at in locked}  # noqa: C416  (a row is no pair to dict())
        stored = _in_sets(connection, page, sets, remembered)
        doubtful = [
            id_ for id_ in page if not _is_as_stored(changed[id_], stored.get(id_), newest.get(id_))
        ]
        _add_own(connection, stored, newest.keys() & doubtful)
        places.update(
            place for id_ in doubtful for place in _changed(id_, changed[id_], stored.get(id_))
        )
    return places


def _members(facets_: FacetSet, remembered: BoundedCache) -> Members:
    members: Members | None = remembered.get(facets_.id)
    if members is None:
        watched = (facet for facet in facets_.facets if (facets_.kind, facet.key) in WATCHED)
        members = remembered.put(
            facets_.id, tuple([(facets_.kind, member.key, member.hash) for member in watched])
        )
    return members


def _is_as_stored(facets: _Facets, stored: _Facets | None, newest_own: int | None) -> bool:
    """Return whether no place needs a look.

    All that is given is the set that is newer than everything else that is stored.
    """
    if facets.own or stored is None:
        return False
    newest, members = max(stored.used, key=_AT)
    return (
        all(key == members for _, key in facets.used)
        and (newest_own is None or newest_own < newest)
        and all(at < newest or key == members for at, key in stored.used)
    )


def _changed(entity_id: int, facets: _Facets, stored: _Facets | None) -> Iterator[FacetPlace]:
    """Yield the places at which the given facets differ from the stored ones."""
    before = {} if stored is None else _places(entity_id, stored)
    for place, one in _places(entity_id, facets).items():
        if _differs(one, before.get(place)):
            yield place


def _differs(facet: _StoredFacet, stored: _StoredFacet | None) -> bool:
    """Return true if another facet will count at the place: a late one changes nothing."""
    return stored is None or stored.unread or (stored.hash != facet.hash and stored < facet)


def _places(entity_id: int, facets_: _Facets) -> Places:
    """Return the facet that counts at each place."""
    places: Places = {}
    for kind, key, at, hash_, unread in facets_.own:
        places[FacetPlace(kind, key, entity_id)] = _StoredFacet(at, hash_, unread)
    for at, members in facets_.used:
        for kind, key, hash_ in members:
            place, entry = FacetPlace(kind, key, entity_id), _StoredFacet(at, hash_)
            if place not in places or places[place] < entry:
                places[place] = entry
    return places


def _given(rows: Rows, sets: Mapping[int, Members]) -> _ByEntity:
    facets_of: _ByEntity = {}
    for row in rows.of(FacetSeen):
        if (row.kind, row.key) in WATCHED:
            _of(facets_of, row.entity_id).own.append((row.kind, row.key, row.at, row.hash, False))
    for entity_id, set_id, at in rows.of(FacetSetUsed):
        if members := sets[set_id]:
            _of(facets_of, entity_id).used.append((at, members))
    return facets_of


def _in_sets(
    connection: Connection,
    entities: Collection[int],
    sets: dict[int, Members],
    remembered: BoundedCache,
) -> _ByEntity:
    """Return the sets with watched facets that entities have in the store."""
    facets_of: _ByEntity = {}
    uses = connection.execute(_uses(), {"ids": entities}).all()
    sets |= _other_members(
        connection, {set_id for _, set_id, _ in uses}.difference(sets), remembered
    )
    for id_, set_id, at in uses:
        if members := sets[set_id]:
            _of(facets_of, id_).used.append((at, members))
    return facets_of


def _add_own(connection: Connection, facets_of: _ByEntity, entities: Collection[int]) -> None:
    """Add the watched facets that entities have in rows of their own."""
    for id_, key, kind, at, hash_, apart in (
        connection.execute(_own(), {"ids": list(entities)}) if entities else ()
    ):
        unread = key == "catalog" and apart  # by the reader of an older version, as it was too long
        _of(facets_of, id_).own.append((kind, key, at, bytes(hash_), unread))


def _of(facets_of: _ByEntity, entity_id: int) -> _Facets:
    if (facets := facets_of.get(entity_id)) is None:
        facets = facets_of[entity_id] = _Facets([], [])
    return facets


def _other_members(
    connection: Connection, ids: Iterable[int], remembered: BoundedCache
) -> dict[int, Members]:
    """Return the members of sets that are not in this batch."""
    members_of: dict[int, Members | None] = {id_: remembered.get(id_) for id_ in ids}
    unknown = {
        id_: list[tuple[int, str, bytes]]()
        for id_, members in members_of.items()
        if members is None
    }
    query = select(facet_sets.c.set_id, facet_sets.c.kind, facet_sets.c.key, facet_sets.c.hash)
    for id_, kind, key, hash_ in (
        connection.execute(query.where(among(facet_sets.c.set_id, unknown))) if unknown else ()
    ):
        if (kind, key) in WATCHED:
            unknown[id_].append((kind, key, bytes(hash_)))
    read = {id_: remembered.put(id_, tuple(members)) for id_, members in unknown.items()}
    return {id_: read[id_] if members is None else members for id_, members in members_of.items()}


@cache
def _locked() -> Select[int, int]:
    """Return the moment of the newest watched facet that each entity has in a row of its own.

    These rows are locked.
    """
    rows = (
        select(facets.c.entity_id, facets.c.at)
        .where(*_watched())
        .order_by(facets.c.entity_id, facets.c.key)
    )
    held = rows.with_for_update().subquery()
    return select(held.c.entity_id, func.max(held.c.at)).group_by(held.c.entity_id)


@cache
def _own() -> Select[Any]:
    columns = (
        facets.c.entity_id,
        facets.c.key,
        facets.c.kind,
        facets.c.at,
        facets.c.hash,
        facets.c.body.is_(None),
    )
    return select(*columns).where(*_watched())


def _watched() -> tuple[ColumnElement[bool], ...]:
    return (
        among_given(facets.c.entity_id, "ids"),
        facets.c.kind.in_(sorted({kind for kind, _ in WATCHED})),
        facets.c.key.in_(sorted({key for _, key in WATCHED})),
    )


@cache
def _uses() -> Select[Any]:
    columns = (facet_uses.c.entity_id, facet_uses.c.set_id, facet_uses.c.at)
    return select(*columns).where(among_given(facet_uses.c.entity_id, "ids"))


def _pages(ids: Iterable[int]) -> Iterator[list[int]]:
    """Ids in sorted pages."""
    ordered = sorted(ids)
    for start in range(0, len(ordered), PAGE):
        yield ordered[start : start + PAGE]
