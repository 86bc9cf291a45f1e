"""The reasons for refusing a registration over REST.

A second writer, a cycle through other tables, two groups.

Each refusal says why, and nothing has changed. Events cannot be refused: what they show is folded
in, and a second writer makes its table untracked.
"""

from collections.abc import Iterable

from strandline.core.versions.facts import Job, JobRegistered, Table
from strandline.core.versions.group_jobs import NO_TABLES, Tables
from strandline.core.versions.model import Model
from strandline.errors import RefusedError


def refuse_registration(model: Model, wanted: JobRegistered) -> None:
    """Raise a RefusedError (writer, cycle, groups) when the job cannot have these tables."""
    tables = Tables(frozenset(wanted.reads), frozenset(wanted.writes)) | tables_of(
        model, wanted.job
    )
    _refuse_writers(model, wanted.job, tables.writes)
    _refuse_groups(model, wanted, tables)
    _refuse_cycle(model, wanted.job, tables)


def refuse_group(model: Model, group: str, roots: Iterable[Table]) -> None:
    """Raise a RefusedError when a base table belongs to another group.

    A base table that is made from tracked tables is an error, too.
    """
    for table in roots:
        current = model.group_of.get(table, group)
        if current != group:
            raise RefusedError(f"{model.call(table)}: belongs to group {current} already", "groups")
        if model.sources(table):
            writer = model.writer(table)
            raise RefusedError(
                f"{model.call(table)}: "
                f"job {writer[1] if writer else ''} makes it from tracked tables",
                "writer",
            )


def tables_of(model: Model, job: Job) -> Tables:
    """Return the tables of a job, by place and by registration."""
    registration, place = model.registered.get(job), model.places.get(job)
    registered = registration.tables if registration is not None else NO_TABLES
    return registered | place.effective if place is not None else registered


def _refuse_writers(model: Model, job: Job, writes: frozenset[Table]) -> None:
    for other in sorted(model.places.keys() | model.registered.keys()):
        if other == job:
            continue
        for table in sorted(writes & tables_of(model, other).writes):
            raise RefusedError(
                f"{model.call(table)}: is written by job {other[1]} ({_state(model, other)})",
                "writer",
            )


def _state(model: Model, job: Job) -> str:
    place = model.places.get(job)
    if place is None:
        return "registered; unregister it first"
    return "running" if place.ended is None else "stopped; retire it first"


def _refuse_groups(model: Model, wanted: JobRegistered, tables: Tables) -> None:
    groups = {model.group_of[table] for table in tables.reads if table in model.group_of}
    if wanted.group is not None:
        groups.add(wanted.group)
    place = model.places.get(wanted.job)
    if place is not None and not place.inferred:
        groups.add(place.group)
    if len(groups) > 1:
        words = f"{wanted.job[1]}: sources of {len(groups)} groups ({', '.join(sorted(groups))})"
        raise RefusedError(f"{words}, whose barriers are not comparable", "groups")


def _refuse_cycle(model: Model, job: Job, tables: Tables) -> None:
    """Walk from the job's sinks downstream.

    A source of the job at the end of a path closes a cycle.
    """
    made_from: dict[Table, set[Table]] = {}
    for other in (model.places.keys() | model.registered.keys()) - {job}:
        theirs = tables_of(model, other)
        for table in theirs.reads:
            made_from.setdefault(table, set()).update(theirs.writes - {table})
    targets = tables.reads - tables.writes
    waiting, visited = sorted(tables.writes), set(tables.writes)
    while waiting:
        for downstream in made_from.get(waiting.pop(), ()):
            if downstream in targets or downstream in tables.writes:
                raise RefusedError(
                    f"{job[1]}: reads {downstream[1]}, which is made from what it writes: a cycle",
                    "cycle",
                )
            if downstream not in visited:
                visited.add(downstream)
                waiting.append(downstream)
