"""The three answers that a job gets before a checkpoint (FLIP-276): PROCEED, CHECKPOINT, ABORT; and how a job starts up.

The answer holds for the whole micro-batch: all sources of one query stop at the same barrier.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from strandline.core.barriers import Completions, Table, greatest_common, snapshots_at
from strandline.core.model import Model

Kind = Literal["PROCEED", "CHECKPOINT", "ABORT"]


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do: the barrier to checkpoint at, the barriers to abort before it, the inputs' snapshots at it."""

    kind: Kind
    barrier: int | None = None
    abort: tuple[int, ...] = ()
    snapshots: tuple[tuple[Table, str], ...] = ()


def decide(sources: Mapping[Table, Completions], position: int | None) -> Decision:
    """The answer for a job at `position` (None: it has no checkpoint) over `sources`.

    >>> def done(*barriers): return Completions({b: None for b in barriers}, list(barriers))
    >>> decide({("lake", "a"): done(1, 3), ("lake", "b"): done(1, 2)}, 1)
    Decision(kind='PROCEED', barrier=None, abort=(), snapshots=())
    """
    barrier = next_common(list(sources.values()), position)
    if barrier is None:
        return Decision("PROCEED")
    between = {b for done in sources.values() for b in done.after(position) if b < barrier}
    snapshots = tuple(sorted(snapshots_at(sources, barrier).items()))
    return Decision("ABORT" if between else "CHECKPOINT", barrier, tuple(sorted(between)), snapshots)


def next_common(histories: Sequence[Completions], position: int | None) -> int | None:
    """min { b > position : b in all of `histories` }, or None."""
    if not histories:
        return None
    first, *rest = sorted(histories, key=lambda done: len(done.order))
    return next((barrier for barrier in first.after(position) if all(barrier in done for done in rest)), None)


def start_up(model: Model, sources: Sequence[Table]) -> tuple[int, dict[Table, str]] | None:
    """The one version of all its managed `sources` from which a new job starts, or None when there is none yet.

    It is V where the sources share a component, so that the job begins where all others are; else their greatest
    common barrier.
    """
    managed = [table for table in sources if model.is_managed(table)]
    if not managed or len({model.domain_of[table] for table in managed}) > 1:
        return None
    components = {id(model.components[table]): model.components[table] for table in managed}
    barrier = next(iter(components.values())).version if len(components) == 1 else None
    if barrier is None:
        barrier = greatest_common([model.done[table] for table in managed])
    if barrier is None:
        return None
    return barrier, snapshots_at({table: model.done[table] for table in managed}, barrier)
