"""The barriers that a batch run completes, and why the last one of a table completed none."""

from strandline.core.versions.facts import Table
from strandline.core.versions.group_jobs import GroupJob
from strandline.core.versions.model import Model
from strandline.core.versions.steps import Step


def barriers_of_run(
    model: Model, place: GroupJob, step: Step, table: Table, barrier: int | None
) -> set[int]:
    """Return the barriers at which all inputs of a batch run stood; look at one only, if given."""
    if _fault(model, place, step, table):
        return set()
    inputs = _inputs(model, place, step)
    barriers = model.carried_together({read: step.own[read] for read in inputs}, barrier)
    if _counts_itself(step, table):
        barriers &= set(model.done[table].carried.get(step.itself[table], ()))
    return barriers


def why_last_run_completed_none(model: Model, table: Table) -> str:
    """In words, why the newest run that wrote a batch table completed no barrier, with a remedy.

    Empty where it completed one, or where only the next run can tell.
    """
    jobs = model.writers.get(table, set()) & model.steps.keys()
    steps = [step for job in jobs for step in model.steps[job].of.values() if table in step.outputs]
    if not steps:
        return ""
    step = max(steps, key=lambda step: step.when)
    last = step.written_to(table)[-1]
    if not step.is_run or last.restores is not None or last.snapshot in model.done[table].carried:
        return ""
    place = model.places[step.job]
    return _fault(model, place, step, table) or _why_together_none(model, place, step, table)


def _inputs(model: Model, place: GroupJob, step: Step) -> set[Table]:
    named = step.own.keys() | step.unsure
    return {table for table in named if model.group_of.get(table) == place.group}


def _counts_itself(step: Step, table: Table) -> bool:
    """Return whether a run that read its own table counts it as an input."""
    return table in step.itself and not step.is_complete(table)


def _fault(model: Model, place: GroupJob, step: Step, table: Table) -> str:
    """Return why a run completes nothing, whatever its inputs carry; empty where it may.

    An input outside of the group that was made from its tables counts too, and carries none.
    """
    last = step.written_to(table)[-1]
    if place.batch and not (last.replaces or last.completes):
        return (
            "its last run wrote only a part of it; replace the whole table, or assert that it is"
            " complete: spark.strandline.completes=true"
        )
    for used in step.fact.used:
        behind = [one for one in used.behind if model.group_of.get(one) == place.group]
        if behind and model.group_of.get(used.table) != place.group:
            called = model.call(used.table)
            return (
                f"its last run read {called}, which was made from {model.call(behind[0])} and"
                f" carries no barriers; give the job that writes {called} the group:"
                " spark.strandline.group"
            )
    inputs = _inputs(model, place, step)
    if not inputs:
        return "its last run read no table of the group"
    unsure = sorted(map(model.call, inputs & step.unsure))
    if unsure:
        return f"which snapshot of {unsure[0]} its last run read is not certain; run it again"
    began = sorted(map(model.call, inputs & step.began.keys()))
    if began:
        return f"its last run read only what was new in {began[0]}; read the whole table"
    return ""


def _why_together_none(model: Model, place: GroupJob, step: Step, table: Table) -> str:
    """Return why the inputs of a run carry no barrier together."""
    inputs = sorted(_inputs(model, place, step))
    for read in inputs:
        if not model.done[read].carried.get(step.own[read]):
            return (
                f"its last run read snapshot {step.own[read]} of {model.call(read)}, which carries"
                " no barrier; run it again on a version"
            )
    if _counts_itself(step, table):
        return "its last run read its own table; the next run decides"
    return (
        f"its last run read {', '.join(map(model.call, inputs))} at different barriers;"
        " let it read a version: spark.strandline.catalog.NAME.consistency=strong"
    )
