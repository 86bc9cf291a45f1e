"""The rule for a rollback.

What the tables of a group committed after a barrier no longer counts.
"""

from strandline.core.versions.completions import Completions
from strandline.core.versions.derive import cut_back
from strandline.core.versions.facts import RolledBack, Table
from strandline.core.versions.group_jobs import GroupJob
from strandline.core.versions.model import Group, Model


def roll_back(model: Model, fact: RolledBack) -> None:
    """Take back the barriers after the one that a group was rolled back to."""
    group = model.group(fact.group)
    group.generation += 1
    group.stands.clear()
    for table in fact.tables:
        done = model.done.setdefault(table, Completions())
        done.cut_back(fact.barrier, fact.at, _runs_over(model, table), group.generation)
        cut_back(model, table)
    group.forgotten = min(group.forgotten, fact.barrier + 1)
    _bear_anew(model, group)
    for place in model.places.values():
        if place.group == fact.group and place.writes & set(fact.tables):
            place.position = _newest_written(model, place)


def _newest_written(model: Model, place: GroupJob) -> int | None:
    positions = [model.done[table].last for table in place.writes if table in model.done]
    return max((position for position in positions if position is not None), default=None)


def _runs_over(model: Model, table: Table) -> set[str]:
    """Return the runs of the table's writer that ended or were taken over.

    A run that was only lost may still run.
    """
    over: set[str] = set()
    for job in model.writers.get(table, ()):
        place, endings = model.places[job], model.endings.get(job, {})
        over |= {run for run, ending in endings.items() if ending.how != "LOST"} | (
            place.runs - {place.run}
        )
    return over


def _bear_anew(model: Model, group: Group) -> None:
    """Keep the creation times of barriers that a table still has, and forget the others."""
    group.births, group.order, group.looked_at = {}, [], 0
    for table, name in model.group_of.items():
        if name == group.name:
            for barrier in model.done[table].order:
                group.born(barrier, model.done[table].first(barrier))
