"""Strong and weak answers to "which snapshots do I read together?", each with what blocks it.

strong: the greatest barrier that all tables of the pipelines completed to which the query's tables
belong. weak: the same over the query's own tables only. One answer shows one barrier of a group.
Always strong <= weak <= latest, table by table. What cannot be answered is refused with a reason.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from operator import itemgetter

from strandline.core.versions.completions import greatest_common
from strandline.core.versions.facts import Table
from strandline.core.versions.model import Model
from strandline.errors import RefusedError

INSTEAD = "ask with --weak or --cut (consistency weak or cut)"
LONG_COMPONENT = 5000  # beyond this, what blocks an answer is not looked for


@dataclass(frozen=True, slots=True)
class Reading:
    """Which snapshot of a table to read.

    `behind_since`: birth of the first barrier that it does not show.
    """

    table: Table
    domain: str
    barrier: int
    incarnation: int
    snapshot: str
    behind_since: float | None

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

    def reason(self, now: float) -> str:
        """In words, what is the matter and what can be done."""
        if self.state == "STOPPED" and self.since is not None:
            return f"{self.name}: job stopped {ago(now - self.since)} ago; restart it, or retire it"
        if self.state == "BATCH":
            last = (
                "no run completed a barrier yet"
                if self.last is None
                else f"last run at barrier {self.last}"
            )
            when = "" if self.since is None else f", {ago(now - self.since)} ago"
            return f"{self.name}: batch job, {last}{when}; the next run decides"
        if self.state == "SKIPPED":
            return f"{self.name}: went past barrier {self.barrier} without a snapshot; the next common barrier counts"
        if self.state == "BASE_TABLE":
            return f"{self.name}: base table, not yet cut at barrier {self.barrier}"
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

    Raises a RefusedError: untracked, groups, joining, no_version.
    """
    _refuse_unmanaged(model, tables)
    _refuse_domains(model, tables)
    _refuse_joining(model, tables)
    barrier = strong_barrier(model, tables)
    if barrier is None:
        raise RefusedError(_why_no_version(model, tables), "no_version")
    return [reading(model, table, barrier) for table in tables]


def strong_barrier(model: Model, tables: Iterable[Table]) -> int | None:
    """Return the greatest barrier that all tables of the pipelines of `tables` completed.

    A job connects its tables from the barrier on at which it was admitted, so that no version goes
    back when another job joins.
    """
    tables = list(tables)
    components = {id(model.components[table]): model.components[table] for table in tables}
    versions = [component.version for component in components.values()]
    known = [version for version in versions if version is not None]
    if len(known) < len(versions) or not known:
        return None
    if len(known) == 1:
        return known[0]
    for barrier in model.done[tables[0]].up_to(min(known)):
        if all(barrier in model.done[table] for table in pipelines_at(model, tables, barrier)):
            return barrier
    return None


def pipelines_at(model: Model, tables: Iterable[Table], barrier: int) -> set[Table]:
    """Return `tables` and all tables that jobs connect with them at a barrier."""
    connected = set(tables)
    waiting = list(connected)
    while waiting:
        table = waiting.pop()
        for job in model.jobs_at(table):
            place = model.places[job]
            if table in place.admitted and place.admitted_from <= barrier:
                waiting.extend(place.admitted - connected)
                connected |= place.admitted
    return connected


def _why_no_version(model: Model, tables: Sequence[Table]) -> str:
    for table in tables:
        if model.components[table].version is None:
            return f"{model.call(table)}: no barrier is completed by all tables of its pipeline yet"
    names = ", ".join(map(model.call, tables))
    return f"{names}: no barrier is completed by all tables of their pipelines yet"


def weak(model: Model, tables: Sequence[Table]) -> list[Reading]:
    """The weak reading of the tracked ones of `tables`.

    Per group, the greatest barrier that all of them have.

    Tables that are joining are among them: one query never sees two barriers of a group.
    """
    groups: dict[str, list[Table]] = {}
    for table in tables:
        if model.is_managed(table):
            groups.setdefault(model.domain_of[table], []).append(table)
    return [reading for group in groups.values() for reading in _weak_of_one(model, group)]


def _weak_of_one(model: Model, tables: list[Table]) -> list[Reading]:
    barrier = greatest_common([model.done[table] for table in tables])
    if barrier is None:
        names = ", ".join(map(model.call, tables))
        raise RefusedError(f"{names}: no barrier is completed by all of them yet", "no_version")
    return [reading(model, table, barrier) for table in tables]


def reading(model: Model, table: Table, barrier: int) -> Reading:
    """The reading of a tracked table at a barrier that it completed."""
    domain = model.domain(model.domain_of[table])
    missing = domain.first_after(barrier)
    since = domain.births[missing] if missing is not None else None
    return Reading(
        table,
        domain.name,
        barrier,
        domain.incarnation,
        model.done[table].of[barrier].snapshot,
        since,
    )


def refuse_stale(
    readings: Iterable[Reading],
    max_lag: float,
    now: float,
    call: Callable[[Table], str] = itemgetter(1),
) -> None:
    """Raise unless every reading is within the bound: bounded staleness never waits."""
    for one in readings:
        if one.lag(now) > max_lag:
            words = f"{call(one.table)}: version {one.barrier} is {one.lag(now):.1f} s behind, more than {max_lag:g} s"
            raise RefusedError(words, "lag")


def held_by(
    model: Model, tables: Iterable[Table], readings: Sequence[Reading] = ()
) -> list[Holder]:
    """Return the most upstream jobs that keep the pipelines of `tables` from their next barrier.

    With the readings of one answer: from the barrier after that answer.
    """
    answered = {reading.domain: reading.barrier for reading in readings}
    found: dict[Table, Holder] = {}
    for component in {
        id(model.components[t]): model.components[t] for t in tables if t in model.components
    }.values():
        domain = model.domain(model.domain_of[next(iter(component.tables))])
        missing = domain.first_after(answered.get(domain.name, component.version))
        if missing is None or len(component.tables) > LONG_COMPONENT:
            continue
        for table in sorted(component.tables):
            if missing not in model.done[table] and _has_inputs(model, table, missing):
                found[table] = _holder(model, table, missing)
    return list(found.values())


def weakly_held_by(model: Model, readings: Iterable[Reading]) -> list[Holder]:
    """Who keeps a weak answer from its next barrier.

    The most upstream one on the way to each table that lacks it.
    """
    found: dict[Table, Holder] = {}
    for one in readings:
        missing = model.domain(one.domain).first_after(one.barrier)
        if missing is None or missing in model.done[one.table]:
            continue
        at, seen = one.table, {one.table}
        while lacking := sorted(
            s for s in model.sources(at) - seen if missing not in model.done[s]
        ):
            at = lacking[0]
            seen.add(at)
        found[at] = _holder(model, at, missing)
    return list(found.values())


def _has_inputs(model: Model, table: Table, barrier: int) -> bool:
    return all(barrier in model.done[source] for source in model.sources(table))


def _holder(model: Model, table: Table, barrier: int) -> Holder:
    last, writer = model.done[table].last, model.writer(table)
    if writer is None:
        return Holder(table, table[1], table[0], "BASE_TABLE", None, barrier, last)
    ended = model.places[writer].ended
    if model.places[writer].batch:
        since = ended.at if ended is not None else None
        return Holder(table, writer[1], writer[0], "BATCH", since, barrier, last)
    if ended is not None:
        return Holder(table, writer[1], writer[0], "STOPPED", ended.at, barrier, last)
    state = "SKIPPED" if last is not None and last > barrier else "RUNNING"
    return Holder(table, writer[1], writer[0], state, None, barrier, last)


def _refuse_unmanaged(model: Model, tables: Iterable[Table]) -> None:
    reasons = [model.why_unmanaged(table) for table in tables if not model.is_managed(table)]
    if reasons:
        words = "; ".join(reasons)
        raise RefusedError(f"{words}. There is no strong answer over it; {INSTEAD}", "untracked")


def _refuse_domains(model: Model, tables: Iterable[Table]) -> None:
    domains = sorted({model.domain_of[table] for table in tables})
    if len(domains) > 1:
        words = f"tables of {len(domains)} groups ({', '.join(domains)}), whose barriers are not comparable"
        raise RefusedError(f"{words}. There is no strong answer over them; {INSTEAD}", "groups")


def _refuse_joining(model: Model, tables: Iterable[Table]) -> None:
    joining = [table for table in tables if model.is_joining(table)]
    if joining:
        words = "; ".join(_joins(model, table) for table in joining)
        raise RefusedError(f"{words}. Until then ask weakly (--weak, consistency weak)", "joining")


def _joins(model: Model, table: Table) -> str:
    writer = model.writer(table)
    wanted = (
        [model.components[t].version for t in model.links(model.places[writer])] if writer else []
    )
    newest = max((version for version in wanted if version is not None), default=None)
    until = f"barrier {newest}" if newest is not None else "the first barrier"
    has = model.done[table].last
    behind = "has committed none yet" if has is None else f"is at {has}"
    name = writer[1] if writer else ""
    return f"{model.call(table)}: job {name} joins when it and all that it reads have {until}; it {behind}"
