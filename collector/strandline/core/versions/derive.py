"""Barriers that no commit states: they follow from what was read.

A micro-batch or batch run completes barrier b if what it has consumed of every input is exactly
that input's state at b. The first micro-batch that ends there defines snap(T, b); one that ends
where the one before it did (a flush without new data) carries none, so a micro-batch counts only
when it is known where the one before it ended. All of this is a function of the set of facts: in
whichever order they come, the same barriers are derived.
"""

import math
from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from strandline.core.versions.completing import complete, contradicted, take_back
from strandline.core.versions.completions import Completion
from strandline.core.versions.facts import BarrierCommitted, Job, Table, Used
from strandline.core.versions.managed_jobs import ManagedJob
from strandline.core.versions.model import Model
from strandline.core.versions.steps import RUN, Step, Steps

MOST = 2  # steps that are kept of a job, in terms of the barriers that are


def note_step(
    model: Model,
    place: ManagedJob,
    fact: BarrierCommitted,
    used: Iterable[Used],
    tables: tuple[Table, ...],
) -> None:
    """Take in a commit that states no barrier, or only the number of its micro-batch."""
    step = _step(place, fact, tuple(used), tables)
    if not _counts(model, step):
        return
    steps = model.steps.setdefault(place.job, Steps())
    for one in steps.add(step, MOST * model.keeps):
        _evaluate(model, place, steps, one)
    for table in step.stands:
        if model.is_batch_table(table):  # which of its runs counts depends on who read them
            model.rederive |= model.writers[table] & model.steps.keys()


def settle(model: Model) -> None:
    """Follow what a fact changed to everything made from it."""
    while model.rederive or model.changed:
        if model.rederive:
            _derive_again(model, model.rederive.pop())
            continue
        table, barrier = model.changed.popleft()
        for job in sorted(model.readers.get(table, ())):
            _follow(model, model.places[job], table, barrier)


def cut_back(model: Model, table: Table) -> None:
    """Forget the steps that a rollback of `table` undid."""
    done = model.done[table]
    kept = done.of[done.last].committed if done.last is not None else float("-inf")
    for job in model.writers.get(table, ()):
        if job in model.steps:
            model.steps[job].cut_back(kept)


def _step(
    place: ManagedJob, fact: BarrierCommitted, used: tuple[Used, ...], tables: tuple[Table, ...]
) -> Step:
    inputs = [one for one in used if one.table not in tables]
    stands, unsure = _stands(inputs)
    key = (fact.query or fact.run, fact.batch) if fact.batch is not None else (fact.run, RUN)
    return Step(
        key,
        fact,
        stands,
        unsure,
        {one.table: one.since for one in inputs if one.since is not None},
        frozenset(one.table for one in inputs if one.lookup),
        tuple(_output(place, fact, number) for number in range(len(tables))),
        tables,
        {one.table: one.shows if one.exact else "" for one in used if one.table in tables},
    )


def _stands(inputs: Iterable[Used]) -> tuple[dict[Table, str], frozenset[Table]]:
    """The snapshot of each input that a step stands at for certain, and the inputs of which none is certain."""
    shown: dict[Table, set[str]] = {}
    for one in inputs:
        shown.setdefault(one.table, set()).add(one.shows if one.exact else "")
    certain = {
        table: next(iter(ids)) for table, ids in shown.items() if len(ids) == 1 and "" not in ids
    }
    return certain, frozenset(shown.keys() - certain.keys())


def _output(place: ManagedJob, fact: BarrierCommitted, number: int) -> Completion:
    one = fact.written[number]
    committed = fact.committed if one.at is None else one.at
    return Completion(
        fact.barrier, one.snapshot, one.parent, place.job, fact.started, committed, (), fact.batch, fact.run,
        derived=True, query=fact.query,
    )  # fmt: skip


def _counts(model: Model, step: Step) -> bool:
    """Whether it is of the time since the last rollback of what it wrote."""
    pairs = zip(step.tables, step.outputs, strict=True)
    return all(
        table not in model.done or model.done[table].takes(output) for table, output in pairs
    )


def _follow(model: Model, place: ManagedJob, table: Table, barrier: int) -> None:
    """See again to what a job makes of a table whose snapshot of a barrier changed."""
    for output in place.writes - {table}:
        if output in model.done:
            _check(model, output, table, barrier)
    carrier = model.done[table].of.get(barrier) if table in model.done else None
    steps = model.steps.get(place.job)
    if carrier is None or steps is None:
        return
    for key in sorted(steps.at.get((table, carrier.snapshot), ())):
        _evaluate(model, place, steps, steps.of[key], barrier)


def _check(model: Model, output: Table, table: Table, barrier: int) -> None:
    """Take back what an input contradicts; complete what it no longer does."""
    done = model.done[output]
    found = done.of.get(barrier)
    if found is not None and (contradicted(model, output, found) or _lost(model, found, table)):
        take_back(model, output, barrier)
        model.rederive |= model.writers.get(output, set()) & model.steps.keys()
    for held in done.withheld.pop(barrier, ()):
        complete(model, model.domain_of[output], output, held)


def _lost(model: Model, found: Completion, table: Table) -> bool:
    """Whether it was derived from an input that does not have the barrier any more."""
    return (
        found.derived
        and any(used.table == table for used in found.used)
        and found.barrier not in model.done[table]
    )


def _derive_again(model: Model, job: Job) -> None:
    """See to everything that a job did: its tables or those that it reads are others now."""
    place = model.places.get(job)
    if place is None:
        return
    for output in place.writes:
        if output in model.done:
            _take_back_contradicted(model, output)
    steps = model.steps.get(job, Steps())
    for table in _tables_of_runs(steps):
        _complete_runs(model, place, table)
    for step in [step for step in steps.of.values() if not step.is_run]:
        _evaluate(model, place, steps, step)


def _take_back_contradicted(model: Model, output: Table) -> None:
    for barrier in list(model.done[output].order):
        if contradicted(model, output, model.done[output].of[barrier]):
            take_back(model, output, barrier)


def _tables_of_runs(steps: Steps) -> set[Table]:
    """The tables that the job's batch runs write."""
    return {table for step in steps.of.values() if step.is_run for table in step.tables}


def _evaluate(
    model: Model, place: ManagedJob, steps: Steps, step: Step, barrier: int | None = None
) -> None:
    """Complete what a step completes; of one barrier only, if given."""
    for table, output in zip(step.tables, step.outputs, strict=True):
        if step.is_run:
            _complete_runs(model, place, table)
        elif _writes(model, place, table) and _is_exact(step, table):
            _complete_streamed(model, place, steps, step, table, output, barrier)


def _writes(model: Model, place: ManagedJob, table: Table) -> bool:
    """Whether what the job writes there counts.

    No stream does as well, and the table is of the job's group.
    """
    return place.job in model.counted_writers(table) and model.domain_of.get(table) == place.domain


def _is_exact(step: Step, table: Table) -> bool:
    return all(
        one.exact
        for one, written in zip(step.fact.written, step.tables, strict=True)
        if written == table
    )


def _complete_streamed(
    model: Model,
    place: ManagedJob,
    steps: Steps,
    step: Step,
    table: Table,
    output: Completion,
    barrier: int | None,
) -> None:
    inputs = _inputs(model, place, step)
    if (
        not inputs
        or not _is_first(steps, step, inputs)
        or (steps.restarted(step) and not _replaces(step, table))
    ):
        return
    used = tuple(Used(one, at) for one, at in sorted(step.stands.items()))
    own = model.done[table].of.get(step.fact.barrier) if step.fact.stated else None
    if own is not None and _is_stated(own, output):
        return  # nothing contradicts the barrier that it states
    for number in _barriers_at(model, {one: step.stands[one] for one in inputs}, barrier):
        _complete(model, place, table, replace(output, barrier=number, used=used))


def _is_stated(own: Completion, output: Completion) -> bool:
    return own.snapshot == output.snapshot and not own.derived


def _complete(model: Model, place: ManagedJob, table: Table, completion: Completion) -> None:
    complete(model, place.domain, table, completion)
    if completion.barrier in model.done[table]:
        place.position = max(completion.barrier, place.position or completion.barrier)


def _replaces(step: Step, table: Table) -> bool:
    """Return whether nothing is left of the rows that were in the table before."""
    own = [
        one for one, written in zip(step.fact.written, step.tables, strict=True) if written == table
    ]
    return all(one.replaces or one.completes for one in own)


def _inputs(model: Model, place: ManagedJob, step: Step) -> set[Table] | None:
    """The inputs that have to stand at a barrier.

    None where it is not known of each where the step stands in it.

    A stream from a table of no group stands at none. A table that is looked up may be untracked; it
    constrains nothing.
    """
    own = {one for one in step.stands.keys() | step.unsure if one not in place.writes}
    managed = {
        one for one in own if model.domain_of.get(one) == place.domain and model.is_managed(one)
    }
    linked = model.links(place) & place.reads - place.writes
    if not own - managed <= step.lookups or not (managed | linked) <= step.stands.keys():
        return None
    return managed


def _is_first(steps: Steps, step: Step, inputs: set[Table]) -> bool:
    """Whether no micro-batch before it ended where it ends.

    It says where it began, or the one before it is known.
    """
    if step.key[1] == 0 or any(
        step.began.get(one, at) != at for one, at in step.own.items() if one in inputs
    ):
        return True
    before = steps.before(step)
    return before is not None and any(
        before.stands.get(one, step.stands[one]) != step.stands[one] for one in inputs
    )


def _barriers_at(model: Model, stands: dict[Table, str], barrier: int | None) -> list[int]:
    """The barriers at which all inputs have exactly these snapshots."""
    carried = [
        model.done[one].carried.get(at, []) if one in model.done else []
        for one, at in stands.items()
    ]
    fewest = min(carried, key=len)
    if barrier is not None:
        fewest = [barrier] if barrier in fewest else []
    done = [(model.done[one].of, at) for one, at in stands.items()] if fewest else []
    return [barrier for barrier in sorted(fewest) if _all_stand(done, barrier)]


def _all_stand(done: Iterable[tuple[Mapping[int, Completion], str]], barrier: int) -> bool:
    return all(barrier in of and of[barrier].snapshot == at for of, at in done)


def _complete_runs(model: Model, place: ManagedJob, table: Table) -> None:
    """Complete the barriers of the batch runs that replaced a table, whichever job ran them.

    Of several runs at one barrier that one counts which another job read first, for its tables
    show it; the last where none was read.
    """
    if not _writes(model, place, table):
        return
    carried: dict[str, frozenset[int]] = {}
    runs_at: dict[int, list[tuple[Job, Step]]] = {}
    for job, step in _runs_of(model, table):
        barriers = _barriers_of_run(model, model.places[job], step, table, carried)
        carried[_output_of(step, table).snapshot] = barriers
        for barrier in barriers:
            runs_at.setdefault(barrier, []).append((job, step))
    for barrier, runs in sorted(runs_at.items()):
        job, step = _counting_run(model, table, runs)
        used = tuple(Used(one, at) for one, at in sorted(step.own.items()))
        completion = replace(_output_of(step, table), barrier=barrier, used=used)
        before = model.done[table].of.get(barrier)
        if before is not None and before.derived and before.snapshot != completion.snapshot:
            take_back(model, table, barrier)
        _complete(model, model.places[job], table, completion)


def _counting_run(model: Model, table: Table, runs: list[tuple[Job, Step]]) -> tuple[Job, Step]:
    readers = model.readers.get(table, set()) & model.steps.keys()
    first_read = math.inf
    counting = runs[-1]
    for run in runs:
        place = table, _output_of(run[1], table).snapshot
        for reader in readers:
            for key in model.steps[reader].at.get(place, ()):
                read_at = model.steps[reader].of[key].fact.committed
                if read_at < first_read:
                    first_read, counting = read_at, run
    return counting


def _runs_of(model: Model, table: Table) -> list[tuple[Job, Step]]:
    """Return the batch runs that wrote a table, in the order of their commits."""
    runs = [
        (job, step)
        for job in model.counted_writers(table) & model.steps.keys()
        for step in model.steps[job].of.values()
        if step.is_run and table in step.tables and _is_exact(step, table)
    ]
    return sorted(runs, key=lambda run: run[1].when)


def _output_of(step: Step, table: Table) -> Completion:
    return step.outputs[step.tables.index(table)]


def _barriers_of_run(
    model: Model,
    place: ManagedJob,
    step: Step,
    table: Table,
    carried: Mapping[str, frozenset[int]],
) -> frozenset[int]:
    """Return the barriers at which all stood that a run read, if it replaced the whole table.

    `carried`: the barriers of the table's snapshots before. A run that read its own table counts it
    as an input, unless its author asserts that the table is complete.
    """
    made = step.fact.written[step.tables.index(table)]
    if not made.replaces and not made.completes:
        return frozenset()
    named = {one for one in step.own.keys() | step.unsure if one not in place.writes}
    inputs = {
        one for one in named if model.domain_of.get(one) == place.domain and model.is_managed(one)
    }
    if not inputs or inputs & step.unsure or inputs & step.began.keys():
        return frozenset()
    barriers = frozenset(_barriers_at(model, {one: step.own[one] for one in inputs}, None))
    if table in step.itself and not made.completes:
        return barriers & carried.get(step.itself[table], frozenset())
    return barriers
