"""What reading one event teaches about the next: facets by their bytes, datasets by their names.

Only pure results are kept, so forgetting any of them changes nothing but the time. Bounded: when
the younger half is full, the older half goes.
"""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import msgspec

from strandline.core.changes.bundles import NO_GROUP, AliasSet, FacetRow, Group
from strandline.core.changes.rows import DatasetAlias, DatasetSeen, JobSeen
from strandline.core.changes.table_parts import CHANGES, FEED, is_of_the_table, part_read, without
from strandline.core.changes.usable_facets import UsableFacets
from strandline.core.openlineage.events import emptied
from strandline.core.openlineage.facets import DATASET, Facet, Symlinks, content_hash, facet_of
from strandline.core.openlineage.names import (
    LONGEST_NAMESPACE,
    Naming,
    bare,
    id_of,
    is_object_store,
    is_of_a_session,
    key_text,
    namespace_id,
    place_id,
    place_of,
    run_id_of,
    stored_name,
)
from strandline.core.redaction.json import has_secret

T = TypeVar("T")

FACET_BYTES = 24 << 20
RECURRING_BYTES = 32 << 20
DERIVED_BYTES = 32 << 20
LARGE = 1 << 20  # what is larger is not remembered: one such event would drive out all others
NAMES = 100_000
ORDINARY_NAME = 250  # a longer name takes the place of several
REMEMBERED_SIZE = 2_000
VOLATILE = frozenset(
    (
        "strandline_snapshot",
        "strandline_barrier",
        "outputStatistics",
        "inputStatistics",
        "version",
        "nominalTime",
    )
)
_EMPTY = frozenset((b"", b"{}", b"null"))


_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw])


class Memo:
    """The memory of one reader of events; not for several threads at once."""

    def __init__(self, naming: Naming | None = None) -> None:
        self.naming = naming or Naming()
        self._facets = Halves(FACET_BYTES)
        self._described = Halves(FACET_BYTES)
        self._recurring = Halves(RECURRING_BYTES)
        self._last = Halves(RECURRING_BYTES)
        self._datasets = Halves(NAMES)
        self._jobs = Halves(NAMES)
        self._runs = Halves(NAMES)
        self._derived = Halves(DERIVED_BYTES)

    def facet(self, kind: int, key: str, raw: bytes) -> tuple[Facet, FacetRow]:
        """The facet in these bytes, and what is stored of it.

        Only what may come again is remembered.
        """
        if (key in VOLATILE and len(raw) < REMEMBERED_SIZE) or len(raw) > LARGE:
            return _read(kind, key, raw)
        cached: tuple[Facet, FacetRow] | None = self._facets.get((kind, key, raw))
        return cached or self._facets.put(
            (kind, key, raw), _read(kind, key, raw), 2 * len(raw) + 500
        )

    def group(self, kind: int, raw: bytes) -> Group:
        """The facets in the bytes of a JSON object."""
        if raw in _EMPTY:
            return NO_GROUP
        members = [(key, bytes(one)) for key, one in _MEMBERS.decode(raw).items()]
        group = self._group(kind, members)
        if has_secret(
            emptied(raw, [one for _, one in members])
        ):  # in a facet that comes twice, and is read once
            return group._replace(redacted=True)
        return group

    def _group(self, kind: int, members: Iterable[tuple[str, bytes]]) -> Group:
        found = {key: self.facet(kind, key, raw) for key, raw in members}
        facets = UsableFacets(
            {key: facet for key, (facet, _) in found.items() if facet.value is not None}
        )
        rows = tuple([row for _, row in found.values()])
        return Group(rows, facets, any(facet.redacted for facet, _ in found.values()))

    def recurring(
        self,
        place: tuple[Any, ...],
        content: tuple[Any, ...],
        make: Callable[[], T],
        size: Callable[[], int],
    ) -> T:
        """What `make`, a pure function of the content, makes of it.

        Mostly the content that was at this place last.

        Comparing with that takes a tenth of the time of looking it up.
        """
        last: tuple[Any, T] | None = self._last.get(place)
        if last is not None and last[0] == content:
            return last[1]
        if (bytes_ := size()) > LARGE:
            return make()
        cached: T | None = self._recurring.get(content)
        if cached is None:
            cached = self._recurring.put(content, make(), bytes_)
        return self._last.put(place, (content, cached), bytes_)[1]

    def dataset_with(
        self, namespace: str, name: str, raw: bytes, *, read: bool = False, streamed: bool = False
    ) -> tuple[DatasetSeen, Group]:
        """The dataset of this name, and the facets in these bytes. read: it is an input."""
        key = (namespace, name, raw, read, streamed)
        if len(raw) > LARGE:
            return self._dataset_with(*key)
        cached: tuple[DatasetSeen, Group] | None = self._described.get(key)
        return cached or self._described.put(
            key, self._dataset_with(*key), len(raw) + len(namespace) + len(name) + 1000
        )

    def _dataset_with(
        self, namespace: str, name: str, raw: bytes, read: bool, streamed: bool
    ) -> tuple[DatasetSeen, Group]:
        group = self.group(DATASET, raw)
        part = part_read(name, group.facets) if read else None
        dataset = self.dataset(
            namespace, name, iceberg=part not in (None, FEED, CHANGES), streamed=streamed
        )
        others = _other_names(group.facets, namespace)
        if part is not None:
            group = _of_the_table(group, part)
            others = [(of, without(one, part), type_) for of, one, type_ in others]
        if (
            part == CHANGES
        ):  # a name of its own, so that the table's names can be taken out of events by their own
            others.append((namespace, without(name, part), "LOCATION"))
        aliases = self._aliases(dataset.id, others) if others else None
        redacted = group.redacted or bare(namespace) != namespace or bare(name) != name
        return dataset, Group(group.rows, group.facets, redacted, aliases)

    def _aliases(self, dataset_id: int, others: Iterable[tuple[str, str, str]]) -> AliasSet:
        named = [(self.dataset(*one), type_) for *one, type_ in others]
        named = [(alias, type_) for alias, type_ in named if alias.id != dataset_id]
        aliases = tuple(
            DatasetAlias(dataset_id, alias.id, key_text(type_.upper())) for alias, type_ in named
        )
        hash_ = content_hash(repr(aliases).encode())
        return AliasSet(dataset_id, hash_, aliases, tuple(alias for alias, _ in named))

    def dataset(
        self, namespace: str, name: str, *, iceberg: bool = False, streamed: bool = False
    ) -> DatasetSeen:
        """The dataset of this name, without times."""
        key = (namespace, name, iceberg, streamed)
        cached: DatasetSeen | None = self._datasets.get(key)
        if cached is None:
            cached = self._datasets.put(key, self._dataset(*key), _places(namespace, name))
        return cached

    def run(self, run_id: str, namespace: str, job: str) -> int:
        """The id of a run."""
        cached: int | None = self._runs.get((run_id, namespace, job))
        if cached is None:
            size = _places(run_id, namespace, job)
            cached = self._runs.put(
                (run_id, namespace, job), run_id_of(run_id, namespace, job), size
            )
        return cached

    def job(self, namespace: str, name: str) -> JobSeen:
        """The job of this name, without times."""
        cached: JobSeen | None = self._jobs.get((namespace, name))
        if cached is None:
            kept = stored_name(namespace, LONGEST_NAMESPACE), stored_name(name)
            job = JobSeen(id_of("job", *kept), namespace_id(kept[0]), *kept, None, None)
            cached = self._jobs.put((namespace, name), job, _places(namespace, name))
        return cached

    def derived(self, key: tuple[Any, ...], make: Callable[[], T], size: Callable[[T], int]) -> T:
        """What `make` makes, which has to be a pure function of the key, and takes about so many bytes."""
        cached: T | None = self._derived.get(key)
        if cached is None:
            cached = make()
            if size(cached) <= LARGE:
                self._derived.put(key, cached, size(cached))
        return cached

    def _dataset(self, namespace: str, name: str, iceberg: bool, streamed: bool) -> DatasetSeen:
        kept = self.naming.name_of(namespace, name, iceberg=iceberg, streamed=streamed)
        place, own = place_of(*kept), id_of("dataset", *kept)
        return DatasetSeen(
            own, namespace_id(kept[0]), *kept, own, place_id(place), *place, None, None, 0
        )


def _other_names(facets: UsableFacets, namespace: str) -> list[tuple[str, str, str]]:
    """Namespace, name and type of what a dataset in this namespace is called as well."""
    symlinks: Symlinks | None = facets.value("symlinks") or facets.value("symlink")
    identifiers = symlinks.identifiers if symlinks else ()
    named = [
        (one.namespace, one.name, one.type) for one in identifiers if one.namespace and one.name
    ]
    return [_other_name(*one) for one in named if not is_of_a_session(namespace, *one[:2])]


def _other_name(namespace: str, name: str, type_: str) -> tuple[str, str, str]:
    """A path in an object store is no table, and has no slashes around it, as others name it.

    Airflow has both of Athena's.
    """
    if type_.upper() == "TABLE" and name.startswith("/") and is_object_store(namespace):
        return namespace, name.strip("/") or name, "LOCATION"
    return namespace, name, type_


def _of_the_table(group: Group, part: str) -> Group:
    """The facets of a part of a table that are the table's as well."""
    rows = tuple([row for row in group.rows if is_of_the_table(row.key, part)])
    facets = UsableFacets(
        {key: facet for key, facet in group.facets.items() if is_of_the_table(key, part)}
    )
    return group._replace(rows=rows, facets=facets)


def _places(*names: str) -> int:
    return 1 + sum(map(len, names)) // ORDINARY_NAME


def _read(kind: int, key: str, raw: bytes) -> tuple[Facet, FacetRow]:
    facet = facet_of(kind, key, raw)
    return facet, FacetRow(
        key_text(bare(key)), facet.hash, facet.body, int(facet.deleted), facet.problem
    )


class Halves:
    """A bounded mapping: what was not asked for since the younger half was last full is forgotten."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._size = 0
        self._young: dict[Any, Any] = {}
        self._old: dict[Any, Any] = {}

    def get(self, key: Any) -> Any:
        """The value, or None."""
        found = self._young.get(key)
        if found is None and (found := self._old.get(key)) is not None:
            self._young[key] = found
        return found

    def put(self, key: Any, value: T, size: int = 1) -> T:
        """Remember a value; gives it back."""
        self._size += size
        if self._size > self._capacity / 2:
            self._old, self._young, self._size = self._young, {}, size
        self._young[key] = value
        return value
