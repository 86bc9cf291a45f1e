"""Whether a job that joins will ever do so at its present pace.

It is admitted once its table has the barrier at which the tables that it joins stand. One whose
commits all come when those stand at later barriers already would have to be faster, or they slower.
"""

from strandline.core.versions.completions import Completions
from strandline.core.versions.facts import Job, Table
from strandline.core.versions.model import Model

COMMITS = 3  # so many late ones in a row are its pace
BACK = 20  # barriers of the others that are looked at


def never_joins(model: Model, job: Job) -> str | None:
    """Why a job that joins will not be admitted at its pace, in words.

    None where nothing shows that.
    """
    place = model.places[job]
    if place.ended is not None:
        return None
    for table in sorted(model.links(place) & place.writes):
        others = _joined(model, job, table)
        done = model.done[table]
        if others and len(done.order) >= COMMITS and model.is_joining(table):
            late = [_passed_by(done, barrier, others) for barrier in done.order[-COMMITS:]]
            if all(later is not None for later in late):
                return (
                    f"job {job[1]} never joins at its pace: when it committed barrier {done.order[-1]} of "
                    f"{model.call(table)}, the tables that it joins stood at {late[-1]} already"
                )
    return None


def _joined(model: Model, job: Job, table: Table) -> list[Completions]:
    """The histories of the tables that count together already and that the job would join."""
    linked = [
        one for one in model.links(model.places[job]) if one != table and one in model.counting
    ]
    components = {id(model.components[one]): model.components[one] for one in linked}
    tables = {
        one
        for component in components.values()
        for one in component.tables
        if component.version is not None
    }
    return [model.done[one] for one in sorted(tables)]


def _passed_by(done: Completions, barrier: int, others: list[Completions]) -> int | None:
    """The greatest later barrier that all the others had when this one was committed."""
    at, fewest = done.of[barrier].committed, min(others, key=lambda one: len(one.order))
    for later in reversed([one for one in fewest.order[-BACK:] if one > barrier]):
        if all(later in one and one.of[later].committed < at for one in others):
            return later
    return None
