"""What reading one event teaches about the next: facets by their bytes, datasets by their names.

Only pure results are kept, so forgetting any of them changes nothing but the time. Bounded: when the younger half is full,
the older half goes.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import msgspec

from strandline.core.changes import AliasSet, DatasetAlias, DatasetSeen, FacetBody, FacetRow
from strandline.core.facets import DATASET, JOB, SHARED_SIZE, Catalog, Facet, facet_of
from strandline.core.naming import (
    Naming,
    bare,
    clean,
    id_of,
    is_delta_log,
    key_text,
    may_be_metadata_table,
    place_id,
    place_of,
    run_id_of,
)

T = TypeVar("T")

FACET_BYTES = 24 << 20
NAMES = 100_000
REMEMBERED_SIZE = 2_000
VOLATILE = frozenset(
    ("strandline_snapshot", "strandline_barrier", "outputStatistics", "inputStatistics", "version", "nominalTime")
)
_EMPTY = frozenset((b"", b"{}", b"null"))


class Said(dict[str, Facet]):
    """The usable facets of one entity in one event: neither deleted nor quarantined."""

    def value(self, key: str) -> Any:
        """The modelled content of a facet, or None."""
        facet = self.get(key)
        return None if facet is None else facet.value


class Group(NamedTuple):
    """All facets of one entity in one event, as they came (`raw`) and read. redacted: something secret was taken out."""

    raw: bytes
    rows: tuple[FacetRow, ...]
    bodies: tuple[FacetBody, ...]
    said: Said
    redacted: bool


class Kept(NamedTuple):
    """A facet with its rows; `body` is None where it stands in `row`."""

    facet: Facet
    row: FacetRow
    body: FacetBody | None


class Dataset(NamedTuple):
    """A dataset's id, its row without times, and as far as them; whether it is Delta's log; whether its name had a secret."""

    id: int
    mention: DatasetSeen
    named: tuple[int, int, str, str, int, int, str, str, str]
    noise: bool
    redacted: bool


class Sighting(NamedTuple):
    """A dataset with the facets that an event gave it; `aliases` are the names that its symlinks facet states."""

    known: Dataset
    group: Group
    aliases: AliasSet | None


NOTHING_SAID = Said()
NO_GROUP = Group(b"", (), (), NOTHING_SAID, False)
_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw])


class Memo:
    """The memory of one reader of events; not for several threads at once."""

    def __init__(self, naming: Naming | None = None) -> None:
        self.naming = naming or Naming()
        self._groups = Halves(FACET_BYTES)
        self._facets = Halves(FACET_BYTES)
        self._sightings = Halves(FACET_BYTES)
        self._last = Halves(FACET_BYTES)
        self._datasets = Halves(NAMES)
        self._jobs = Halves(NAMES)
        self._runs = Halves(NAMES)
        self._derived = Halves(NAMES)

    def group(self, kind: int, raw: bytes) -> Group:
        """The facets in the bytes of a JSON object. Those of jobs come again and again, as a whole."""
        if raw in _EMPTY:
            return NO_GROUP
        if kind != JOB:
            return self._group(kind, raw)
        known: Group | None = self._groups.get(raw)
        return known or self._groups.put(raw, self._group(kind, raw), len(raw) + 500)

    def _group(self, kind: int, raw: bytes) -> Group:
        found = [(key, self._kept(kind, key, bytes(one))) for key, one in _MEMBERS.decode(raw).items()]
        said = Said({key: kept.facet for key, kept in found if kept.facet.value is not None})
        rows = tuple([kept.row for _, kept in found])
        bodies = tuple([kept.body for _, kept in found if kept.body is not None])
        return Group(raw, rows, bodies, said, any(kept.facet.redacted for _, kept in found))

    def _kept(self, kind: int, key: str, raw: bytes) -> Kept:
        """The facet in these bytes; only what is large enough to come again is remembered."""
        if key in VOLATILE and len(raw) < REMEMBERED_SIZE:
            return _kept_of(kind, key, raw)
        known: Kept | None = self._facets.get((kind, key, raw))
        if known is None:
            known = self._facets.put((kind, key, raw), _kept_of(kind, key, raw), 2 * len(raw) + 500)
        return known

    def sighting(self, namespace: str, name: str, raw: bytes, *, streamed: bool) -> Sighting:
        """The dataset of this name with the facets in these bytes: most come again and again.

        Mostly as the last time: comparing with that takes a tenth of the time of looking the bytes up.
        """
        last: Sighting | None = self._last.get((namespace, name, streamed))
        if last is not None and last.group.raw == raw:
            return last
        key = (namespace, name, raw, streamed)
        known: Sighting = self._sightings.get(key) or self._sightings.put(key, self._sighting(*key), len(raw) + 1000)
        return self._last.put((namespace, name, streamed), known, len(raw) + 1000)

    def _sighting(self, namespace: str, name: str, raw: bytes, streamed: bool) -> Sighting:
        group = self.group(DATASET, raw)
        catalog: Catalog | None = group.said.value("catalog")
        iceberg = catalog is not None and catalog.is_iceberg and may_be_metadata_table(name)
        known = self.dataset(namespace, name, iceberg=iceberg, streamed=streamed)
        symlinks = group.said.get("symlinks")
        return Sighting(known, group, self._aliases(known.id, symlinks) if symlinks else None)

    def _aliases(self, dataset_id: int, symlinks: Facet) -> AliasSet:
        named = [(self.dataset(one.namespace, one.name), one.type) for one in symlinks.value.identifiers]
        others = [(alias, type_) for alias, type_ in named if alias.id != dataset_id]
        aliases = tuple(DatasetAlias(dataset_id, alias.id, key_text(type_.upper())) for alias, type_ in others)
        return AliasSet(dataset_id, symlinks.hash, aliases, tuple(alias.mention for alias, _ in others))

    def dataset(self, namespace: str, name: str, *, iceberg: bool = False, streamed: bool = False) -> Dataset:
        """The dataset of this name."""
        key = (namespace, name, iceberg, streamed)
        known: Dataset | None = self._datasets.get(key)
        if known is None:
            known = self._datasets.put(key, self._dataset(*key))
        return known

    def run(self, run_id: str, namespace: str, job: str) -> int:
        """The id of a run."""
        known: int | None = self._runs.get((run_id, namespace, job))
        return self._runs.put((run_id, namespace, job), run_id_of(run_id, namespace, job)) if known is None else known

    def job(self, namespace: str, name: str) -> tuple[int, int, str, str]:
        """Id, id of the namespace, namespace and name of a job."""
        known: tuple[int, int, str, str] | None = self._jobs.get((namespace, name))
        if known is None:
            kept = clean(bare(namespace)), clean(bare(name))
            known = self._jobs.put((namespace, name), (id_of("job", *kept), id_of("namespace", kept[0]), *kept))
        return known

    def derived(self, key: tuple[Any, ...], make: Callable[[], T]) -> T:
        """What `make` makes, which has to be a pure function of the key."""
        known: T | None = self._derived.get(key)
        return self._derived.put(key, make()) if known is None else known

    def _dataset(self, namespace: str, name: str, iceberg: bool, streamed: bool) -> Dataset:
        kept = self.naming.name_of(namespace, name, iceberg=iceberg, streamed=streamed)
        place = place_of(*kept)
        own = id_of("dataset", *kept)
        mention = DatasetSeen(own, id_of("namespace", kept[0]), *kept, own, place_id(place), *place, None, None, 0)
        redacted = bare(namespace) != namespace or bare(name) != name
        return Dataset(own, mention, mention[:-3], is_delta_log(name), redacted)


def _kept_of(kind: int, key: str, raw: bytes) -> Kept:
    facet = facet_of(kind, key, raw)
    shared = len(facet.body) > SHARED_SIZE
    row = FacetRow(key_text(key), facet.hash, None if shared else facet.body, int(facet.deleted), facet.problem)
    return Kept(facet, row, FacetBody(facet.hash, facet.body) if shared else None)


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
