"""Barriers that no commit states: they follow from what was read.

A micro-batch or batch run carries barrier b if what it has consumed of every input is exactly that
input's state at b. All of this is a function of the set of facts: in whichever order they come, the
same barriers are derived.
"""

from collections import Counter, deque
from collections.abc import Iterable

from msgspec.structs import replace

from strandline.core.versions.batch_runs import barriers_of_run
from strandline.core.versions.completing import complete, contradicted, take_back
from strandline.core.versions.completions import Completion
from strandline.core.versions.facts import BarrierCommitted, Job, Table, Used
from strandline.core.versions.group_jobs import GroupJob
from strandline.core.versions.model import Group, Model
from strandline.core.versions.steps import RUN, Step, Steps
from strandline.core.versions.table_states import states_of, stood_before

MOST = 2  # steps that are kept of a job, in terms of the barriers that are
MOST_VISITS = 10  # of a step, for events may state a ring of parents


def note_step(
    model: Model,
    place: GroupJob,
    fact: BarrierCommitted,
    used: Iterable[Used],
    tables: tuple[Table, ...],
) -> None:
    """Take in a commit that states no barrier, or only the number of its micro-batch."""
    step = _step(place, fact, tuple(used), tables)
    if not _counts(model, step):
        return
    steps = model.steps.setdefault(place.job, Steps())
    before = steps.of.get(step.key)
    if before is not None and (before.when > step.when or before.fact == fact):
        return
    if before is not None:
        _forget(model, steps, before)
    steps.put(step)
    if not step.lookups <= steps.lookups:
        steps.lookups |= step.lookups
        model.rederive.add(step.job)
    for table, output in step.outputs.items():
        model.made[table, output.snapshot] = step.job, step.key
        for basis in step.written_on(table):
            model.based.setdefault((table, basis), set()).add((step.job, step.key))
    while len(steps.of) > MOST * model.keeps:
        _forget(model, steps, next(iter(steps.of.values())))
    _settle_states(model, step)
    group = model.group(place.group)
    if len(group.bases) > 1 and steps.of.get(step.key) is step:
        group.stands[place.job] = _base_snapshots(model, group, step)


def settle(model: Model) -> None:
    """Follow what a fact changed to everything made from it."""
    while model.rederive or model.changed:
        if model.rederive:
            _derive_again(model, model.rederive.pop())
            continue
        table, barrier = model.changed.popleft()
        for job in sorted(model.readers.get(table, ())):
            _follow(model, model.places[job], table, barrier)
        for job in sorted(model.writers.get(table, ())):
            _follow_restores(model, job, table, barrier)


def cut_back(model: Model, table: Table) -> None:
    """Forget the steps that a rollback of `table` undid."""
    done = model.done[table]
    committed_until = done.of[done.last].committed if done.last is not None else float("-inf")
    for job in model.writers.get(table, ()):
        steps = model.steps.get(job)
        if steps is None:
            continue
        for step in [step for step in steps.of.values() if step.committed > committed_until]:
            _forget(model, steps, step)
        queries = {query for query, _ in steps.of}
        steps.queries = {query: at for query, at in steps.queries.items() if query in queries}


def forget_steps(model: Model, job: Job) -> None:
    """Forget the steps of a retired job; what they made carries what it carried."""
    steps = model.steps.pop(job, Steps())
    for step in list(steps.of.values()):
        _forget(model, steps, step)


def _step(
    place: GroupJob, fact: BarrierCommitted, used: tuple[Used, ...], tables: tuple[Table, ...]
) -> Step:
    inputs = [use for use in used if use.table not in tables]
    lookups = frozenset(one.table for one in inputs if one.lookup)
    ends: dict[Table, set[str]] = {}
    for read in inputs:
        if read.table not in lookups:
            ends.setdefault(read.table, set()).add(read.shows if read.exact else "")
    own = {table: min(ids) for table, ids in ends.items() if len(ids) == 1 and "" not in ids}
    outputs: dict[Table, Completion] = {}
    for number, table in enumerate(tables):
        outputs[table] = _output(place, fact, number)
    return Step(
        (fact.query or fact.run, fact.batch) if fact.batch is not None else (fact.run, RUN),
        place.job,
        fact,
        own,
        frozenset(ends.keys() - own.keys()),
        {one.table: one.since for one in inputs if one.since is not None},
        lookups,
        frozenset(one.table for one in inputs if one.skipped_changes),
        outputs,
        {use.table: use.shows if use.exact else "" for use in used if use.table in tables},
        written_tables=tables,
    )


def _output(place: GroupJob, fact: BarrierCommitted, number: int) -> Completion:
    written = fact.written[number]
    committed = fact.committed if written.at is None else written.at
    return Completion(
        fact.barrier, written.snapshot, written.parent, place.job, fact.started, committed, (),
        fact.batch, fact.run, derived=True, query=fact.query,
    )  # fmt: skip


def _counts(model: Model, step: Step) -> bool:
    """Return whether it is of the time since the last rollback of what it wrote."""
    return all(
        table not in model.done or model.done[table].takes(output)
        for table, output in step.outputs.items()
    )


def _forget(model: Model, steps: Steps, step: Step) -> None:
    steps.leave(step)
    del steps.of[step.key]
    for table, output in step.outputs.items():
        model.made.pop((table, output.snapshot), None)
        for basis in step.written_on(table):
            children = model.based.get((table, basis), set())
            children.discard((step.job, step.key))
            if not children:
                model.based.pop((table, basis), None)


def _settle_states(model: Model, step: Step) -> None:
    """Say where a step stands, and then those that were written on what it made."""
    waiting, visits = deque([step]), Counter[int]()
    while waiting:
        step = waiting.popleft()
        steps = model.steps[step.job]
        states = states_of(model, step)
        if visits and (states == step.states or visits[id(step)] == MOST_VISITS):
            continue
        visits[id(step)] += 1
        steps.place(step, states)
        for table in step.outputs if step.fact.stated else ():
            if table in model.done:
                _check(model, table, step.fact.barrier)
        _evaluate(model, step)
        following = steps.after(step)
        if following is not None:
            waiting.append(following)
        for table, output in step.outputs.items():
            for job, key in sorted(model.based.get((table, output.snapshot), ())):
                waiting.append(model.steps[job].of[key])


def _base_snapshots(model: Model, group: Group, step: Step) -> dict[Table, str]:
    """Return the base snapshots that a step shows, through the tables between.

    Empty where one is shown twice, at different snapshots, or where the step is not whole.
    """
    states = [step.states[table] for table in step.outputs]
    if not states or any(state.broken or state.unsure for state in states):
        return {}
    snapshots: dict[Table, str] = {}
    waiting = [*states[0].stands.items()]
    queued = set(waiting)
    for table, snapshot in waiting:
        if table in group.bases:
            if snapshots.setdefault(table, snapshot) != snapshot:
                return {}
            continue
        made_by = model.made.get((table, snapshot))
        made = model.steps[made_by[0]].of[made_by[1]].states if made_by is not None else {}
        if table in made:
            between = made[table].stands.items() - queued
            queued |= between
            waiting.extend(between)
    return snapshots


def _follow(model: Model, place: GroupJob, table: Table, barrier: int) -> None:
    """See again to what a job makes of a table whose candidates of a barrier changed."""
    for output in sorted(place.writes - {table}):
        if output in model.done:
            _check(model, output, barrier)
    steps = model.steps.get(place.job)
    if steps is None:
        return
    for candidate in model.done[table].candidates(barrier):
        for key in sorted(steps.at.get((table, candidate.snapshot), ())):
            _evaluate(model, steps.of[key], barrier)


def _check(model: Model, output: Table, barrier: int) -> None:
    """Take back what an input contradicts; complete what it no longer does."""
    done = model.done[output]
    for candidate in done.candidates(barrier):
        made_by = model.made.get((output, candidate.snapshot))
        if not candidate.derived:
            if contradicted(model, output, candidate):
                take_back(model, output, candidate)
                model.rederive |= model.writers.get(output, set()) & model.steps.keys()
        elif made_by is not None:
            _evaluate(model, model.steps[made_by[0]].of[made_by[1]], barrier)
    for held in done.withheld.pop(barrier, ()):
        complete(model, model.group_of[output], output, held)


def _follow_restores(model: Model, job: Job, table: Table, barrier: int) -> None:
    """See again to the runs of a job that restored a snapshot, or read their own table."""
    steps = model.steps.get(job)
    for step in list(steps.of.values()) if steps is not None else ():
        if table in step.itself:
            _evaluate(model, step, barrier)


def _derive_again(model: Model, job: Job) -> None:
    """See to everything that a job did: its tables or those that it reads are others now."""
    place = model.places.get(job)
    if place is None:
        return
    for output in sorted(place.writes & model.done.keys()):
        for barrier in list(model.done[output].order):
            _check(model, output, barrier)
    for step in list(model.steps.get(job, Steps()).of.values()):
        _evaluate(model, step)


def _evaluate(model: Model, step: Step, barrier: int | None = None) -> None:
    """Let what a step made carry its barriers and no others; look at one barrier only, if given."""
    place = model.places.get(step.job)
    for table, output in step.outputs.items():
        if place is None or model.group_of.get(table) != place.group:
            continue
        barriers = _barriers_of(model, place, step, table, barrier)
        done = model.done[table]
        for carried in list(done.carried.get(output.snapshot, ())):
            if (barrier is None or carried == barrier) and carried not in barriers:
                _take_back_derived(model, table, output.snapshot, carried)
        if not barriers:
            continue
        used = tuple(Used(one, at) for one, at in sorted(step.states[table].stands.items()))
        for number in sorted(barriers):
            complete(model, place.group, table, replace(output, barrier=number, used=used))
            if number in done:
                place.position = max(number, place.position or number)


def _take_back_derived(model: Model, table: Table, snapshot: str, barrier: int) -> None:
    for candidate in model.done[table].candidates(barrier):
        if candidate.snapshot == snapshot and candidate.derived:
            take_back(model, table, candidate)


def _barriers_of(
    model: Model, place: GroupJob, step: Step, table: Table, barrier: int | None
) -> set[int]:
    """Return the barriers that the last snapshot which a step made of a table carries."""
    last = step.written_to(table)[-1]
    if not all(write.exact for write in step.written_to(table)):
        return set()
    if last.restores is not None:
        carried = model.done[table].carried.get(last.restores, ())
        return {candidate for candidate in carried if barrier is None or candidate == barrier}
    state = step.states[table]
    if step.is_run:
        return barriers_of_run(model, place, step, table, barrier)
    if place.job not in model.counted_writers(table) or state.broken:
        return set()
    if step.fact.stated and _is_stated_barrier(model, step, table):
        return set()
    inputs = _inputs(model, place, step, table)
    if not inputs or not _moved(model, step, table, inputs):
        return set()
    began = model.steps[step.job].queries[step.key[0]]
    if any(began < model.reused.get(read, began) for read in inputs):
        return set()  # its table shows rows of another one that had the name
    return model.carried_together({read: state.stands[read] for read in inputs}, barrier)


def _is_stated_barrier(model: Model, step: Step, table: Table) -> bool:
    """Return whether no other barrier than the stated one may be derived.

    One that is contradicted may only be the number of the micro-batch.
    """
    fact = step.fact
    if fact.batch is None or fact.barrier != fact.batch + 1:
        return True
    return any(
        candidate.snapshot == step.outputs[table].snapshot and not candidate.derived
        for candidate in model.done[table].candidates(step.fact.barrier)
    )


def _inputs(model: Model, place: GroupJob, step: Step, table: Table) -> set[Table] | None:
    """Return the inputs that have to stand at a barrier, tracked or not.

    None where it is not known of each where the step stands in it. A stream from a table of no
    group stands at none.
    """
    state = step.states[table]
    consumed = (state.stands.keys() | state.unsure) - place.writes
    of_group = {read for read in place.reads if model.group_of.get(read) == place.group}
    counted = consumed | (of_group - place.writes - model.steps[step.job].lookups)
    if not counted <= state.stands.keys():
        return None
    if any(model.group_of.get(read) != place.group for read in counted):
        return None
    return counted


def _moved(model: Model, step: Step, table: Table, inputs: set[Table]) -> bool:
    """Return whether the micro-batch is known to have consumed something; a flush has not."""
    if any(step.began.get(table, at) != at for table, at in step.own.items() if table in inputs):
        return True
    if step.key[1] == 0 and not step.began:
        return True
    was = stood_before(model, step, table)
    stands = step.states[table].stands
    return any(was.get(read, stands[read]) != stands[read] for read in inputs)
