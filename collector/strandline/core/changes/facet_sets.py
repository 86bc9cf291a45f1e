"""Sets of facets, which are stored once: many runs have them, or a job or dataset again and again.

Whether a facet is stored in a set or in a row of its own changes no answer, so it may depend on
what a writer has seen. Of a run a facet belongs into a set once a second run has it, and the set is
stored once a second run has all of it. Of a job or dataset the set is stored once an earlier
transaction has stored all of it for that job or dataset, facet by facet. So a facet that differs
from event to event, whoever invents it, is never in one.
"""

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import NamedTuple

from strandline.core.changes.memory import VOLATILE, BoundedCache
from strandline.core.openlineage.facets import DATASET, JOB, RUN, Facet
from strandline.core.openlineage.names import id_of

KINDS = frozenset((RUN, JOB, DATASET))  # whose facets are stored in sets
REMEMBERED = 20_000  # runs; facets and what came together three times as many
SETS_BYTES = 16 << 20
LEAST = 2  # facets: a row of its own takes no more room than a set of one
_SEVERAL = -1  # no run: several have it
_Content = tuple[tuple[str, bytes], ...]  # key and hash of each facet
_content_of = itemgetter(0, 1)


class FacetSet(NamedTuple):
    """Facets that came together."""

    id: int
    kind: int
    facets: tuple[Facet, ...]


class _Named(NamedTuple):
    """Facets of jobs or datasets, and how they are split.

    Events of one lineage share the object.
    """

    facets: Sequence[Facet]
    content: _Content
    set: FacetSet
    others: Sequence[Facet]


class _Choice(NamedTuple):
    """The facets of a run that went into a set, by key, and what the run had then.

    keys: None where none did.
    """

    content: _Content
    keys: frozenset[str] | None


class SharedFacets:
    """Facets and their owners as one writer has seen them.

    Bounded, and not for several threads at once.

    is_new: whether no committed transaction of this writer has stored what a key stands for; this
    one does now.
    """

    def __init__(self, is_new: Callable[[str, object], bool]) -> None:
        self._is_new = is_new
        self._owners = BoundedCache(3 * REMEMBERED)
        self._choices = BoundedCache(REMEMBERED)
        self._sets = BoundedCache(SETS_BYTES)
        # By the id() of the facets. They are held here, so no others have it meanwhile.
        self._named = BoundedCache(SETS_BYTES)

    def split(
        self, entity_id: int, kind: int, facets: Sequence[Facet]
    ) -> tuple[FacetSet | None, Sequence[Facet]]:
        """Return the set to store for the entity, if any, and the facets to store by themselves."""
        if len(facets) < LEAST or kind not in KINDS:
            return None, facets
        if kind != RUN:
            return self._split_named(entity_id, kind, facets)
        stable = _stable(facets)
        keys = self._keys_of_run(entity_id, stable, _content(stable))
        if keys is None:
            return None, facets
        in_set = [facet for facet in stable if facet.key in keys]
        others = [facet for facet in facets if facet.key not in keys]
        return self._set(kind, in_set), others

    def _split_named(
        self, entity_id: int, kind: int, facets: Sequence[Facet]
    ) -> tuple[FacetSet | None, Sequence[Facet]]:
        """Split the facets of a job or dataset.

        All that may go into a set does so, once it was stored facet by facet.
        """
        named: _Named | None = self._named.get((kind, id(facets)))
        is_known = named is not None and named.facets is facets
        stable = () if is_known else _stable(facets)
        content = named.content if named is not None and is_known else _content(stable)
        if len(content) < LEAST:
            return None, facets
        if self._is_new("facets of", hash((entity_id, kind, content))):
            return None, facets
        if named is None or not is_known:
            keys = {facet.key for facet in stable}
            others = [facet for facet in facets if facet.key not in keys]
            named = _Named(facets, content, self._set(kind, stable), others)
            self._named.put((kind, id(facets)), named, _size_of(facets))
        return named.set, named.others

    def _keys_of_run(
        self, run_id: int, stable: Sequence[Facet], content: _Content
    ) -> frozenset[str] | None:
        """Return the keys of a run's facets that go into a set.

        The choice for its first event holds for the next one that says the same.
        """
        choice: _Choice | None = self._choices.get(run_id)
        if choice is None or choice.content != content:
            choice = self._choices.put(run_id, _Choice(content, self._shared(run_id, content)))
        return choice.keys

    def _shared(self, run_id: int, content: _Content) -> frozenset[str] | None:
        """Return the keys that another run has had with the same content, all together."""
        shared = tuple([facet for facet in content if self._has_other_run(run_id, facet)])
        if len(shared) < LEAST or not self._has_other_run(run_id, shared):
            return None
        return frozenset([key for key, _ in shared])

    def _has_other_run(self, run_id: int, content: object) -> bool:
        """Return whether another run has had this before, and note that this one has it."""
        owner = self._owners.get(content)
        if owner is None:
            self._owners.put(content, run_id)
            return False
        if owner == run_id:
            return False
        if owner != _SEVERAL:
            self._owners.put(content, _SEVERAL)
        return True

    def _set(self, kind: int, facets: Sequence[Facet]) -> FacetSet:
        place = (kind, *_content(facets))
        cached: FacetSet | None = self._sets.get(place)
        return cached or self._sets.put(place, set_of(kind, facets), _size_of(facets))


def _stable(facets: Sequence[Facet]) -> list[Facet]:
    """Return the facets that may go into a set."""
    return [facet for facet in facets if facet.key not in VOLATILE and not facet.problem]


def _content(facets: Sequence[Facet]) -> _Content:
    return tuple(map(_content_of, facets))


def _size_of(facets: Sequence[Facet]) -> int:
    """Return about how many bytes of memory hold them."""
    return 500 + sum([300 + len(facet.body) for facet in facets])


def set_of(kind: int, facets: Sequence[Facet]) -> FacetSet:
    """Return the set of some facets, the same in whichever order they came.

    Of two keys that the store spells alike the greater content counts.
    """
    by_key = {facet.key: facet for facet in sorted(facets, key=_content_of)}
    ordered = tuple(by_key.values())
    names = [part for facet in ordered for part in (facet.key, facet.hash.hex())]
    return FacetSet(id_of("facets", str(kind), *names), kind, ordered)
