"""The barriers that one table completed, with the snapshots that carry each."""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from math import inf

import msgspec

from strandline.core.versions.facts import Job, Table, Used


class Completion(msgspec.Struct, frozen=True, gc=False):
    """A snapshot that carries a barrier: its job, what it was made from, and when.

    `derived`: the barrier follows from what was read; else the commit states it.
    """

    barrier: int
    snapshot: str
    parent: str | None
    job: Job | None
    started: float
    committed: float
    used: tuple[Used, ...] = ()
    batch: int | None = None
    run: str = ""
    derived: bool = False
    query: str = ""
    generation: int | None = None

    def follows(self, other: "Completion") -> bool:
        """Return whether this is the later of two snapshots that carry one barrier."""
        if self.parent is not None and self.parent == other.snapshot:
            return True
        if other.parent is not None and other.parent == self.snapshot:
            return False
        return (self.committed, self.snapshot) > (other.committed, other.snapshot)

    def tells_more(self, other: "Completion") -> bool:
        """Return whether this says more of its snapshot than another record of it.

        A commit that states its barrier does, then the earlier record: a job that read the snapshot
        may tell of it with a later time.
        """
        if self.derived != other.derived:
            return other.derived
        return self.committed < other.committed


@dataclass(slots=True)
class Completions:
    """done(T): the barriers that a table completed, with the last snapshot that carries each.

    Old barriers are forgotten.

    `earlier`: the other snapshots that carry a barrier, in commit order; few barriers have such.
    `carried`: the barriers that each snapshot carries. `withheld`: what was stated and other facts
    contradict. `fenced`: runs of the table's writer that were over when it was rolled back.
    `forgotten`: barriers before this one are, for good.
    """

    of: dict[int, Completion] = field(default_factory=dict)
    order: list[int] = field(default_factory=list)
    earlier: dict[int, list[Completion]] = field(default_factory=dict)
    carried: dict[str, list[int]] = field(default_factory=dict)
    withheld: dict[int, list[Completion]] = field(default_factory=dict)
    discarded: frozenset[str] = frozenset()
    fenced: frozenset[str] = frozenset()
    rolled_back_at: float = -inf
    generation: int = 1
    forgotten: float = -inf

    def __contains__(self, barrier: int) -> bool:
        return barrier in self.of

    @property
    def last(self) -> int | None:
        """The greatest barrier, or None."""
        return self.order[-1] if self.order else None

    def takes(self, completion: Completion) -> bool:
        """Return whether it is of the time since the last rollback: facts of before are not taken.

        The runs that were known to be over tell it whatever their clocks say, and so does the
        generation that a commit carries. A run that was not heard of before may have come back, or
        may only be late (a spool that is sent at the next start). Without a generation its times
        decide.
        """
        if completion.snapshot in self.discarded or completion.run in self.fenced:
            return False
        if completion.generation is not None:
            return completion.generation >= self.generation
        return completion.committed > self.rolled_back_at

    def candidates(self, barrier: int) -> list[Completion]:
        """Return the snapshots that carry a barrier, in commit order."""
        if barrier not in self.of:
            return []
        return [*self.earlier.get(barrier, ()), self.of[barrier]]

    def add(self, completion: Completion) -> bool:
        """Take a completion in; True when its snapshot is a new candidate of the barrier."""
        if not self.takes(completion):
            return False
        barrier = completion.barrier
        if barrier not in self.of:
            self._insert(barrier)
            self.of[barrier] = completion
            self.carried.setdefault(completion.snapshot, []).append(barrier)
            return True
        candidates = self.candidates(barrier)
        known = next(
            (candidate for candidate in candidates if candidate.snapshot == completion.snapshot),
            None,
        )
        if known is None:
            self.carried.setdefault(completion.snapshot, []).append(barrier)
        elif completion.tells_more(known):
            candidates.remove(known)
        else:
            return False
        place = len(candidates)
        while place and not completion.follows(candidates[place - 1]):
            place -= 1
        candidates.insert(place, completion)
        self._put(barrier, candidates)
        return known is None

    def retract(self, completion: Completion) -> None:
        """Take a candidate back: what it was derived from, or stated to be made from, is not so."""
        barrier = completion.barrier
        candidates = [
            candidate for candidate in self.candidates(barrier) if candidate is not completion
        ]
        self._drop(completion)
        if candidates:
            self._put(barrier, candidates)
        else:
            del self.of[barrier]
            del self.order[bisect_left(self.order, barrier)]

    def carries(self, snapshot: str, barrier: int) -> bool:
        """Return whether a snapshot is a candidate of a barrier."""
        return barrier in self.carried.get(snapshot, ())

    def first(self, barrier: int) -> float:
        """Return when the first of the snapshots that carry `barrier` was committed."""
        return min(candidate.committed for candidate in self.candidates(barrier))

    def after(self, barrier: int | None) -> Iterator[int]:
        """The barriers after `barrier` (after none: all), ascending."""
        return iter(self.order[0 if barrier is None else bisect_right(self.order, barrier) :])

    def up_to(self, barrier: int) -> Iterator[int]:
        """The barriers up to and with `barrier`, newest first."""
        return reversed(self.order[: bisect_right(self.order, barrier)])

    def cut_back(self, barrier: int, at: float, over: Collection[str], generation: int) -> None:
        """Forget what came after `barrier`, for good.

        Its snapshots, and the runs `over`, are never taken again, nor is a commit of a generation
        before this one. A base table that had nothing new has one snapshot under several barriers:
        what an earlier one carries stays.
        """
        for later in list(self.after(barrier)):
            self.discarded |= {candidate.snapshot for candidate in self.candidates(later)}
            self._remove(later)
        for later in [one for one in self.withheld if one > barrier]:
            self.discarded |= {held.snapshot for held in self.withheld.pop(later)}
        del self.order[bisect_right(self.order, barrier) :]
        self.discarded -= {completion.snapshot for completion in self.of.values()}
        self.fenced |= set(over)
        self.rolled_back_at, self.generation = at, generation
        self.forgotten = min(self.forgotten, barrier + 1)  # what comes after it is done anew

    def forget(self, before: int, least: int) -> None:
        """Forget the barriers before one, except the last `least`.

        No question needs them any more.
        """
        place = max(0, min(bisect_left(self.order, before), len(self.order) - least))
        for barrier in self.order[:place]:
            self._remove(barrier)
            self.forgotten = barrier + 1
        del self.order[:place]
        self.withheld = {
            barrier: held for barrier, held in self.withheld.items() if barrier >= before
        }

    def last_before(self, at: float) -> int | None:
        """Return the greatest barrier with a snapshot from before a moment or from a cut.

        None if there is none.
        """
        return next(
            (
                barrier
                for barrier in reversed(self.order)
                if any(
                    candidate.committed < at or candidate.job is None
                    for candidate in self.candidates(barrier)
                )
            ),
            None,
        )

    def drop_up_to(self, barrier: int) -> list[int]:
        """Drop the barriers up to one, and return those that there were."""
        place = bisect_right(self.order, barrier)
        dropped = self.order[:place]
        for one in dropped:
            self._remove(one)
        del self.order[:place]
        self.withheld = {one: held for one, held in self.withheld.items() if one > barrier}
        return dropped

    def _put(self, barrier: int, candidates: list[Completion]) -> None:
        *earlier, self.of[barrier] = candidates
        if earlier:
            self.earlier[barrier] = earlier
        else:
            self.earlier.pop(barrier, None)

    def _remove(self, barrier: int) -> None:
        for candidate in self.candidates(barrier):
            self._drop(candidate)
        self.earlier.pop(barrier, None)
        del self.of[barrier]

    def _drop(self, completion: Completion) -> None:
        barriers = self.carried[completion.snapshot]
        barriers.remove(completion.barrier)
        if not barriers:
            del self.carried[completion.snapshot]

    def _insert(self, barrier: int) -> None:
        if not self.order or barrier > self.order[-1]:
            self.order.append(barrier)
        else:
            insort(self.order, barrier)


def greatest_common(histories: list[Completions], up_to: float = inf) -> int | None:
    """The greatest barrier, `up_to` at most, in all of `histories`.

    Max of the intersection, not the minimum of the maxima.
    """
    if not histories:
        return None
    fewest = min(histories, key=lambda done: len(done.order))
    rest = [done for done in histories if done is not fewest]
    for barrier in reversed(fewest.order):
        if barrier <= up_to and all(barrier in done for done in rest):
            return barrier
    return None


def snapshots_at(tables: Mapping[Table, Completions], barrier: int) -> dict[Table, str]:
    """snap(T, barrier) of each table that completed it."""
    return {table: done.of[barrier].snapshot for table, done in tables.items() if barrier in done}
