"""Entries within a bound of bytes.

Those that were used last as they are, the others packed (store/graph/packing.py).

Whoever changes a shelf holds its lock; whoever looks needs none.
"""

from collections.abc import Callable, Collection
from itertools import islice
from threading import Lock
from typing import Generic, Protocol, TypeVar

AT_ONCE = 64  # entries that are packed or dropped before the bytes are looked at again
KEY = 100  # bytes of an id and of its place in a dict


class Sized(Protocol):
    """What knows how many bytes it takes."""

    @property
    def size(self) -> int:
        """About how many."""


Entry = TypeVar("Entry", bound=Sized)


class Shelf(Generic[Entry]):
    """Entries by their ids.

    An open one is as it is used; it stays packed besides, if it was, as long as nothing changes it.
    """

    def __init__(
        self, lock: Lock, pack: Callable[[Entry], bytes], unpack: Callable[[int, bytes], Entry]
    ) -> None:
        self._lock = lock
        self._pack, self._unpack = pack, unpack
        self._open: dict[int, Entry] = {}
        self._bytes_by_id: dict[int, bytes] = {}
        self._count = 0
        self.open_bytes = 0
        self.packed_bytes = 0

    def __len__(self) -> int:
        """How many there are."""
        return self._count

    def __contains__(self, id_: int) -> bool:
        """Whether there is one under this id."""
        return id_ in self._open or id_ in self._bytes_by_id

    def among(self, ids: Collection[int]) -> dict[int, Entry]:
        """Those of these that there are; what was packed is open from now on."""
        entries = self._open
        found = {id_: entry for id_ in ids if (entry := entries.get(id_)) is not None}
        if len(found) < len(ids) and self._bytes_by_id:
            found |= self._opened([id_ for id_ in ids if id_ not in found])
        return found

    def _opened(self, ids: Collection[int]) -> dict[int, Entry]:
        by_id = self._bytes_by_id
        bodies = {id_: body for id_ in ids if (body := by_id.get(id_)) is not None}
        found = {id_: self._unpack(id_, body) for id_, body in bodies.items()}
        with self._lock:
            for id_, entry in found.items():
                if (
                    by_id.get(id_) is bodies[id_] and id_ not in self._open
                ):  # else it is another by now
                    self._open[id_] = entry
                    self.open_bytes += entry.size + KEY
        return found

    def peek(self, id_: int) -> Entry | None:
        """One of them, which stays as it is."""
        entry = self._open.get(id_)
        body = self._bytes_by_id.get(id_) if entry is None else None
        return entry if body is None else self._unpack(id_, body)

    def put(self, id_: int, entry: Entry) -> None:
        """Have this one under an id that none has."""
        self._count += 1
        self._open[id_] = entry
        self.open_bytes += entry.size + KEY

    def take(self, id_: int) -> Entry | None:
        """Take one away; what it was."""
        entry = self.peek(id_)
        self._count -= entry is not None
        if self._open.pop(id_, None) is not None and entry is not None:
            self.open_bytes -= entry.size + KEY
        if (body := self._bytes_by_id.pop(id_, None)) is not None:
            self.packed_bytes -= len(body) + KEY
        return entry

    def clear(self) -> None:
        """Have none any more."""
        self._open.clear()
        self._bytes_by_id.clear()
        self._count = self.open_bytes = self.packed_bytes = 0

    def pack_oldest(self) -> None:
        """Let some of the open ones be packed, those first that were opened first."""
        for id_ in list(islice(self._open, AT_ONCE)):
            entry = self._open[id_]
            if id_ not in self._bytes_by_id:
                self._bytes_by_id[id_] = body = self._pack(entry)
                self.packed_bytes += len(body) + KEY
            del self._open[id_]
            self.open_bytes -= entry.size + KEY

    def oldest(self) -> list[int]:
        """Some of those that are there longest."""
        return list(islice(self._bytes_by_id or self._open, AT_ONCE))


class JobsOfRuns:
    """Which jobs depend on a run: nearly always one, so a set is made where there are several."""

    def __init__(self) -> None:
        self._first: dict[int, int] = {}
        self._others: dict[int, set[int]] = {}

    @property
    def size(self) -> int:
        """About how many bytes it takes."""
        return KEY * len(self._first)

    def jobs(self, run: int) -> set[int]:
        """Those that depend on it."""
        first = self._first.get(run)
        return set() if first is None else {first, *self._others.get(run, ())}

    def add(self, run: int, job: int) -> None:
        """Note that a job does."""
        if self._first.setdefault(run, job) != job:
            self._others.setdefault(run, set()).add(job)

    def discard(self, run: int, job: int) -> None:
        """Note that it does not any more."""
        jobs = self.jobs(run) - {job}
        self._first.pop(run, None)
        self._others.pop(run, None)
        for other in jobs:
            self.add(run, other)

    def clear(self) -> None:
        """Forget all."""
        self._first.clear()
        self._others.clear()
