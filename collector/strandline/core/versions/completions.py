"""The barriers that one table completed, with the last snapshot of each."""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from math import inf

import msgspec

from strandline.core.versions.facts import Job, Table, Used


class Completion(msgspec.Struct, frozen=True, gc=False):
    """snap(T, b) with how it came about: who made it, from what, and when; `derived`.

    From what was read, not stated.
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
    incarnation: int | None = None

    def follows(self, other: "Completion") -> bool:
        """Whether this is the later of two snapshots that carry one barrier (an overwrite makes two).

        One snapshot commits once: a job that read it may tell of it before its own commit does, with a later time.
        """
        if self.derived or other.derived:
            return self._precedes(other)
        if self.snapshot == other.snapshot:
            return self.committed < other.committed
        if self.parent is not None and self.parent == other.snapshot:
            return True
        if other.parent is not None and other.parent == self.snapshot:
            return False
        return (self.committed, self.snapshot) > (other.committed, other.snapshot)

    def _precedes(self, other: "Completion") -> bool:
        """Return whether this derived snapshot counts before another one.

        A stated one counts before any; of micro-batches the first that ends at the barrier, with
        the last snapshot that it wrote.
        """
        if self.derived != other.derived:
            return other.derived
        later = (self.committed, self.snapshot) > (other.committed, other.snapshot)
        same_step = self.batch is not None and (self.query, self.batch) == (
            other.query,
            other.batch,
        )
        return later if same_step else not later and self.snapshot != other.snapshot


@dataclass(slots=True)
class Completions:
    """done(T): the barriers that a table completed, with their last snapshot each.

    Those of long ago are forgotten.

    `carried`: the barriers that each of these snapshots carries. `withheld`: what was stated and
    other facts contradict. `overwritten`: when the other snapshots that carry a barrier were
    committed; few barriers have such. `fenced`: runs of the table's writer that were over when it
    was rolled back. `forgotten`: barriers before this one are, for good.
    """

    of: dict[int, Completion] = field(default_factory=dict)
    order: list[int] = field(default_factory=list)
    carried: dict[str, list[int]] = field(default_factory=dict)
    withheld: dict[int, list[Completion]] = field(default_factory=dict)
    overwritten: dict[int, dict[str, float]] = field(default_factory=dict)
    discarded: frozenset[str] = frozenset()
    fenced: frozenset[str] = frozenset()
    rolled_back_at: float = -inf
    incarnation: int = 1
    forgotten: float = -inf

    def __contains__(self, barrier: int) -> bool:
        return barrier in self.of

    @property
    def last(self) -> int | None:
        """The greatest barrier, or None."""
        return self.order[-1] if self.order else None

    def takes(self, completion: Completion) -> bool:
        """Whether it is of the time since the last rollback: facts of before are not taken.

        The runs that were known to be over tell it whatever their clocks say, and so does the
        generation that a commit carries; a run that was not heard of before may have come back or
        may only be late (a spool that is sent at the next start), so without a generation its times
        decide.
        """
        if completion.snapshot in self.discarded or completion.run in self.fenced:
            return False
        if completion.incarnation is not None:
            return completion.incarnation >= self.incarnation
        return completion.committed > self.rolled_back_at

    def add(self, completion: Completion) -> bool:
        """Take a completion in; True when its barrier is new."""
        if not self.takes(completion):
            return False
        before = self.of.get(completion.barrier)
        if before is None:
            self._insert(completion.barrier)
            self.of[completion.barrier] = completion
            self._carry(completion)
            return True
        if completion.follows(before):
            self._drop(before)
            self.of[completion.barrier], completion = completion, before
            self._carry(self.of[before.barrier])
        if completion.snapshot != self.of[completion.barrier].snapshot and not completion.derived:
            others = self.overwritten.setdefault(completion.barrier, {})
            others[completion.snapshot] = min(
                completion.committed, others.get(completion.snapshot, inf)
            )
        return False

    def retract(self, barrier: int) -> None:
        """Take a barrier back: what it was derived from, or stated to be made from, is not so."""
        self._drop(self.of.pop(barrier))
        del self.order[bisect_left(self.order, barrier)]

    def carries(self, snapshot: str, barrier: int) -> bool:
        """Whether a snapshot is, or was before an overwrite, the one of a barrier."""
        return self.of[barrier].snapshot == snapshot or snapshot in self.overwritten.get(
            barrier, ()
        )

    def first(self, barrier: int) -> float:
        """When the first of the snapshots that carry `barrier` was committed."""
        return min((self.of[barrier].committed, *self.overwritten.get(barrier, {}).values()))

    def after(self, barrier: int | None) -> Iterator[int]:
        """The barriers after `barrier` (after none: all), ascending."""
        return iter(self.order[0 if barrier is None else bisect_right(self.order, barrier) :])

    def up_to(self, barrier: int) -> Iterator[int]:
        """The barriers up to and with `barrier`, newest first."""
        return reversed(self.order[: bisect_right(self.order, barrier)])

    def cut_back(self, barrier: int, at: float, over: Collection[str], incarnation: int) -> None:
        """Forget what came after `barrier`, for good.

        Its snapshots, and the runs `over`, are never taken again.

        Nor is a commit of a generation before this one.

        A base table that had nothing new has one snapshot under several barriers: what an earlier
        one carries stays.
        """
        for later in list(self.after(barrier)):
            self._drop(self.of[later])
            self.discarded |= {self.of.pop(later).snapshot, *self.overwritten.pop(later, ())}
        for later in [one for one in self.overwritten if one > barrier]:
            self.discarded |= self.overwritten.pop(later).keys()
        for later in [one for one in self.withheld if one > barrier]:
            self.discarded |= {held.snapshot for held in self.withheld.pop(later)}
        del self.order[bisect_right(self.order, barrier) :]
        self.discarded -= {kept.snapshot for kept in self.of.values()}
        self.fenced |= set(over)
        self.rolled_back_at, self.incarnation = at, incarnation
        self.forgotten = min(self.forgotten, barrier + 1)  # what comes after it is done anew

    def forget(self, before: int, least: int) -> None:
        """Forget the barriers before one, but for the last `least`.

        Nobody asks for them any more.
        """
        place = max(0, min(bisect_left(self.order, before), len(self.order) - least))
        for barrier in self.order[:place]:
            self._drop(self.of.pop(barrier))
            self.overwritten.pop(barrier, None)
            self.forgotten = barrier + 1
        del self.order[:place]
        self.withheld = {one: held for one, held in self.withheld.items() if one >= before}

    def _carry(self, completion: Completion) -> None:
        self.carried.setdefault(completion.snapshot, []).append(completion.barrier)

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


def greatest_common(histories: list[Completions]) -> int | None:
    """The greatest barrier in all of `histories`.

    Max of the intersection, not the minimum of the maxima.
    """
    if not histories:
        return None
    fewest = min(histories, key=lambda done: len(done.order))
    rest = [done for done in histories if done is not fewest]
    return next(
        (barrier for barrier in reversed(fewest.order) if all(barrier in done for done in rest)),
        None,
    )


def snapshots_at(tables: Mapping[Table, Completions], barrier: int) -> dict[Table, str]:
    """snap(T, barrier) of each table that completed it."""
    return {table: done.of[barrier].snapshot for table, done in tables.items() if barrier in done}
