"""Strong and weak answers to "which snapshots do I read together?", each with what blocks it.

strong: the greatest barrier that all tables of the pipelines completed to which the query's tables
belong. weak: the same over the query's own tables only. One answer shows one barrier of a group.
Always strong <= weak <= latest, table by table. What cannot be answered is refused with a reason.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from shlex import quote

from strandline.core.versions.batch_runs import why_last_run_completed_none
from strandline.core.versions.choice import newest_choice
from strandline.core.versions.completions import Completion, greatest_common
from strandline.core.versions.facts import Table
from strandline.core.versions.members import pipeline, version, version_and_pipeline
from strandline.core.versions.model import Model, lacking, upstream
from strandline.core.versions.table_states import PASSED_OVER, why_broken
from strandline.errors import RefusedError

INSTEAD = "ask with --weak or --cut (consistency weak or cut)"
LONG_PIPELINE = 5000  # beyond this, what blocks an answer is not looked for


@dataclass(frozen=True, slots=True)
class Reading:
    """The snapshot of a table to read.

    `behind_since`: birth of the first barrier that it does not show. `untracked`: why the table
    gets no further barriers.
    """

    table: Table
    group: str
    barrier: int
    generation: int
    snapshot: str
    behind_since: float | None
    untracked: str | None = None

    def lag(self, now: float) -> float:
        """The age of the first barrier that this reading does not show; 0 when it shows all."""
        return 0.0 if self.behind_since is None else max(0.0, now - self.behind_since)


@dataclass(frozen=True, slots=True)
class Holder:
    """Whoever keeps a component from its next barrier."""

    table: Table
    name: str
    namespace: str
    state: str
    since: float | None
    barrier: int
    last: int | None
    why: str = ""

    def reason(self, now: float | None = None) -> str:
        """In words, what is the matter and what can be done."""
        when = "" if now is None or self.since is None else f"{ago(now - self.since)} ago"
        if self.state == "UNTRACKED":
            return self.why
        if self.state == "BROKEN":
            return f"{self.name}: {self.table[1]}: {self.why}"
        if self.state == "STOPPED":
            stopped = f"{self.name}: job stopped {when}".rstrip()
            return f"{stopped}; restart it, or retire it: strandline retire {quote(self.name)}"
        if self.state == "BATCH":
            last = (
                "no run completed a barrier yet"
                if self.last is None
                else f"last run at barrier {self.last}"
            )
            last = f"{last}, {when}" if when else last
            return f"{self.name}: batch job, {last}; {self.why or 'the next run decides'}"
        if self.state == "SKIPPED":
            return (
                f"{self.name}: went past barrier {self.barrier} without a snapshot; "
                "the next common barrier counts"
            )
        if self.state == "BASE_TABLE":
            cut = f"{self.name}: base table, not yet cut at barrier {self.barrier}"
            return f"{cut}; {self.why}" if self.why else cut
        behind = (
            "has not committed any barrier" if self.last is None else f"is at barrier {self.last}"
        )
        return f"{self.name}: running, {behind}, barrier {self.barrier} is next"


def ago(seconds: float) -> str:
    """A span of time in its largest fitting unit.

    >>> ago(3 * 3600 + 5), ago(95), ago(0.2)
    ('3 h', '95 s', '0 s')
    """
    for size, unit in ((172_800, "d"), (7200, "h"), (120, "min")):
        if seconds >= size:
            return f"{seconds / {'d': 86400, 'h': 3600, 'min': 60}[unit]:.0f} {unit}"
    return f"{max(0.0, seconds):.0f} s"


def strong(model: Model, tables: Sequence[Table]) -> list[Reading]:
    """Return the strong reading of `tables`.

    Raises a RefusedError: untracked, groups, no_version.
    """
    _refuse_untracked(model, tables)
    _refuse_groups(model, tables)
    answer = version_and_pipeline(model, tables)
    while answer is not None:
        barrier, connected = answer
        choice = newest_choice(model, [*sorted(tables), *sorted(connected)], barrier)
        if choice is not None:
            return [reading(model, table, choice[table]) for table in tables]
        answer = version_and_pipeline(model, tables, barrier - 1)
    raise RefusedError(_why_no_version(model, tables), "no_version")


def _why_no_version(model: Model, tables: Sequence[Table]) -> str:
    names = ", ".join(map(model.call, tables))
    words = f"{names}: no barrier is completed by all tables of their pipelines yet"
    reasons = [holder.reason() for holder in held_by(model, tables)]
    reasons += [why for table in tables if (why := model.why_anew(table))]
    return f"{words}; {'; '.join(dict.fromkeys(reasons))}" if reasons else words


def weak(model: Model, tables: Sequence[Table]) -> list[Reading]:
    """The weak reading of those of `tables` that are tracked or have barriers.

    Per group, the greatest barrier that all of them have.
    """
    groups: dict[str, list[Table]] = {}
    for table in tables:
        if model.is_tracked(table) or model.has_barriers(table):
            groups.setdefault(model.group_of[table], []).append(table)
    return [reading for group in groups.values() for reading in _weak_of_one(model, group)]


def _weak_of_one(model: Model, tables: list[Table]) -> list[Reading]:
    histories = [model.done[table] for table in tables]
    barrier = greatest_common(histories)
    while barrier is not None:
        choice = newest_choice(model, sorted(tables), barrier)
        if choice is not None:
            return [reading(model, table, choice[table]) for table in tables]
        barrier = greatest_common(histories, barrier - 1)
    names = ", ".join(map(model.call, tables))
    raise RefusedError(f"{names}: no barrier is completed by all of them yet", "no_version")


def reading(model: Model, table: Table, chosen: Completion) -> Reading:
    """The reading of a table at the snapshot that was chosen of a barrier."""
    group = model.group(model.group_of[table])
    missing = group.first_after(chosen.barrier)
    since = group.births[missing] if missing is not None else None
    return Reading(
        table,
        group.name,
        chosen.barrier,
        group.generation,
        chosen.snapshot,
        since,
        None if model.is_tracked(table) else model.why_untracked(table),
    )


def refuse_stale(
    readings: Iterable[Reading],
    max_lag: float,
    now: float,
    call: Callable[[Table], str] = itemgetter(1),
) -> None:
    """Raise unless every reading is within the bound: bounded staleness never waits."""
    for reading in readings:
        lag = reading.lag(now)
        if lag > max_lag:
            words = (
                f"{call(reading.table)}: version {reading.barrier} is {lag:.1f} s behind, "
                f"more than {max_lag:g} s"
            )
            raise RefusedError(words, "lag")


def held_by(
    model: Model, tables: Iterable[Table], readings: Sequence[Reading] = ()
) -> list[Holder]:
    """Return the most upstream jobs that keep the pipelines of `tables` from their next barrier.

    With the readings of one answer: from the barrier after that answer.
    """
    answered = {reading.group: reading.barrier for reading in readings}
    groups: dict[str, list[Table]] = {}
    for table in tables:
        if table in model.done:
            groups.setdefault(model.group_of[table], []).append(table)
    holders: dict[Table, Holder] = {}
    for name, of_group in groups.items():
        barrier = answered.get(name, version(model, of_group))
        missing = model.group(name).first_after(barrier)
        if missing is None:
            continue
        connected, _ = pipeline(model, of_group, missing)
        if len(connected) > LONG_PIPELINE:
            continue
        for table in lacking(model, connected, missing):
            holders[table] = _holder(model, table, missing)
    return list(holders.values())


def weakly_held_by(model: Model, readings: Iterable[Reading]) -> list[Holder]:
    """Return the most upstream jobs that keep weakly read tables from their next barrier."""
    holders: dict[Table, Holder] = {}
    for reading in readings:
        missing = model.group(reading.group).first_after(reading.barrier)
        if missing is not None and missing not in model.done[reading.table]:
            for table in lacking(model, upstream(model, reading.table), missing):
                holders[table] = _holder(model, table, missing)
    return list(holders.values())


def _holder(model: Model, table: Table, barrier: int) -> Holder:
    last, writer = model.done[table].last, model.writer(table)
    if not model.is_tracked(table):
        why = _why_no_barriers(model, table)
        return Holder(table, table[1], table[0], "UNTRACKED", None, barrier, last, why)
    why = why_broken(model, table)
    if writer is not None and why:
        remedy = _remedy(model, table, why)
        return Holder(table, writer[1], writer[0], "BROKEN", None, barrier, last, remedy)
    if writer is None:
        why = model.why_anew(table)
        return Holder(table, table[1], table[0], "BASE_TABLE", None, barrier, last, why)
    ended = model.places[writer].ended
    if model.places[writer].batch:
        since = ended.at if ended is not None else None
        why = why_last_run_completed_none(model, table)
        return Holder(table, writer[1], writer[0], "BATCH", since, barrier, last, why)
    if ended is not None:
        return Holder(table, writer[1], writer[0], "STOPPED", ended.at, barrier, last)
    state = "SKIPPED" if last is not None and last > barrier else "RUNNING"
    return Holder(table, writer[1], writer[0], state, None, barrier, last)


def untracked_among(model: Model, tables: Iterable[Table]) -> dict[Table, str]:
    """Map each of `tables` that has no barrier to the reason, and what gives it some."""
    return {
        table: _why_no_barriers(model, table)
        for table in tables
        if not model.is_tracked(table) and not model.has_barriers(table)
    }


def _why_no_barriers(model: Model, table: Table) -> str:
    return f"{model.why_untracked(table)}; {model.how_to_track(table)}"


def _remedy(model: Model, table: Table, why: str) -> str:
    """Say what mends a broken table; a stream that is rolled back passes over the same changes."""
    last = model.done[table].last
    if why.startswith(PASSED_OVER):
        return f"{why}; replace the whole table"
    if last is not None:
        back = f"strandline rollback {quote(model.call(table))} {last}"
        return f"{why}; replace the whole table, or go back: {back}"
    return (
        f"{why}; replace the whole table, or empty it with TRUNCATE TABLE and restart its stream"
        " with a new checkpoint"
    )


def _refuse_untracked(model: Model, tables: Iterable[Table]) -> None:
    reasons = [
        model.why_untracked(table)
        for table in tables
        if not model.is_tracked(table) and not model.has_barriers(table)
    ]
    if reasons:
        words = "; ".join(reasons)
        raise RefusedError(f"{words}. There is no strong answer for it; {INSTEAD}", "untracked")


def _refuse_groups(model: Model, tables: Iterable[Table]) -> None:
    groups = sorted({model.group_of[table] for table in tables})
    if len(groups) > 1:
        words = (
            f"tables of {len(groups)} groups ({', '.join(groups)}), "
            "whose barriers are not comparable"
        )
        raise RefusedError(f"{words}. There is no strong answer for them; {INSTEAD}", "groups")
