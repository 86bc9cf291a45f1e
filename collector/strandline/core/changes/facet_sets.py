"""Sets of facets: what many runs have alike, or a job or dataset has again and again, is stored once, and each of them names the set.

Whether a facet is stored in a set or in a row of its own changes no answer, so it may depend on what a writer has seen. Of a run a
facet belongs into a set once a second run has it, and the set is stored once a second run has all of it. Of a job or dataset
the set is stored once an earlier transaction has stored all of it for that job or dataset, facet by facet. So a facet that
differs from event to event, whoever invents it, is never in one.
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

    The events of an outline bring the very same object.
    """

    facets: Sequence[Facet]
    content: _Content
    set: FacetSet
    others: Sequence[Facet]


class _Choice(NamedTuple):
    """Which facets of a run went into a set (keys), None where none did, and what the run had then."""

    content: _Content
    keys: frozenset[str] | None


class SharedFacets:
    """What one writer has seen of facets and their owners; bounded.

    Not for several threads at once.

    is_new: whether no committed transaction of this writer has stored what a key stands for; this
    one does now.
    """

    def __init__(self, is_new: Callable[[str, object], bool]) -> None:
        self._is_new = is_new
        self._owners = BoundedCache(3 * REMEMBERED)
        self._choices = BoundedCache(REMEMBERED)
        self._sets = BoundedCache(SETS_BYTES)
        self._named = BoundedCache(
            SETS_BYTES
        )  # by the id() of the facets, which are held here: no others have it meanwhile

    def split(
        self, entity_id: int, kind: int, facets: Sequence[Facet]
    ) -> tuple[FacetSet | None, Sequence[Facet]]:
        """The set to store for the entity, if any, and the facets that are stored by themselves."""
        if len(facets) < LEAST or kind not in KINDS:
            return None, facets
        if kind != RUN:
            return self._split_named(entity_id, kind, facets)
        stable = _stable(facets)
        keys = self._of_run(entity_id, stable, _content(stable))
        if keys is None:
            return None, facets
        return self._set(kind, [one for one in stable if one.key in keys]), [
            one for one in facets if one.key not in keys
        ]

    def _split_named(
        self, entity_id: int, kind: int, facets: Sequence[Facet]
    ) -> tuple[FacetSet | None, Sequence[Facet]]:
        """The same of a job or dataset.

        All that may go into a set does so, once it was stored facet by facet.
        """
        named: _Named | None = self._named.get((kind, id(facets)))
        if named is not None and named.facets is facets:
            if self._is_new("facets of", hash((entity_id, kind, named.content))):
                return None, facets
            return named.set, named.others
        stable = _stable(facets)
        content = _content(stable)
        if len(stable) < LEAST or self._is_new("facets of", hash((entity_id, kind, content))):
            return None, facets
        keys = {one.key for one in stable}
        found = _Named(
            facets, content, self._set(kind, stable), [one for one in facets if one.key not in keys]
        )
        self._named.put((kind, id(facets)), found, _size_of(facets))
        return found.set, found.others

    def _of_run(
        self, run_id: int, stable: Sequence[Facet], content: _Content
    ) -> frozenset[str] | None:
        """The same of a run: what was decided of its first event is decided of the next one that says the same."""
        choice: _Choice | None = self._choices.get(run_id)
        if choice is None or choice.content != content:
            choice = self._choices.put(run_id, _Choice(content, self._shared(run_id, stable)))
        return choice.keys

    def _shared(self, run_id: int, stable: Sequence[Facet]) -> frozenset[str] | None:
        shared = [one for one in map(_content_of, stable) if self._have_two(run_id, one)]
        if len(shared) < LEAST or not self._have_two(run_id, tuple(shared)):
            return None
        return frozenset([key for key, _ in shared])

    def _have_two(self, run_id: int, content: object) -> bool:
        """Whether another run has had this before."""
        owner = self._owners.get(content)
        if owner is None:
            self._owners.put(content, run_id)
        elif owner not in (_SEVERAL, run_id):
            self._owners.put(content, _SEVERAL)
        return owner not in (None, run_id)

    def _set(self, kind: int, facets: Sequence[Facet]) -> FacetSet:
        place = (kind, *map(_content_of, facets))
        found: FacetSet | None = self._sets.get(place)
        return found or self._sets.put(place, set_of(kind, facets), _size_of(facets))


def _stable(facets: Sequence[Facet]) -> list[Facet]:
    """Those that may go into a set."""
    return [one for one in facets if one.key not in VOLATILE and not one.problem]


def _content(facets: Sequence[Facet]) -> _Content:
    return tuple(map(_content_of, facets))


def _size_of(facets: Sequence[Facet]) -> int:
    """About how many bytes of memory hold them."""
    return 500 + sum([300 + len(one.body) for one in facets])


def set_of(kind: int, facets: Sequence[Facet]) -> FacetSet:
    """The set of some facets, in whichever order they came.

    Of two keys that the store spells alike the greater content counts.
    """
    ordered = tuple({one.key: one for one in sorted(facets, key=_content_of)}.values())
    names = [part for one in ordered for part in (one.key, one.hash.hex())]
    return FacetSet(id_of("facets", str(kind), *names), kind, ordered)
