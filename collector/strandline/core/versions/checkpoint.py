"""The three answers before a checkpoint (FLIP-276), PROCEED, CHECKPOINT, ABORT, and start-up.

The answer holds for the whole micro-batch: all sources of one query stop at the same barrier.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from strandline.core.versions.completions import Completions, snapshots_at
from strandline.core.versions.facts import Job, Table, Used
from strandline.core.versions.members import versions
from strandline.core.versions.model import Model

Kind = Literal["PROCEED", "CHECKPOINT", "ABORT"]


@dataclass(frozen=True, slots=True)
class Decision:
    """The barrier to checkpoint at, the barriers to abort before it, its inputs' snapshots."""

    kind: Kind
    barrier: int | None = None
    abort: tuple[int, ...] = ()
    snapshots: tuple[tuple[Table, str], ...] = ()


FEW = 5  # barriers that a job takes one after the other; one that is further behind drains


def decide(
    sources: Mapping[Table, Completions],
    position: int | None,
    overdue: Collection[int] = frozenset(),
    most: int | None = FEW,
) -> Decision:
    """The answer for a job at `position` (None.

    It has no checkpoint) over `sources`, without the overdue barriers `overdue`.

    One that is more than `most` barriers behind takes the newest, so that it catches up; None: it
    takes each.

    >>> def done(*barriers): return Completions({b: None for b in barriers}, list(barriers))
    >>> decide({("lake", "a"): done(1, 3), ("lake", "b"): done(1, 2)}, 1)
    Decision(kind='PROCEED', barrier=None, abort=(), snapshots=())
    """
    barrier = next_common(list(sources.values()), position, overdue, most)
    if barrier is None:
        return Decision("PROCEED")
    between = {b for done in sources.values() for b in done.after(position) if b < barrier}
    snapshots = tuple(sorted(snapshots_at(sources, barrier).items()))
    return Decision(
        "ABORT" if between else "CHECKPOINT", barrier, tuple(sorted(between)), snapshots
    )


def next_common(
    histories: Sequence[Completions],
    position: int | None,
    overdue: Collection[int] = frozenset(),
    most: int | None = FEW,
) -> int | None:
    """Return min { b > position : b in all of `histories`, not overdue }, or None.

    If there are more than `most` of them, return the greatest.

    Where all that there is was overdue the newest counts: somebody far behind gets on by one step.
    """
    if not histories:
        return None
    common = _in_all(histories, position)
    if not common:
        return None
    wanted = [barrier for barrier in common if barrier not in overdue]
    return wanted[0] if wanted and (most is None or len(wanted) <= most) else common[-1]


def _in_all(histories: Sequence[Completions], position: int | None) -> list[int]:
    """The barriers after a position that all histories have."""
    first, *rest = sorted(histories, key=lambda done: len(done.order))
    return [barrier for barrier in first.after(position) if all(barrier in done for done in rest)]


def start_up(model: Model, job: Job) -> tuple[int, dict[Table, str]] | None:
    """Return the snapshots that other jobs consumed for one version of all the job's sources.

    None when there is none. The version is V of the pipeline of whoever reads the same sources, so
    the job begins where all others are. Where no other job reads them, it is V of the sources
    themselves.
    """
    place = model.places[job]
    sources = {table for table in place.reads - place.writes if _is_shared(model, table)}
    others = {other for table in sources for other in model.jobs_at(table)} - {job}
    tables = sources.union(*(model.places[other].writes for other in others))
    of_group = sorted(table for table in tables if model.group_of.get(table) == place.group)
    for barrier in sorted(
        {version for version in versions(model, of_group).values() if version}, reverse=True
    ):
        snapshots = _consumed(model, sources, others, barrier)
        if snapshots is not None:
            return barrier, snapshots
    return None


def _is_shared(model: Model, table: Table) -> bool:
    return model.is_tracked(table) or len(model.jobs_at(table)) > 1


def _consumed(
    model: Model, sources: set[Table], others: set[Job], barrier: int
) -> dict[Table, str] | None:
    """Return the snapshots of all `sources` at a barrier, as completed or as others read them.

    None if one of them is not known.
    """
    snapshots: dict[Table, str] = {}
    for other in sorted(others):
        for sink in model.places[other].writes:
            completion = model.done[sink].of.get(barrier) if sink in model.done else None
            snapshots |= _read_of(sources, completion.used) if completion else {}
    snapshots |= snapshots_at(
        {table: model.done[table] for table in sources if table in model.done}, barrier
    )
    return snapshots if snapshots and snapshots.keys() == sources else None


def _read_of(sources: Collection[Table], used: Iterable[Used]) -> dict[Table, str]:
    return {use.table: use.snapshot for use in used if use.table in sources}
