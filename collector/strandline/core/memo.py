"""What reading one event teaches about the next: facets by their bytes, datasets by their names.

Only pure results are kept, so forgetting any of them changes nothing but the time. Bounded: when the younger half is full,
the older half goes.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import msgspec

from strandline.core.changes import DatasetSeen, FacetBody, FacetRow
from strandline.core.facets import DATASET, JOB, SHARED_SIZE, Facet, facet_of
from strandline.core.naming import Naming, clean, id_of, is_delta_log, key_text, place_id, place_of, run_id_of
from strandline.core.redaction import redact_text

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
    """All facets of one entity in one event. redacted: something secret was taken out."""

    hash: bytes
    rows: tuple[FacetRow, ...]
    bodies: tuple[FacetBody, ...]
    said: Said
    redacted: bool


class Dataset(NamedTuple):
    """A dataset's id, its row but for the times, whether it is Delta's log, whether its name had a secret."""

    id: int
    mention: DatasetSeen
    noise: bool
    redacted: bool


NO_GROUP = Group(b"", (), (), Said(), False)
_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw])


class Memo:
    """The memory of one reader of events; not for several threads at once."""

    def __init__(self, naming: Naming | None = None) -> None:
        self.naming = naming or Naming()
        self._groups = Halves(FACET_BYTES)
        self._facets = Halves(FACET_BYTES)
        self._datasets = Halves(NAMES)
        self._jobs = Halves(NAMES)
        self._runs = Halves(NAMES)
        self._derived = Halves(NAMES)

    def group(self, kind: int, raw: bytes) -> Group:
        """The facets in the bytes of a JSON object. Those of jobs and datasets come again and again, as a whole."""
        if raw in _EMPTY:
            return NO_GROUP
        if kind not in (JOB, DATASET):
            return self._group(kind, raw)
        known: Group | None = self._groups.get((kind, raw))
        return known or self._groups.put((kind, raw), self._group(kind, raw), len(raw) + 500)

    def _group(self, kind: int, raw: bytes) -> Group:
        facets = [(key, self.facet(kind, key, bytes(one))) for key, one in _MEMBERS.decode(raw).items()]
        rows, bodies = [], []
        hashes: list[bytes] = []
        for key, facet in facets:
            shared = len(facet.body) > SHARED_SIZE
            if shared:
                bodies.append(FacetBody(facet.hash, facet.body))
            body = None if shared else facet.body
            rows.append(FacetRow(key_text(key), facet.hash, body, int(facet.deleted), facet.problem))
            hashes += (key.encode(), facet.hash)
        said = Said((key, facet) for key, facet in facets if facet.value is not None)
        redacted = any(facet.redacted for _, facet in facets)
        return Group(b"\0".join(hashes), tuple(rows), tuple(bodies), said, redacted)

    def facet(self, kind: int, key: str, raw: bytes) -> Facet:
        """The facet in these bytes; only what is large enough to come again is remembered."""
        if len(raw) < REMEMBERED_SIZE and key in VOLATILE:
            return facet_of(kind, key, raw)
        known: Facet | None = self._facets.get((kind, key, raw))
        if known is None:
            known = self._facets.put((kind, key, raw), facet_of(kind, key, raw), 2 * len(raw) + 500)
        return known

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
            kept = clean(redact_text(namespace)), clean(redact_text(name))
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
        redacted = redact_text(namespace) != namespace or redact_text(name) != name
        return Dataset(own, mention, is_delta_log(name), redacted)


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
