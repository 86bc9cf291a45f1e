"""Members: streams that hold their tables at one version from a barrier on.

A stream counts from the barrier after the newest one of its group when it has caught up. Whatever
was answered before lies below that barrier, so no version goes back. Batch jobs connect nothing.
"""

from collections.abc import Iterable
from itertools import islice
from math import inf

from strandline.core.versions.completions import greatest_common
from strandline.core.versions.facts import Job, Table
from strandline.core.versions.group_jobs import GroupJob
from strandline.core.versions.model import Model


def settle_members(model: Model) -> None:
    """Decide for the jobs that a fact touched from which barrier on they count."""
    while model.unsettled:
        place = model.places.get(model.unsettled.pop())
        if place is not None:
            _settle(model, place)


def tables_changed(model: Model, tables: Iterable[Table], jobs: Iterable[Job] = ()) -> None:
    """Note the jobs whose tables became others, or tracked or untracked."""
    jobs = set(jobs) | {job for table in tables for job in model.jobs_at(table)}
    model.unsettled |= jobs
    model.rederive |= jobs & model.steps.keys()


def pipeline(model: Model, tables: Iterable[Table], barrier: int) -> tuple[set[Table], int | None]:
    """Return all tables that members connect with `tables` at a barrier.

    The second value is the greatest barrier from which one of these members counts, or None.
    """
    connected = set(tables)
    waiting = list(connected)
    members = dict[Job, int]()
    while waiting:
        table = waiting.pop()
        for jobs in (model.readers.get(table, ()), model.writers.get(table, ())):
            for job in jobs:
                place = model.places[job]
                if job in members or place.counts_from is None or place.counts_from > barrier:
                    continue
                members[job] = place.counts_from
                waiting.extend(place.connected - connected)
                connected |= place.connected
    return connected, max(members.values(), default=None)


def version(model: Model, tables: Iterable[Table], up_to: float = inf) -> int | None:
    """Return the greatest barrier, `up_to` at most, that the pipelines of `tables` completed."""
    answer = version_and_pipeline(model, tables, up_to)
    return answer[0] if answer is not None else None


def version_and_pipeline(
    model: Model, tables: Iterable[Table], up_to: float = inf
) -> tuple[int, set[Table]] | None:
    """Return that version with the tables of the pipelines at it.

    A pipeline is smaller at an earlier barrier, where fewer members count.
    """
    tables = list(tables)
    barrier = greatest_common([model.done[table] for table in tables], up_to)
    while barrier is not None:
        connected, counts_from = pipeline(model, tables, barrier)
        common = greatest_common([model.done[table] for table in connected], barrier)
        if common is not None and common >= (counts_from or 0):
            return common, connected
        if counts_from is None:
            return None
        barrier = counts_from - 1
    return None


def versions(model: Model, tables: Iterable[Table]) -> dict[Table, int | None]:
    """Return the version of each table alone; tables of one pipeline share the work."""
    versions_of: dict[Table, int | None] = {}
    for table in tables:
        if table in versions_of or table not in model.done:
            continue
        together = version_and_pipeline(model, [table])
        if together is None:
            versions_of[table] = None
        else:
            barrier, connected = together
            versions_of |= dict.fromkeys(connected, barrier)
    return versions_of


def _settle(model: Model, place: GroupJob) -> None:
    links = model.connects(place)
    tracked = all(
        model.is_tracked(table) for table in place.tables if _is_of_group(model, place, table)
    )
    between_runs = place.ended is not None and place.ended.how == "COMPLETE"
    if not tracked or between_runs or not links & place.writes:
        place.counts_from, place.connected = None, frozenset()
        return
    if place.counts_from is not None and place.connected == links:
        return
    place.counts_from, place.connected = None, frozenset()
    group = model.group(place.group)
    recent = set(islice(reversed(group.order), model.caught_up))
    if all(recent & model.done[table].of.keys() for table in links & place.writes):
        place.counts_from, place.connected = group.order[-1] + 1, frozenset(links)


def _is_of_group(model: Model, place: GroupJob, table: Table) -> bool:
    return model.group_of.get(table) == place.group
