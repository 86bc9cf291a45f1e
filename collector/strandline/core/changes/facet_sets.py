"""Sets of facets: what many runs have alike is stored once, and each run names the set.

Whether a facet is stored in a set or as a row of its own changes no answer, so it may depend on what a writer has seen: a facet
belongs into a set once a second entity has it, and a set is stored once a second entity has all of it. So a facet that differs
from event to event, whoever invents it, is never in one.
"""

from collections.abc import Sequence
from operator import itemgetter
from typing import NamedTuple

from strandline.core.changes.bundles import FacetRow
from strandline.core.changes.parse_cache import VOLATILE, Halves
from strandline.core.openlineage.facets import RUN
from strandline.core.openlineage.names import id_of

KINDS = frozenset((RUN,))  # whose facets are stored in sets
REMEMBERED = 100_000
LEAST = 2  # facets: a row of its own takes no more room than a set of one
_SHARED = -1  # no entity: several have it
_Content = tuple[tuple[str, bytes], ...]  # key and hash of each facet
_content_of = itemgetter(0, 1)


class FacetSet(NamedTuple):
    """Facets that came together."""

    id: int
    kind: int
    facets: tuple[FacetRow, ...]


class _Choice(NamedTuple):
    """What was stored of these facets of an entity."""

    content: _Content
    chosen: FacetSet | None
    keys: frozenset[str]


class SharedFacets:
    """What one writer has seen of facets and their owners; bounded. Not for several threads at once."""

    def __init__(self) -> None:
        self._owners = Halves(2 * REMEMBERED)
        self._sets = Halves(REMEMBERED)
        self._choices = Halves(REMEMBERED)

    def split(
        self, entity_id: int, kind: int, facets: Sequence[FacetRow]
    ) -> tuple[FacetSet | None, Sequence[FacetRow]]:
        """The set to store for the entity, if any, and the facets that are stored by themselves."""
        if kind not in KINDS or len(facets) < LEAST:
            return None, facets
        stable = [one for one in facets if one.key not in VOLATILE and not one.problem]
        content = tuple(map(_content_of, stable))
        choice: _Choice | None = self._choices.get(entity_id)
        if choice is None or choice.content != content:
            choice = self._choices.put(entity_id, self._choose(entity_id, kind, stable, content))
        if choice.chosen is None:
            return None, facets
        return choice.chosen, [one for one in facets if one.key not in choice.keys]

    def _choose(self, entity_id: int, kind: int, stable: Sequence[FacetRow], content: _Content) -> _Choice:
        shared = [one for one in stable if self._is_shared(entity_id, kind, one)]
        keys = frozenset([one.key for one in shared])
        if len(shared) < LEAST or len(keys) < len(shared):  # two keys that the store spells alike
            return _Choice(content, None, keys)
        return _Choice(content, self._set(entity_id, kind, shared), keys)

    def _is_shared(self, entity_id: int, kind: int, facet: FacetRow) -> bool:
        place = (kind, facet.key, facet.hash)
        owner = self._owners.get(place)
        if owner is None:
            self._owners.put(place, entity_id)
        elif owner not in (_SHARED, entity_id):
            self._owners.put(place, _SHARED)
        return owner not in (None, entity_id)

    def _set(self, entity_id: int, kind: int, facets: Sequence[FacetRow]) -> FacetSet | None:
        """The set of these, once two entities have had all of them."""
        content = (kind, *map(_content_of, facets))
        found: FacetSet | int | None = self._sets.get(content)
        if isinstance(found, FacetSet):
            return found
        if found is None or found == entity_id:
            self._sets.put(content, entity_id)
            return None
        return self._sets.put(content, set_of(kind, facets))


def set_of(kind: int, facets: Sequence[FacetRow]) -> FacetSet:
    """The set of some facets, in whichever order they came."""
    ordered = tuple(sorted(facets, key=_content_of))
    names = [part for one in ordered for part in (one.key, one.hash.hex())]
    return FacetSet(id_of("facets", str(kind), *names), kind, ordered)
