"""The delay of a table at a barrier, split into waiting and work of each job, and its lag.

delay(T, b) = commit(T, b) - birth(b). Walked back along the input that came last, the parts sum to
the delay exactly. Clocks differ: a commit before its inputs' commits counts as at the latest of
them, so no part is negative.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from strandline.core.versions.completions import Completion
from strandline.core.versions.facts import Job, Table
from strandline.core.versions.model import Model, lacking, upstream, upstream_first
from strandline.errors import NotFoundError


@dataclass(frozen=True, slots=True)
class DelayPart:
    """A stretch of the delay.

    `wait` before the job began the barrier though its inputs were ready, `work` after.
    """

    table: Table
    job: Job | None
    kind: Literal["wait", "work"]
    seconds: float


@dataclass(frozen=True, slots=True)
class Delay:
    """The delay of one table at one barrier. `bottleneck`: the largest part."""

    table: Table
    barrier: int
    seconds: float
    parts: tuple[DelayPart, ...]

    @property
    def bottleneck(self) -> DelayPart | None:
        """The largest part, or None when nothing took any time."""
        return max(
            (part for part in self.parts if part.seconds > 0),
            key=lambda part: part.seconds,
            default=None,
        )


@dataclass(frozen=True, slots=True)
class Staleness:
    """The age of the first barrier that a table lacks.

    Since it was born, and since all the inputs had it.
    """

    table: Table
    barrier: int | None
    seconds: float
    local_seconds: float
    job: Job | None


def delay(model: Model, table: Table, barrier: int) -> Delay:
    """The delay of `table` at `barrier`, or a NotFoundError when it has not completed it."""
    if table not in model.done or barrier not in model.done[table]:
        raise NotFoundError(
            f"{model.call(table)}: barrier {barrier} is not completed, or no longer stored"
        )
    if barrier not in model.group(model.group_of[table]).births:
        raise NotFoundError(
            f"{model.call(table)}: barrier {barrier} is too old: its time is no longer stored"
        )
    commits = _commits(model, table, barrier)
    birth = model.group(model.group_of[table]).births[barrier]
    parts: list[DelayPart] = []
    at: Table | None = table
    while at is not None:
        latest = _latest_input(model, at, barrier, commits)
        ready = commits[latest] if latest is not None else birth
        parts.extend(_parts(model.done[at].of[barrier], at, model.writer(at), ready, commits[at]))
        at = latest
    return Delay(table, barrier, commits[table] - birth, tuple(reversed(parts)))


def _parts(
    completion: Completion, table: Table, writer: Job | None, ready: float, commit: float
) -> tuple[DelayPart, DelayPart]:
    start = min(max(completion.started, ready), commit)
    job = completion.job or writer
    return DelayPart(table, job, "work", commit - start), DelayPart(
        table, job, "wait", start - ready
    )


def _commits(model: Model, table: Table, barrier: int) -> dict[Table, float]:
    """Return the time at which each table upstream of `table` completed the barrier.

    A table's time is never before that of its own inputs.
    """
    birth = model.group(model.group_of[table]).births[barrier]
    commits: dict[Table, float] = {}
    completed = [source for source in upstream(model, table) if barrier in model.done[source]]
    for member in upstream_first(model, completed):
        ready = max(
            (commits[source] for source in model.sources(member) if source in commits),
            default=birth,
        )
        commits[member] = max(model.done[member].of[barrier].committed, ready)
    return commits


def _latest_input(
    model: Model, table: Table, barrier: int, commits: Mapping[Table, float]
) -> Table | None:
    inputs = [
        source
        for source in model.sources(table)
        if source in commits and barrier in model.done[source]
    ]
    return max(inputs, key=lambda source: (commits[source], source), default=None)


def lag_seconds(model: Model, table: Table, now: float) -> float | None:
    """Return the age of the first barrier that a table lacks; None for one without barriers."""
    if table not in model.done or not model.is_tracked(table):
        return None
    return round(staleness(model, table, now).seconds, 3)


def staleness(model: Model, table: Table, now: float) -> Staleness:
    """Return the staleness of a tracked table now.

    Barriers that it skipped do not count: they never come.
    """
    last = model.done[table].last
    group = model.group(model.group_of[table])
    missing = group.first_after(last)
    if missing is None:
        return Staleness(table, None, 0.0, 0.0, None)
    globally = max(0.0, now - group.births[missing])
    locally = min(globally, _local(model, table, now))  # clocks differ
    blocking = lacking(model, upstream(model, table), missing)
    return Staleness(
        table, missing, globally, locally, model.writer(blocking[0]) if blocking else None
    )


def _local(model: Model, table: Table, now: float) -> float:
    """The age of the first barrier after the table's last that all its inputs completed."""
    inputs = [model.done[source] for source in model.sources(table)]
    if not inputs:
        return 0.0
    for barrier in inputs[0].after(model.done[table].last):
        if all(barrier in done for done in inputs):
            return max(0.0, now - max(done.of[barrier].committed for done in inputs))
    return 0.0
