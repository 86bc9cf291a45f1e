"""Forgetting barriers of long ago.

A server lives for years, and every commit of every table is a barrier.

A barrier is needed while an answer, a place or a start-up is at it or before it. Of the barriers
before all of these the last `keeps` stay, and of every table its own last ones. What goes follows
from the facts alone, so all servers forget the same.
"""

from bisect import bisect_left

from strandline.core.versions.completions import Completions, greatest_common
from strandline.core.versions.facts import Table
from strandline.core.versions.group_jobs import GroupJob
from strandline.core.versions.model import Group, Model

LONG = 20  # times `keeps`: so many barriers are kept at most for tables that have none in common


def forget(model: Model, group: Group) -> None:
    """Forget barriers of a group that nobody needs.

    Only once there are `keeps` more of them than at the last look.
    """
    if len(group.order) < group.looked_at + 2 * model.keeps:
        return
    tables = [
        table
        for table, name in model.group_of.items()
        if name == group.name and table in model.done
    ]
    needed = _needed(model, group, tables)
    place = bisect_left(group.order, needed) - model.keeps if needed is not None else 0
    if place > 0:
        before = group.order[place]
        for table in tables:
            model.done[table].forget(before, model.keeps)
        group.forget(before)
    group.looked_at = len(group.order) - model.keeps


def _needed(model: Model, group: Group, tables: list[Table]) -> int | None:
    """Return the oldest barrier that a job stands at, or that all tables have.

    None if a job may need them all.

    A weak answer may be over any of the tables, those that join too. A job that states no barriers
    needs none of them.
    """
    positions = _positions(model, group)
    histories = [model.done[table] for table in tables if _constrains(model, table)]
    if not histories or None in positions or not all(done.order for done in histories):
        return None
    common = _common(model, group, histories)
    return (
        min((common, *[position for position in positions if position is not None]))
        if common is not None
        else None
    )


def _positions(model: Model, group: Group) -> list[int | None]:
    """Return where the jobs of a group are that state barriers."""
    places = [place for place in model.places.values() if place.group == group.name]
    return [
        _position(place)
        for place in places
        if place.job not in model.steps or place.position is not None
    ]


def _common(model: Model, group: Group, histories: list[Completions]) -> int | None:
    common = greatest_common(histories)
    if common is None and len(group.order) > LONG * model.keeps:
        return min(done.order[-1] for done in histories)
    return common


def _constrains(model: Model, table: Table) -> bool:
    """Return whether answers over the table need barriers.

    One whose job has derived none is answered at none.
    """
    return model.is_tracked(table) and (
        bool(model.done[table].order) or model.writer(table) not in model.steps
    )


def _position(place: GroupJob) -> int | None:
    return place.position if place.position is not None else place.start_barrier
