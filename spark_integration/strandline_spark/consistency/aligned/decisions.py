"""The decision of a job before a checkpoint, from the inputs' own snapshots.

It has FLIP-276's three answers.

The answer holds for the whole micro-batch: all inputs stop at the same barrier.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["PROCEED", "CHECKPOINT", "ABORT"]


@dataclass(frozen=True, slots=True)
class Decision:
    """The barrier to checkpoint at, the barriers to abort before it, its inputs' snapshots."""

    kind: Kind
    barrier: int | None = None
    abort: tuple[int, ...] = ()
    snapshots: Mapping[str, str] = field(default_factory=dict)


FEW = 5  # barriers that a job takes one after the other; one that is further behind drains


def decide(
    done: Mapping[str, Mapping[int, str]], position: int | None, most: int | None = FEW
) -> Decision:
    """The answer for a job at `position` (None.

    It has no checkpoint) over the barriers that each input completed.

    One that is more than `most` barriers behind takes the newest, so that it catches up; None: it
    takes each.

    >>> decide({"a": {1: "10", 3: "11"}, "b": {1: "20", 2: "21", 3: "22"}}, 1)
    Decision(kind='ABORT', barrier=3, abort=(2,), snapshots={'a': '11', 'b': '22'})
    """
    after = [_after(position, barriers) for barriers in done.values()]
    common = common_of(after)
    if not common:
        return Decision("PROCEED")
    barrier = min(common) if most is None or len(common) <= most else max(common)
    abort = tuple(sorted({b for barriers in after for b in barriers if b < barrier}))
    snapshots = {table: barriers[barrier] for table, barriers in done.items()}
    return Decision("ABORT" if abort else "CHECKPOINT", barrier, abort, snapshots)


def _after(position: int | None, barriers: Iterable[int]) -> set[int]:
    return {barrier for barrier in barriers if position is None or barrier > position}


def common_of(completed: Collection[Collection[int]]) -> set[int]:
    """The barriers that all of them completed."""
    return set.intersection(*map(set, completed)) if completed else set()
