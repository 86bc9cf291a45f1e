"""One bounded memory for what reading an event teaches about the next.

Only pure results are kept, so forgetting any of them changes nothing but the time.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, NamedTuple, TypeVar

import msgspec

from strandline.core.changes.rows import DatasetSeen, JobSeen
from strandline.core.openlineage.events import emptied
from strandline.core.openlineage.facets import NO_FACETS, Facet, Facets, facet_of
from strandline.core.openlineage.names import (
    Naming,
    id_of,
    namespace_id,
    place_id,
    place_of,
    run_id_of,
    shared_run_id_of,
)
from strandline.core.redaction.json import has_secret

T = TypeVar("T")

RESULT_BYTES = 112 << 20
LAST_BYTES = 32 << 20
LARGE = 1 << 20  # larger results are not remembered: one such event would drive out all others
NAMES = 300_000
ORDINARY_NAME = 250  # a longer name takes the place of several
REMEMBERED_SIZE = 2_000
MOST_SHARED = 100_000
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


class BoundedCache:
    """A bounded mapping in two halves: a full younger half takes the place of the older one."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._size = 0
        self._young: dict[Any, Any] = {}
        self._old: dict[Any, Any] = {}

    def get(self, key: Any) -> Any:
        """Return the value, or None."""
        value = self._young.get(key)
        if value is None and (value := self._old.get(key)) is not None:
            self._young[key] = value
        return value

    def put(self, key: Any, value: T, size: int = 1) -> T:
        """Remember a value and return it."""
        self._size += size
        if self._size > self._capacity / 2:
            self._old, self._young, self._size = self._young, {}, size
        self._young[key] = value
        return value


DatasetName = tuple[str, str]  # namespace and name as stored


class NameBefore(NamedTuple):
    """A name that a table had until then, and that is another's now; `stored` is the former one."""

    name: DatasetName
    until: int
    renamed_to: DatasetName
    stored: DatasetName


class Memory:
    """The memory of one reader of events; not for several threads at once.

    _results: by the content that they were made of. _last: by the place where they came last.
    _names: rows of jobs and datasets without times, and ids of runs, by their names.
    shared_runs: the ids of runs that several jobs reported, as far as this reader met them.
    now: the memory that names datasets as they are called today; mostly this one.
    """

    def __init__(
        self,
        naming: Naming | None = None,
        now: "Memory | None" = None,
        called: Mapping[DatasetName, DatasetName] | None = None,
    ) -> None:
        self.now = now or self
        self.names_before: list[NameBefore] | None = None  # None: not loaded yet
        self._called = called or {}
        self._past: Memory | None = None  # of the moment that was asked for last
        self.naming = naming or Naming()
        self._results = BoundedCache(RESULT_BYTES)
        self._last = BoundedCache(LAST_BYTES)
        self._names = BoundedCache(NAMES)
        self.shared_runs: frozenset[int] = frozenset()
        self.shared_turn = 0  # raised with each change of shared_runs

    def share_runs(self, ids: Collection[int]) -> None:
        """From now on name these runs by their job as well."""
        if len(self.shared_runs) > MOST_SHARED:
            self.shared_runs = frozenset()
        self.shared_runs |= frozenset(ids)
        self.shared_turn += 1

    def unshare_runs(self, ids: Collection[int]) -> None:
        """Name these runs by their ids alone again."""
        if ids:
            self.shared_runs -= frozenset(ids)
            self.shared_turn += 1

    def learn_names_before(self, names: Iterable[NameBefore] | None) -> None:
        """From now on name datasets in earlier events by what their names meant then."""
        self._past = None
        self.names_before = (
            None if names is None else sorted(names, key=lambda before: before.until)
        )

    def at(
        self, moment: int, renames: Collection[tuple[DatasetName, DatasetName]] = ()
    ) -> "Memory":
        """Return the memory for an event of this moment that states these renames.

        A name before a rename means what was renamed, whenever the event came.
        """
        called: dict[DatasetName, DatasetName] = {}
        for before in reversed(self.names_before or ()):
            if before.until < moment:
                break
            if moment < before.until or (before.name, before.renamed_to) in renames:
                called[before.name] = before.stored
        if not called:
            return self
        if self._past is None or self._past._called != called:
            self._past = Memory(self.naming, self, called)
        self._past.shared_runs, self._past.shared_turn = self.shared_runs, self.shared_turn
        return self._past

    def meaning_of(self, name: DatasetName) -> DatasetName:
        """Return the dataset that a stored name means in this memory."""
        return self._called.get(name, name)

    def result(self, key: tuple[Any, ...], make: Callable[[], T], size: Callable[[T], int]) -> T:
        """Return what `make`, a pure function of the key, makes; `size` is in bytes."""
        cached: T | None = self._results.get(key)
        if cached is not None:
            return cached
        made = make()
        bytes_ = size(made)
        return made if bytes_ > LARGE else self._results.put(key, made, bytes_)

    def last(
        self,
        place: tuple[Any, ...],
        content: tuple[Any, ...],
        make: Callable[[], T],
        size: Callable[[T], int],
    ) -> T:
        """Return what `make`, a pure function of the content, makes.

        Mostly it is the content that was at this place last. Comparing it with that one takes a
        tenth of the time of looking it up.
        """
        last: tuple[Any, T] | None = self._last.get(place)
        if last is not None and last[0] == content:
            return last[1]
        made = self.result(content, make, size)
        bytes_ = size(made)
        if bytes_ <= LARGE:
            self._last.put(place, (content, made), bytes_)
        return made

    def facet(self, kind: int, key: str, raw: bytes) -> Facet:
        """Return the facet in these bytes. Only what may come again is remembered."""
        if key in VOLATILE and len(raw) < REMEMBERED_SIZE:
            return facet_of(kind, key, raw)
        return self.result(
            ("facet", kind, key, raw),
            lambda: facet_of(kind, key, raw),
            lambda _: 2 * len(raw) + 500,
        )

    def facets(self, kind: int, raw: bytes) -> Facets:
        """Return the facets in the bytes of a JSON object."""
        if raw in _EMPTY:
            return NO_FACETS
        members = {key: bytes(facet) for key, facet in _MEMBERS.decode(raw).items()}
        by_key = {key: self.facet(kind, key, member) for key, member in members.items()}
        # A facet that comes twice is read once, and may have a secret in what is not read.
        rest = emptied(raw, list(members.values()))
        return Facets(by_key, redacted=has_secret(rest))

    def dataset(
        self, namespace: str, name: str, *, iceberg: bool = False, streamed: bool = False
    ) -> DatasetSeen:
        """Return the row of the dataset of this name, without times."""
        key = (namespace, name, iceberg, streamed)
        cached: DatasetSeen | None = self._names.get(key)
        if cached is not None:
            return cached
        stored = self.naming.name_of(namespace, name, iceberg=iceberg, streamed=streamed)
        stored = self._called.get(stored, stored)
        place, id_ = place_of(*stored), id_of("dataset", *stored)
        dataset = DatasetSeen(
            id_, namespace_id(stored[0]), *stored, id_, place_id(place), *place, None, None, 0
        )
        return self._names.put(key, dataset, _places(namespace, name))

    def job(self, namespace: str, name: str) -> JobSeen:
        """Return the row of the job of this name, without times."""
        cached: JobSeen | None = self._names.get((namespace, name))
        if cached is not None:
            return cached
        stored = self.naming.job_name_of(namespace, name)
        job = JobSeen(id_of("job", *stored), namespace_id(stored[0]), *stored, None, None)
        return self._names.put((namespace, name), job, _places(namespace, name))

    def run(self, run_id: str, namespace: str, job: str) -> int:
        """Return the id of a run; the names are its job's in the event."""
        key = (run_id, namespace, job)
        id_: int | None = self._names.get(key)
        if id_ is None:
            id_ = self._names.put(key, run_id_of(run_id, namespace, job), _places(*key))
        return shared_run_id_of(id_, namespace, job) if id_ in self.shared_runs else id_


def _places(*names: str) -> int:
    return 1 + sum(map(len, names)) // ORDINARY_NAME
