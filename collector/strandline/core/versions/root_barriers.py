"""Cutting barriers through the base tables of groups.

B := the latest committed snapshot of every base table.

Base tables do not depend on each other, so every cut through them is consistent. One base table:
each of its commits is a barrier; where a stream of the group writes it, its events carry the
barriers. Several: one at an interval, and one where the step of a job stands.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from strandline.core.versions.facts import RootsCut, Table, WrittenSnapshot
from strandline.core.versions.model import Group, Model


@dataclass(frozen=True, slots=True)
class SingleRoot:
    """The base table of a group that has no other.

    The barrier that was cut last, and the snapshot that it went through.
    """

    group: str
    table: Table
    barrier: int
    last: str | None


def single_roots(model: Model) -> list[SingleRoot]:
    """Groups of which each commit of the base table is a barrier."""
    return [
        SingleRoot(
            group.name, group.declared[0], group.newest or 0, last_cut(model, group.declared[0])
        )
        for group in _cut_here(model)
        if len(group.declared) == 1
    ]


def cut_each_commit(root: SingleRoot, line: Sequence[str], now: float) -> list[RootsCut]:
    """Return the barriers of a base table's commits after its last one.

    `line` is the table's main ancestry, oldest first.
    """
    new = line[line.index(root.last) + 1 :] if root.last in line else line
    return [
        RootsCut(root.group, barrier, (WrittenSnapshot(root.table, snapshot, parent),), now)
        for barrier, (parent, snapshot) in enumerate(
            zip([root.last, *new], new, strict=False), root.barrier + 1
        )
    ]


def to_cut(model: Model, interval: float, now: float) -> list[Group]:
    """Groups with several base tables whose last barrier is older than the interval."""
    return [
        group
        for group in _cut_here(model)
        if len(group.bases) > 1
        and (group.newest is None or group.births[group.newest] + interval <= now)
    ]


def cut_through(
    model: Model, group: Group, heads: Mapping[Table, str], now: float
) -> list[RootsCut]:
    """Return the next barrier of a group, through the newest snapshot of each base table.

    None if a base table has no snapshot, or none of them has a new one.

    heads: of its base tables that have a snapshot, and maybe of tables of other groups.
    """
    last = {table: last_cut(model, table) for table in group.bases}
    if not last.keys() <= heads.keys() or all(heads[table] == last[table] for table in last):
        return []
    snapshots = tuple(WrittenSnapshot(table, heads[table], last[table]) for table in group.bases)
    return [RootsCut(group.name, (group.newest or 0) + 1, snapshots, now)]


def uncut_steps(model: Model) -> list[tuple[Group, Mapping[Table, str]]]:
    """Return the base snapshots that jobs' last steps show and that no barrier has together."""
    return [
        (group, stands)
        for group in _cut_here(model)
        if len(group.bases) > 1
        for stands in group.stands.values()
        if stands and not _is_cut(model, stands)
    ]


def _is_cut(model: Model, stands: Mapping[Table, str]) -> bool:
    carried = [set(model.done[table].carried.get(at, ())) for table, at in stands.items()]
    return bool(set.intersection(*carried))


def cut_at(
    model: Model,
    group: Group,
    stands: Mapping[Table, str],
    committed: Mapping[tuple[Table, str], int],
    now: float,
) -> list[RootsCut]:
    """The next barrier, through the base snapshots that a step shows, and else through the last.

    None where one of them is older than at the last barrier. committed: when snapshots were.
    """
    last = {table: last_cut(model, table) for table in group.bases}
    for table, snapshot in stands.items():
        before, at = last[table], committed.get((table, snapshot))
        if at is None or (before is not None and at < committed.get((table, before), at + 1)):
            return []
    snapshots = tuple(
        WrittenSnapshot(table, snapshot, last[table])
        for table, snapshot in (last | dict(stands)).items()
        if snapshot is not None
    )
    if len(snapshots) < len(group.bases):
        return []
    return [RootsCut(group.name, (group.newest or 0) + 1, snapshots, now)]


def last_cut(model: Model, table: Table) -> str | None:
    """The snapshot of a table's newest barrier."""
    done = model.done.get(table)
    return done.of[done.last].snapshot if done is not None and done.last is not None else None


def _cut_here(model: Model) -> Iterable[Group]:
    """Yield the groups whose streams do not number the commits of their one base table."""
    for group in model.groups.values():
        writers = {job for table in group.declared for job in model.writers.get(table, ())}
        is_numbered_here = group.declared and all(model.places[job].batch for job in writers)
        if is_numbered_here or len(group.bases) > 1:
            yield group
