"""The position of a snapshot in the inputs of its table, and whether it is made from all of them.

A micro-batch goes on from the snapshot that it was written on, or from the micro-batches after it
that made nothing of the table (what they read gave no row). It breaks its table where it does not
start there, or where what it wrote on is not known to be whole; a whole replacement mends it.
"""

from strandline.core.versions.facts import Table
from strandline.core.versions.model import Model
from strandline.core.versions.steps import Step, TableState

EMPTY = TableState({})


def state_of(model: Model, step: Step, table: Table) -> TableState:
    """Return the state of the last snapshot that a step made of a table."""
    restored = step.written_to(table)[-1].restores
    if restored is not None:
        return _state_at(model, table, restored) or TableState(
            {}, broken="restored to a snapshot that is not recorded"
        )
    if step.empties(table):
        return EMPTY
    # A stated barrier says what it is made from, whichever micro-batches were skipped.
    if step.fact.stated:
        return TableState(step.own, step.unsure)
    if step.is_complete(table) or (step.replaces(table) and _reads_whole_inputs(step)):
        return TableState(step.own, step.unsure)
    micro_batches = [*idle_before(model, step, table), step]
    base = _base(model, step, table, model.steps[step.job].before(micro_batches[0]))
    if step.is_run:  # a correction stands where its parent did
        return base or TableState({}, broken="a batch run wrote a part of it")
    return _after(model, micro_batches, base)


def idle_before(model: Model, step: Step, table: Table) -> list[Step]:
    """Return the micro-batches right before this one that made nothing of the table, in order.

    What one committed to a branch, or staged, is rows that the table lacks.
    """
    steps, idle = model.steps[step.job], list[Step]()
    before = steps.before(step)
    while before is not None and table not in (*before.outputs, *before.fact.aside):
        idle.append(before)
        before = steps.before(before)
    return idle[::-1]


def _after(model: Model, micro_batches: list[Step], base: TableState | None) -> TableState:
    """Return the state after micro-batches of which only the last made a snapshot of the table."""
    first, *others = micro_batches
    before = model.steps[first.job].before(first)
    goes_on = before is not None and any(state is base for state in before.states.values())
    state = _next(model, first, base, goes_on=goes_on)
    for step in others:
        state = _next(model, step, state, goes_on=True)
    return state


def _next(model: Model, step: Step, base: TableState | None, *, goes_on: bool) -> TableState:
    """Return the state after one micro-batch on a base; None where nothing is known of it."""
    if base is None:
        return _without_base(model, step)
    broken = base.broken or _fault(model, step, base, goes_on=goes_on)
    stands = {one: at for one, at in base.stands.items() if one not in step.unsure}
    unsure = (base.unsure - step.own.keys()) | step.unsure
    return TableState(stands | step.own, unsure, broken)


def _reads_whole_inputs(step: Step) -> bool:
    return not step.began and (step.is_run or step.key[1] == 0)


def _base(model: Model, step: Step, table: Table, before: Step | None) -> TableState | None:
    """Return the state that a step was written on; None where nothing is known of it.

    before: the micro-batch before this one and before those that made nothing of the table.
    """
    first = step.written_to(table)[0]
    if first.parent is not None:
        for snapshot in step.written_on(table):
            state = _state_at(model, table, snapshot)
            if state is not None:
                return state
        if before is not None and before.outputs.get(table) is not None:
            return _after_rollback(model, step, before, table) or TableState(
                before.states[table].stands if table in before.states else {},
                broken=f"snapshot {first.parent} of it is not recorded",
            )
        return None
    return before.states.get(table) if before is not None else None


def _state_at(model: Model, table: Table, snapshot: str) -> TableState | None:
    made_by = model.made.get((table, snapshot))
    return model.steps[made_by[0]].of[made_by[1]].states.get(table) if made_by is not None else None


def _after_rollback(model: Model, step: Step, before: Step, table: Table) -> TableState | None:
    """Return the state before a rollback of ours, whose restore may be recorded by nobody."""
    rolled_back_at = model.done[table].rolled_back_at if table in model.done else float("-inf")
    if before.committed <= rolled_back_at < step.committed:
        return before.states.get(table)
    return None


def _without_base(model: Model, step: Step) -> TableState:
    """Return the state after the first micro-batch that is known of a table."""
    broken = ""
    if step.key[1] != 0:
        broken = "micro-batches before this one are not recorded"
    elif model.steps[step.job].restarted(step):
        broken = "a query began anew on a table with content"
    elif step.began:
        broken = f"its stream began in the middle of {_names(model, step.began)}"
    return TableState(step.own, step.unsure, broken or _skipped(model, step))


def _fault(model: Model, step: Step, base: TableState, *, goes_on: bool) -> str:
    """Return why a micro-batch does not go on where the snapshot stood that it was written on.

    goes_on: whether the micro-batch before it left the table in this state.
    """
    if base is EMPTY:
        return (
            "" if step.key[1] == 0 and not step.began else "it was emptied while its stream went on"
        )
    for table, start in step.began.items():
        if table in base.unsure and goes_on:
            continue
        if base.stands.get(table) != start:
            return f"its stream goes on from another snapshot of {model.call(table)} than the table shows"
    if not goes_on and not step.own.keys() | step.unsure <= step.began.keys():
        if model.steps[step.job].before(step) is None:
            return "a query began anew on a table with content"
        return "it was restored, and where its stream goes on is not known"
    return _skipped(model, step)


def _skipped(model: Model, step: Step) -> str:
    return (
        f"its stream passed over changes of {_names(model, step.skipped)}" if step.skipped else ""
    )


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
