"""The snapshots of a table that are expirable.

The prefix of its history that is older than every pin.

A pin says from which snapshot on somebody needs the table, and why. Only a prefix is expirable, for
a job that starts at a pin reads everything after it; the same prefix is safe to compact. Every kept
snapshot is given with its reason.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from strandline.core.versions.completions import Completions
from strandline.core.versions.facts import Table
from strandline.core.versions.group_jobs import GroupJob
from strandline.core.versions.members import version
from strandline.core.versions.model import Model, descendants


@dataclass(frozen=True, slots=True)
class Pin:
    """Somebody needs a table from `snapshot` on (None: from its beginning)."""

    snapshot: str | None
    reason: str


@dataclass(frozen=True, slots=True)
class Kept:
    """A snapshot that stays, and why."""

    snapshot: str
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Expiry:
    """A main ancestry (oldest first) that is split at `first`, its oldest pin.

    `others` are outside it, always kept.

    `reasons` are those of pinned snapshots, by their places. A table has 100,000 snapshots: nothing
    is made of each here.
    """

    ancestry: Sequence[str]
    first: int
    reasons: Mapping[int, Sequence[str]]
    others: Sequence[str] = ()

    @property
    def expirable(self) -> Sequence[str]:
        """The expirable snapshots, oldest first."""
        return self.ancestry[: self.first]

    @property
    def kept_count(self) -> int:
        """The number of pinned snapshots."""
        return len(self.ancestry) - self.first + len(self.others)

    def kept(self) -> Iterator[Kept]:
        """Yield the pinned snapshots, oldest first, each with its reasons.

        Then what is outside the main ancestry.
        """
        after: tuple[str, ...] = ()
        for place in range(self.first, len(self.ancestry)):
            own = self.reasons.get(place)
            if own is not None:
                after = (f"comes after {self.ancestry[place]}, which is pinned: {own[0]}",)
            yield Kept(self.ancestry[place], tuple(own) if own is not None else after)
        for snapshot in self.others:
            yield Kept(snapshot, ("not in the main ancestry: nothing is known of its readers",))


def expiry(ancestry: Sequence[str], pins: Iterable[Pin], others: Sequence[str] = ()) -> Expiry:
    """Split the main ancestry (oldest first) at its oldest pin.

    A table without snapshots has nothing to expire or to pin.

    >>> expiry(["s1", "s2", "s3"], [Pin("s2", "lease 7")]).expirable
    ['s1']
    """
    if not ancestry:
        return Expiry(ancestry, 0, {}, others)
    wanted = list(pins)
    names = {pin.snapshot for pin in wanted}
    position = {snapshot: place for place, snapshot in enumerate(ancestry) if snapshot in names}
    reasons: dict[int, list[str]] = {}
    for pin in wanted:
        reasons.setdefault(position.get(pin.snapshot or "", 0), []).append(pin.reason)
    reasons.setdefault(len(ancestry) - 1, []).append("the latest snapshot")
    return Expiry(ancestry, min(reasons), reasons, others)


def pins(model: Model, table: Table, keep_barriers: int) -> list[Pin]:
    """Return the model's own pins of a table.

    V, the barriers kept for rollback, the places of its readers. Leases of readers come from the
    store, besides these.
    """
    if not model.is_tracked(table):
        return [Pin(None, f"{model.why_untracked(table)}: nothing is known of its readers")]
    found = [_version_pin(model, table), _rollback_pin(model.done[table], keep_barriers)]
    found.extend(_group_pin(model, table))
    for job in sorted(model.readers.get(table, ())):
        place = model.places[job]
        if table not in place.writes:
            found.append(_place_pin(model, table, place))
    found.extend(_batch_pins(model, table))
    return found


def _batch_pins(model: Model, table: Table) -> Iterator[Pin]:
    """Pin the last barrier of each batch table in all tables that it was made from."""
    for made in descendants(model, table):
        last = model.done[made].last
        if made != table and last is not None and model.is_batch_table(made):
            snapshot = model.done[table].of[last].snapshot if last in model.done[table] else None
            yield Pin(snapshot, f"{model.call(made)} was made at barrier {last}")


def _version_pin(model: Model, table: Table) -> Pin:
    barrier = version(model, [table])
    if barrier is None:
        return Pin(None, "the tables that depend on each other have no version yet")
    first = model.done[table].candidates(barrier)[0]
    return Pin(first.snapshot, f"barrier {barrier} is the strong version")


def _group_pin(model: Model, table: Table) -> Iterator[Pin]:
    """Pin what an answer over all streams of the group shows, whose pipelines may be apart."""
    group = model.group_of[table]
    tables = [
        table
        for table, name in model.group_of.items()
        if name == group and model.is_tracked(table) and not model.is_batch_table(table)
    ]
    barrier = version(model, tables)
    if barrier not in (None, version(model, [table])) and barrier in model.done[table]:
        first = model.done[table].candidates(barrier)[0]
        yield Pin(first.snapshot, f"barrier {barrier} is the newest that its whole group completed")


def _rollback_pin(done: Completions, keep_barriers: int) -> Pin:
    if len(done.order) <= keep_barriers:
        return Pin(None, f"the last {keep_barriers} barriers are kept for rollback")
    barrier = done.order[-keep_barriers]
    return Pin(
        done.of[barrier].snapshot,
        f"barrier {barrier}: the last {keep_barriers} are kept for rollback",
    )


def _place_pin(model: Model, table: Table, place: GroupJob) -> Pin:
    state = "runs" if place.ended is None else "is stopped"
    if place.position is None:
        if table in place.started_up:
            return Pin(place.started_up[table], f"job {place.job[1]} starts up from it")
        return Pin(
            None,
            f"job {place.job[1]} {state} and has not committed yet: it reads from the beginning",
        )
    position = next(model.done[table].up_to(place.position), None)
    if position is None:
        return Pin(None, f"job {place.job[1]} {state} before the table's first barrier")
    return Pin(
        model.done[table].of[position].snapshot, f"job {place.job[1]} {state} at barrier {position}"
    )


def main_ancestry(parents: Mapping[str, str], head: str) -> tuple[list[str], list[str]]:
    """Return the ancestors of `head`, oldest first and with itself, and all other snapshots.

    The first ancestor has an empty parent.
    """
    line: list[str] = []
    at = head
    for _ in parents:  # no more steps than snapshots: events may state a ring of parents
        parent = parents.get(at)
        if parent is None:
            break
        line.append(at)
        at = parent
    else:
        line = list(dict.fromkeys(line))
    line.reverse()
    if len(line) == len(parents):
        return line, []
    visited = set(line)
    return line, [snapshot for snapshot in parents if snapshot not in visited]
