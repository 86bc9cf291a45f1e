"""The position of a snapshot in the inputs of its table, and whether it is made from all of them.

A micro-batch goes on from the snapshot that it was written on, or from the micro-batches after it
that made nothing of the table (what they read gave no row). It breaks its table where it does not
start there, or where the snapshot that it wrote on is not known to be whole. The first of a query
may find rows that nobody recorded. A whole replacement mends it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from strandline.core.versions.facts import Table
from strandline.core.versions.model import Model
from strandline.core.versions.steps import Step, TableState

PASSED_OVER = "its stream passed over changes of"
BEGAN_ANEW = "a query with a new checkpoint writes a table with content"


def states_of(model: Model, step: Step) -> dict[Table, TableState]:
    """Return where each table stands after a step, written by it or not."""
    states = {table: _state_of(model, step, table) for table in step.outputs}
    place = model.places.get(step.job)
    if place is None or step.is_run:
        return states
    # A commit to a branch, or a staged one, is rows that the table lacks.
    before = model.steps[step.job].before(step)
    for table in place.writes - states.keys() - set(step.fact.aside):
        left = before.states.get(table) if before is not None else None
        states[table] = _next(model, step, left, goes_on=True)
    return states


def stood_before(model: Model, step: Step, table: Table) -> Mapping[Table, str]:
    """Return where the micro-batch before this one stood; empty where that is not known."""
    before = model.steps[step.job].before(step)
    return before.states[table].stands if before is not None and table in before.states else {}


def _state_of(model: Model, step: Step, table: Table) -> TableState:
    """Return the state of the last snapshot that a step made of a table."""
    last = step.written_to(table)[-1]
    if last.restores is not None:
        return _state_at(model, table, last.restores) or TableState(
            {}, broken="restored to a snapshot that is not recorded"
        )
    if step.empties(table):
        return TableState({}, snapshot=last.snapshot, is_empty=True)
    # A stated barrier says what it is made from, whichever micro-batches were skipped.
    is_whole = step.is_complete(table) or (step.replaces(table) and _reads_whole_inputs(step))
    if step.fact.stated or is_whole:
        broken = "" if is_whole else _found_content(model, step, table)
        return TableState(step.own, step.unsure, broken, last.snapshot)
    if step.is_run:  # a correction stands where its parent did
        base = _written_on(model, step, table)
        return base or TableState({}, broken="a batch run wrote only a part of it")
    return replace(_after(model, step, table), snapshot=last.snapshot)


def _found_content(model: Model, step: Step, table: Table) -> str:
    """Return why a commit that states its barrier is not whole: its query found rows of others."""
    on, base = step.written_on(table), _written_on(model, step, table)
    if not on or step.was_empty(table) or (base is not None and base.is_empty):
        return ""
    if step.key[1] != 0:  # its query's first micro-batch decides
        before = model.steps[step.job].before(step)
        left = base or (before.states.get(table) if before is not None else None)
        return left.broken if left is not None else ""
    if base is None:
        return _began_on(on)
    goes_on = step.own.keys() | step.unsure <= step.began.keys() and all(
        base.stands.get(one) == start for one, start in step.began.items()
    )
    return base.broken if goes_on else BEGAN_ANEW


def _began_on(snapshots: Sequence[str]) -> str:
    return f"its stream began on snapshot {snapshots[0]}, which no run of the group made"


def _after(model: Model, step: Step, table: Table) -> TableState:
    """Return the state after a micro-batch that goes on from what it was written on."""
    before = model.steps[step.job].before(step)
    left = before.states.get(table) if before is not None else None
    on, base = step.written_on(table), _written_on(model, step, table)
    if step.was_empty(table) and _reads_whole_inputs(step):
        return TableState(step.own, step.unsure, _skipped(model, step))
    unknown = ""
    if base is None and on and not step.was_empty(table):
        unknown = _began_on(on)
    if before is not None and left is not None and base is None:
        is_other = left.snapshot != "" and on and left.snapshot not in on
        if is_other and not _rolled_back_between(model, table, before, step):
            left = replace(left, broken=f"snapshot {on[0]} of it is not recorded")
        elif left.snapshot == "":
            left = replace(left, broken=left.broken or unknown)
        return _next(model, step, left, goes_on=True)
    if left is not None and base is not None and base.snapshot == left.snapshot:
        return _next(model, step, left, goes_on=True)
    idle = _idle_before(model, step, table)
    for stream in idle:
        base = _next(model, stream, base, goes_on=stream is not idle[0])
    after = _next(model, step, base, goes_on=bool(idle))
    return replace(after, broken=after.broken or unknown)


def _written_on(model: Model, step: Step, table: Table) -> TableState | None:
    """Return the state that a step was written on; None where nothing is known of it."""
    states = (_state_at(model, table, snapshot) for snapshot in step.written_on(table))
    return next(filter(None, states), None)


def _idle_before(model: Model, step: Step, table: Table) -> list[Step]:
    """Return the micro-batches right before this one that made nothing of the table, in order."""
    steps, idle = model.steps[step.job], list[Step]()
    before = steps.before(step)
    while before is not None and table not in (*before.outputs, *before.fact.aside):
        idle.append(before)
        before = steps.before(before)
    return idle[::-1]


def _next(model: Model, step: Step, base: TableState | None, *, goes_on: bool) -> TableState:
    """Return the state after one micro-batch on a base; None where nothing is known of it."""
    if base is None:
        return _without_base(model, step)
    broken = base.broken or _fault(model, step, base, goes_on=goes_on)
    stands = {table: at for table, at in base.stands.items() if table not in step.unsure}
    unsure = (base.unsure - step.own.keys()) | step.unsure
    return TableState(stands | step.own, unsure, broken, base.snapshot)


def _reads_whole_inputs(step: Step) -> bool:
    return not step.began and (step.is_run or step.key[1] == 0)


def _state_at(model: Model, table: Table, snapshot: str) -> TableState | None:
    made_by = model.made.get((table, snapshot))
    return model.steps[made_by[0]].of[made_by[1]].states.get(table) if made_by is not None else None


def _rolled_back_between(model: Model, table: Table, before: Step, step: Step) -> bool:
    """Return whether we rolled the table back; its restore may be recorded by nobody."""
    done = model.done.get(table)
    return done is not None and before.committed <= done.rolled_back_at < step.committed


def _without_base(model: Model, step: Step) -> TableState:
    """Return the state after the first micro-batch that is known of a table."""
    broken = ""
    if step.key[1] != 0:
        broken = "micro-batches before this one are not recorded"
    elif model.steps[step.job].restarted(step):
        broken = BEGAN_ANEW
    elif step.began:
        broken = f"its stream began in the middle of {_names(model, step.began)}"
    return TableState(step.own, step.unsure, broken or _skipped(model, step))


def _fault(model: Model, step: Step, base: TableState, *, goes_on: bool) -> str:
    """Return why a micro-batch does not go on where the snapshot stood that it was written on.

    goes_on: whether the micro-batch before it left the table in this state.
    """
    if base.is_empty:
        return (
            "" if step.key[1] == 0 and not step.began else "it was emptied while its stream went on"
        )
    for table, start in step.began.items():
        if table in base.unsure and goes_on:
            continue
        if base.stands.get(table) != start:
            return (
                f"its stream goes on from another snapshot of {model.call(table)} "
                "than the table shows"
            )
    if not goes_on and not step.own.keys() | step.unsure <= step.began.keys():
        if model.steps[step.job].before(step) is None:
            return BEGAN_ANEW
        return "it was restored, and the position of its stream is unknown"
    return _skipped(model, step)


def _skipped(model: Model, step: Step) -> str:
    return f"{PASSED_OVER} {_names(model, step.skipped)}" if step.skipped else ""


def _names(model: Model, tables: "frozenset[Table] | dict[Table, str]") -> str:
    return ", ".join(sorted(map(model.call, tables)))


def why_broken(model: Model, table: Table) -> str:
    """Return why the last commit of a stream's table completes nothing; empty where it may."""
    writers = model.counted_writers(table) & model.steps.keys()
    steps = [step for job in writers for step in model.steps[job].of.values()]
    written = [step for step in steps if table in step.outputs]
    if not written:
        return ""
    newest = max(written, key=lambda step: step.when)
    return "" if newest.is_run else newest.states[table].broken
