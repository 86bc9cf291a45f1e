"""Admission: when a stream's tables begin to count together, and how components merge and split.

Batch jobs connect nothing and need no admission: a table that they write is a component of its own.

A job that joins, or gains a table, counts only once the versions of all components that it touches
are equal (see components.py) and its new sinks completed that barrier; then V of none goes back.
Where none of them has a version yet, it counts at once. Upstream first: a table whose own writer is
joining admits nobody. Splits can only raise V.
"""

from collections.abc import Collection, Iterable

from strandline.core.versions.completions import Completions
from strandline.core.versions.components import Component, counted, parts
from strandline.core.versions.facts import Job, Table
from strandline.core.versions.model import Model


def resettle(
    model: Model, tables: Iterable[Table], jobs: Iterable[Job] = (), broken: Iterable[Table] = ()
) -> None:
    """After tables or jobs changed.

    Drop what no longer counts, split what is `broken`, note whoever may be admitted.
    """
    touched = set(tables)
    affected = set(jobs) | {job for table in touched for job in model.jobs_at(table)}
    broken = together(model, broken)
    for table in touched:
        if not model.is_managed(table):
            broken |= _leave(model, table)
    for job in affected:
        broken |= _drop_links(model, job)
    for table in touched:
        if model.is_managed(table):
            _arrive(model, table)
    _split(model, broken)
    for job in affected:
        _wait(model, job)
    model.may_join |= affected
    model.rederive |= affected & model.steps.keys()


def admit(model: Model) -> None:
    """Admit those jobs that can be, and then whoever waited for one of them.

    Once, at the end of a fact.
    """
    while model.may_join:
        job = model.may_join.pop()
        merged = _admitted(model, job)
        if merged is not None:
            model.may_join |= merged.joining


def together(model: Model, tables: Iterable[Table]) -> set[Table]:
    """All tables of the components of `tables`."""
    return {
        other
        for table in tables
        if table in model.components
        for other in model.components[table].tables
    }


def loosen(model: Model, table: Table) -> None:
    """Take a table out of its component, to arrive elsewhere; what is left is split."""
    left = _leave(model, table)
    for job in model.jobs_at(table):
        if job in model.places:
            model.places[job].admitted.discard(table)
    _split(model, left)


def recount(model: Model, tables: set[Table]) -> None:
    """Count the components of `tables` anew: a rollback took barriers away."""
    components = {
        id(model.components[table]): model.components[table]
        for table in tables
        if table in model.components
    }
    for component in components.values():
        model.may_join |= component.joining
        _place_part(model, component.tables, component.joining)


def _admitted(model: Model, job: Job) -> Component | None:
    """The component that `job` makes when it is admitted now, or None when it has to wait or has nothing pending."""
    place = model.places.get(job)
    if place is None:
        return None
    links = model.connects(place)
    upstream = links - place.writes
    if links <= place.admitted or any(model.is_joining(table) for table in upstream):
        return None
    sinks = links - model.counting
    touched = {id(model.components[table]): model.components[table] for table in links - sinks}
    if not _equal(model, touched.values(), sinks):
        return None
    place.admitted |= links
    model.counting |= links
    merged = _merge(model, list(touched.values()), sinks)
    place.admitted_from = merged.version or 0
    merged.joining.discard(job)
    return merged


def _equal(model: Model, touched: Collection[Component], sinks: set[Table]) -> bool:
    """Whether a common barrier >= every touched version exists, or nothing touched has one."""
    versions = {component.version for component in touched}
    if len(versions) > 1:
        return False
    version = next(iter(versions), None)
    floors = [model.floors[table] for table in sinks if table in model.floors]
    if version is None:
        return not touched or not floors
    return (
        all(version in model.done[table] for table in sinks)
        and max(floors, default=version) <= version
    )


def _merge(model: Model, touched: list[Component], sinks: set[Table]) -> Component:
    """One component of all, whose version is theirs.

    Of the new sinks only what comes after it is still counted.
    """
    if not touched:
        joining = {job for table in sinks for job in model.components[table].joining}
        return _place_part(model, sinks, joining)
    touched.sort(key=lambda component: len(component.tables))
    largest = touched.pop()
    for component in touched:
        largest.take(component)
        for table in component.tables:
            model.components[table] = largest
    for table in sinks:
        largest.take_table(table, model.done[table], model.components[table].joining)
        model.components[table] = largest
    return largest


def _leave(model: Model, table: Table) -> set[Table]:
    """Take an untracked table out of its component; what is left of that has to be split anew."""
    component = model.components.pop(table, None)
    if component is None:
        return set()
    _stop_counting(model, table, component)
    return component.tables - {table}


def _stop_counting(model: Model, table: Table, component: Component) -> None:
    """Remember what was answered for a table last, so that it does not come back with less."""
    if table in model.counting and component.version is not None:
        model.floors[table] = component.version
    model.counting.discard(table)


def _drop_links(model: Model, job: Job) -> set[Table]:
    """Forget admitted tables through which `job` no longer counts.

    Their components have to be split anew.
    """
    place = model.places.get(job)
    if place is None:
        return set()
    lost = place.admitted - model.connects(place)
    place.admitted -= lost
    return together(model, lost)


def _arrive(model: Model, table: Table) -> None:
    """Give a table a component of its own; one that no stream writes counts at once."""
    done = model.done.setdefault(table, Completions())
    if table not in model.components:
        model.components[table] = counted([table], {table: done})
    if not model.writers.get(table) or model.is_batch_table(table):
        model.counting.add(table)


def _split(model: Model, tables: set[Table]) -> None:
    """Find the connected parts among `tables` (whole components, less what left) and count each anew."""
    inside = {table for table in tables if table in model.components}
    jobs = {job for table in inside for job in model.jobs_at(table)}
    joining = {job for table in inside for job in model.components[table].joining}
    for part in parts(inside, [model.places[job].admitted for job in jobs if job in model.places]):
        _place_part(model, part, joining)


def _place_part(model: Model, part: set[Table], joining: set[Job]) -> Component:
    component = counted(part, model.done)
    component.joining = {
        job for job in joining if job in model.places and model.places[job].tables & part
    }
    for table in part:
        model.components[table] = component
    return component


def _wait(model: Model, job: Job) -> None:
    """Note at every component that `job` touches whether it still joins."""
    place = model.places.get(job)
    if place is None:
        return
    links = model.connects(place)
    pending = not links <= place.admitted
    for table in model.links(place):
        component = model.components[table]
        if pending and table in links:
            component.joining.add(job)
        else:
            component.joining.discard(job)
