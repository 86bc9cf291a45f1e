"""Changed facets of a batch are found by newest times, as by comparing all rows."""

import random
from collections.abc import Iterable

import pytest
from sqlalchemy import Engine

from strandline.core.changes.bundles import FacetRow
from strandline.core.changes.compact import Rows
from strandline.core.changes.facet_sets import FacetSet, set_of
from strandline.core.changes.parse_cache import Halves
from strandline.core.changes.rows import FacetSeen, FacetSetUsed, SetFacet
from strandline.core.changes.unpack import rows_of_set
from strandline.core.openlineage.facets import DATASET
from strandline.store.search.changed_facets import FacetPlace, changed_facets
from strandline.store.sql.upsert import upsert

ENTITIES = range(1, 3000)
KEYS = ("catalog", "schema", "ownership")  # the last one is nobody's to watch
HASHES = (b"1", b"2")
Newest = dict[FacetPlace, tuple[int, bytes]]
Batch = tuple[list[FacetSeen], list[FacetSetUsed]]

SETS = {
    one.id: one
    for first in HASHES
    for second in HASHES
    for one in (
        set_of(
            DATASET,
            [FacetRow("catalog", first, b"{}", 0, ""), FacetRow("schema", second, b"{}", 0, "")],
        ),
        set_of(
            DATASET,
            [FacetRow("schema", first, b"{}", 0, ""), FacetRow("ownership", second, b"{}", 0, "")],
        ),
        set_of(
            DATASET,
            [
                FacetRow("ownership", first, b"{}", 0, ""),
                FacetRow("documentation", second, b"{}", 0, ""),
            ],
        ),
    )
}


@pytest.mark.parametrize("seed", range(2))
def test_exactly_the_changed_facets_are_found(engine: Engine, seed: int) -> None:
    chance = random.Random(seed)
    stored, given = some(chance), some(chance)
    with engine.begin() as connection:
        upsert(
            connection,
            SetFacet,
            sorted(row for one in SETS.values() for row in rows_of_set(one)[0]),
        )
        own, used = stored
        upsert(connection, FacetSeen, own)
        upsert(connection, FacetSetUsed, used)

        found = changed_facets(connection, batch(given), Halves(100))

    before = newest(stored)
    assert found == {
        place
        for place, one in newest(given).items()
        if place not in before or (before[place][1] != one[1] and before[place] < one)
    }


def some(chance: random.Random) -> Batch:
    """Facets by themselves and in sets, at moments so few that many are the same."""
    own = [
        FacetSeen(entity, key, DATASET, chance.randrange(4), chance.choice(HASHES), b"{}", 0, "")
        for entity in ENTITIES
        for key in sorted(KEYS)
        if chance.random() < 0.1
    ]
    used = [
        FacetSetUsed(entity, id_, chance.randrange(4))
        for entity in ENTITIES
        for id_ in sorted(chance.sample(sorted(SETS), chance.choice((0, 1, 1, 2))))
    ]
    return own, used


def batch(given: Batch) -> Rows:
    own, used = given
    rows = Rows({FacetSeen: own, FacetSetUsed: used})
    rows.sets = {one.set_id: SETS[one.set_id] for one in used}
    return rows


def newest(facets: Batch) -> Newest:
    """The watched facets that count.

    Of each place the newest, of two at one moment that of the greater hash.
    """
    own, used = facets
    found: Newest = {}
    for row in own:
        put(found, row.entity_id, [(row.key, row.hash)], row.at)
    for use in used:
        put(found, use.entity_id, members(SETS[use.set_id]), use.at)
    return found


def put(found: Newest, entity_id: int, facets: Iterable[tuple[str, bytes]], at: int) -> None:
    for key, hash_ in facets:
        place = FacetPlace(DATASET, key, entity_id)
        if key in ("catalog", "schema"):
            found[place] = max(found.get(place, (-1, b"")), (at, hash_))


def members(one: FacetSet) -> list[tuple[str, bytes]]:
    return [(row.key, row.hash) for row in one.facets]
