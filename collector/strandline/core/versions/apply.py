"""apply(model, fact): one function per kind of fact.

Taking a fact twice changes nothing. Late facts are welcome: an older barrier is one more barrier, a
run that ended before it was seen to start is a stopped run. Nothing here refuses: refusals come
before facts (registration.py).
"""

from collections.abc import Callable, Iterable
from math import inf
from typing import Any

from msgspec.structs import replace

from strandline.core.versions import facts
from strandline.core.versions.completing import complete, let_go
from strandline.core.versions.completions import Completion, Completions
from strandline.core.versions.derive import forget_steps, note_step, settle
from strandline.core.versions.facts import Table, Used
from strandline.core.versions.group_jobs import (
    NO_TABLES,
    Ending,
    GroupJob,
    ReadAndWritten,
    Registration,
    Retirement,
    Tables,
)
from strandline.core.versions.members import settle_members, tables_changed
from strandline.core.versions.model import Model
from strandline.core.versions.rolled_back import roll_back
from strandline.core.versions.steps import Steps

NO_STEPS = Steps()


def apply(model: Model, fact: facts.Fact) -> None:
    """Change `model` by one fact."""
    _RULES[type(fact)](model, fact)
    settle(model)
    settle_members(model)


def _declare(model: Model, fact: facts.GroupDeclared) -> None:
    group = model.group(fact.group)
    group.declared = tuple(dict.fromkeys((*group.declared, *fact.roots)))
    for table in fact.roots:
        _belong(model, table, fact.group)
        model.roots.add(table)
    tables_changed(model, fact.roots)


def _register(model: Model, fact: facts.JobRegistered) -> None:
    registration = model.registered.setdefault(fact.job, Registration(at=fact.at))
    registration.tables |= Tables(frozenset(fact.reads), frozenset(fact.writes))
    registration.group = registration.group or fact.group
    place = model.places.get(fact.job)
    if place is not None and place.ended is None:
        _link(model, place)


def _start(model: Model, fact: facts.RunStarted) -> None:
    fact = model.without_former(fact)
    place = _place_of(model, fact)
    if place is None:
        return
    place.runs.add(fact.run)
    newer = fact.run != place.run and (fact.at, fact.run) > (place.since, place.run)
    if newer:
        place.take_over(fact.run, fact.at, model.endings.get(fact.job, {}).get(fact.run))
    if fact.run != place.run:
        return
    place.since = min(place.since, fact.at)
    if _was_only_silent(place, fact):
        place.ended = None
        model.endings.get(fact.job, {}).pop(fact.run, None)
    if place.of_run.has(fact.reads, fact.writes) and place.effective.writes and not newer:
        return
    place.of_run |= Tables(
        frozenset(map(model.name, fact.reads)), frozenset(map(model.name, fact.writes))
    )
    _link(model, place)


def _was_only_silent(place: GroupJob, fact: facts.RunStarted) -> bool:
    return place.ended is not None and place.ended.how == "LOST" and fact.seen > place.ended.at


def _place_of(model: Model, fact: facts.RunStarted) -> GroupJob | None:
    """Return the job's place, made if the job is a tracked one.

    None for other jobs, and for runs from before a retirement.
    """
    retired = model.retired.get(fact.job)
    if retired is not None and (fact.run in retired.runs or fact.at <= retired.at):
        return None
    place = model.places.get(fact.job)
    if place is not None:
        if place.inferred and fact.group is not None and fact.group != place.group:
            _move(model, place, fact.group)
        return place
    return _new_place(model, fact)


def _new_place(model: Model, fact: facts.RunStarted) -> GroupJob | None:
    registration = model.registered.get(fact.job)
    if fact.group is None and registration is None:
        return None
    named = fact.group or (registration.group if registration else None)
    group = named or inferred_group(model, fact)
    job = model.name(fact.job)
    place = model.places[job] = GroupJob(
        job, group, fact.group is None, fact.run, fact.at, batch=fact.batch
    )
    place.ended = model.endings.get(job, {}).get(fact.run)
    model.starting.add(job)
    model.group(group)
    return place


def inferred_group(model: Model, fact: facts.RunStarted | facts.JobRegistered) -> str:
    """Return the group of a job that names none.

    It is the group of its sources, else of its sinks, else one of its own.
    """
    registration = model.registered.get(fact.job)
    reads, writes = list(fact.reads), list(fact.writes)
    if registration is not None:
        reads += sorted(registration.tables.reads)
        writes += sorted(registration.tables.writes)
    groups = (model.group_of[table] for table in (*reads, *writes) if table in model.group_of)
    return next(groups, f"job:{fact.job[0]}:{fact.job[1]}")


def _link(model: Model, place: GroupJob) -> None:
    """Let the place's tables be what its registration and its runs say."""
    before = place.tables
    registration = model.registered.get(place.job)
    if registration is not None:
        place.announced = registration.tables
    place.settle()
    for table in before - place.tables:
        model.readers.get(table, set()).discard(place.job)
        model.writers.get(table, set()).discard(place.job)
    for table in place.writes:
        model.writers.setdefault(table, set()).add(place.job)
        model.abandoned.pop(table, None)
        _only_declared(model, table)
        _own(model, table, place)
    if any(model.group_of.get(table) == place.group for table in place.reads - place.writes):
        model.group(place.group).ingested -= place.writes
    for table in place.reads:
        model.readers.setdefault(table, set()).add(place.job)
        if registration is not None and table in registration.tables.reads:
            _take_as_root(model, table, place.group)
    tables_changed(model, before | place.tables, [place.job])


def _own(model: Model, table: Table, place: GroupJob) -> None:
    """Give a table the group of its writer.

    A writer of another group makes the table contested and does not move it.

    What batch jobs make of tables outside is as untracked as these.
    """
    if place.batch and not any(
        model.group_of.get(table) == place.group for table in place.reads - place.writes
    ):
        return
    owned = len(model.writers[table]) == 1 or table not in model.group_of
    if owned and not _declared_elsewhere(model, table, place.group):
        _belong(model, table, place.group)


def _declared_elsewhere(model: Model, table: Table, group: str) -> bool:
    current = model.group_of.get(table, group)
    return current != group and table in model.group(current).declared


def _take_as_root(model: Model, table: Table, group: str) -> None:
    """Make an untracked source a base table of the group that reads it first.

    No tracked job writes such a source, or ever wrote it. A declared group has the base tables that
    were declared, and no others.
    """
    if model.group(group).declared:
        return
    if not model.writers.get(table) and table not in model.abandoned and table not in model.roots:
        _belong(model, table, group)
        model.roots.add(table)


def _only_declared(model: Model, table: Table) -> None:
    """Keep a table with a writer as a base table only if its group says so."""
    group = model.group_at(table)
    if group is None or table not in group.declared:
        model.roots.discard(table)


def _belong(model: Model, table: Table, group: str) -> None:
    if model.group_of.get(table, group) != group:
        model.done.pop(table, None)  # barriers of two groups are never compared
        tables_changed(model, [table])
    model.group(group)
    new = model.group_of.get(table) != group
    model.group_of[table] = group
    model.done.setdefault(table, Completions())
    for job in sorted(model.readers.get(table, ())) if new else ():
        place = model.places[job]
        if place.batch and any(write not in model.group_of for write in place.writes):
            _link(model, place)


def _move(model: Model, place: GroupJob, group: str) -> None:
    """Move a job to the group that its events name after all.

    What was inferred goes, with the tables that only it held there.
    """
    tables, left = place.tables, place.group
    place.group, place.inferred = group, False
    model.group(group)
    for table in {table for table in tables if model.group_of.get(table) == left}:
        others = {
            job
            for job in model.jobs_at(table)
            if job != place.job and model.places[job].group == left
        }
        if not others and table not in model.group(left).declared:
            _belong(model, table, group)
    place.counts_from = None
    tables_changed(model, tables, [place.job])


def _commit(model: Model, fact: facts.BarrierCommitted) -> None:
    place, (reads, writes) = _who_committed(model, fact)
    if place is None or fact.group not in (None, place.group):
        return  # barriers of another group than the job's
    used = tuple([_renamed(read, table) for table, read in zip(reads, fact.used, strict=True)])
    if fact.stated:
        _complete_stated(model, place, fact, used, writes)
    if not fact.stated or (used and fact.batch is not None):
        _ingest_inputs(model, [use.table for use in used if not use.lookup])
        note_step(model, place, fact, used, writes)
    place.checkpoint = fact.checkpoint or place.checkpoint
    if fact.written:
        place.started_up = {}
        model.starting.discard(place.job)


def _renamed(used: Used, table: Table) -> Used:
    """The same under the table's shared name; nearly all say nothing more than the snapshot."""
    plain = Used(used.table, used.snapshot, used.aligned)
    return Used(table, used.snapshot, used.aligned) if used == plain else replace(used, table=table)


def _counts_batches(fact: facts.BarrierCommitted) -> bool:
    """Return whether the barrier may only be the number of the micro-batch."""
    return fact.batch is not None and fact.barrier == fact.batch + 1


def _complete_stated(
    model: Model,
    place: GroupJob,
    fact: facts.BarrierCommitted,
    used: tuple[Used, ...],
    writes: tuple[Table, ...],
) -> None:
    """Complete a barrier that the commit itself states."""
    for use in used:
        _complete_root(model, place, use, fact)
    if not used and _counts_batches(fact):
        place.fills |= set(writes)
        _ingest(model, place, writes)
    for table, snapshot in zip(writes, fact.written, strict=True):
        completion = _completion(place, fact, snapshot, used)
        if not used and _counts_batches(fact):
            barrier = _ingested_barrier(model, place, table, completion)
            if barrier is None:
                continue
            completion = replace(completion, barrier=barrier)
        complete(model, place.group, table, completion)
        place.position = max(completion.barrier, place.position or completion.barrier)


def _ingest_inputs(model: Model, inputs: Iterable[Table]) -> None:
    """Take as base tables what a commit read, where streams filled it before."""
    for table in inputs:
        for job in sorted(model.writers.get(table, ())):
            if table in model.places[job].fills:
                _ingest(model, model.places[job], [table])


def _ingest(model: Model, place: GroupJob, writes: Iterable[Table]) -> None:
    """Take as base tables what jobs read and a stream fills that reads none of the group."""
    group = model.group(place.group)
    if group.declared or any(
        model.group_of.get(table) == place.group for table in place.reads - place.writes
    ):
        return
    for table in writes:
        readers = (model.places[job] for job in model.readers.get(table, ()) if job != place.job)
        if table not in group.ingested and any(_reads(model, reader, table) for reader in readers):
            group.ingested.add(table)


def _reads(model: Model, place: GroupJob, table: Table) -> bool:
    """Return whether a job reads a table of its own group, and not to look rows up in it."""
    lookups = model.steps.get(place.job, NO_STEPS).lookups
    return model.group_of.get(table) == place.group and table not in lookups


def _ingested_barrier(
    model: Model, place: GroupJob, table: Table, completion: Completion
) -> int | None:
    """Return the barrier of a micro-batch that fills a table, or None where it carries none.

    A query that lost its checkpoint counts its micro-batches from 0 again; its barriers go on from
    the last one before it. Barriers of several base tables are cut through all of them instead.
    """
    bases = model.group(place.group).bases
    done = model.done.get(table)
    if (table in bases and len(bases) > 1) or done is None:
        return None
    query = completion.query
    last = done.of[done.last] if done.last is not None else None
    if last is not None and _is_others(last, query) and completion.committed < last.committed:
        return None  # another query went on from the table before this event arrived
    if query not in place.began_after:
        begins_anew = last is not None and query != "" and bool(place.began_after)
        place.began_after[query] = last.barrier if last is not None and begins_anew else 0
    barrier = completion.barrier + place.began_after[query]
    is_taken = any(_is_others(candidate, query) for candidate in done.candidates(barrier))
    return None if is_taken else barrier


def _is_others(completion: Completion, query: str) -> bool:
    """Return whether another query than this one made a snapshot; not where one has no id."""
    return "" not in (query, completion.query) and query != completion.query


def _who_committed(
    model: Model, fact: facts.BarrierCommitted
) -> tuple[GroupJob | None, ReadAndWritten]:
    """The job's place, and the tables that it read and wrote, under their shared names."""
    named = (
        tuple([use.table for use in fact.used]),
        tuple([snapshot.table for snapshot in fact.written]),
    )
    place = model.places.get(fact.job)
    if place is not None and place.repeats(fact, named):
        return place, place.last_tables
    batch = fact.batch is None and not fact.stated
    _start(
        model, facts.RunStarted(fact.job, fact.run, fact.started, fact.group, *named, batch=batch)
    )
    place = model.places.get(fact.job)
    if place is not None and place.batch != batch:
        place.batch = batch
        tables_changed(model, place.tables, [place.job])
    shared = tuple(map(model.name, named[0])), tuple(map(model.name, named[1]))
    if place is not None:
        _let_go_of_before(model, place, fact)
        if place.run == fact.run:
            place.last_tables = shared
    return place, shared


def _let_go_of_before(model: Model, place: GroupJob, fact: facts.BarrierCommitted) -> None:
    """Drop the tables that only earlier runs used, at the first commit of a new run."""
    left = place.of_before
    if fact.query in model.steps.get(place.job, NO_STEPS).queries:
        # the sources of a query are always the same, but a micro-batch may name those alone that
        # had something new
        return
    if (
        fact.run == place.run
        and fact.written
        and (fact.used or not left.reads)
        and (left.reads or left.writes)
    ):
        place.of_before = NO_TABLES
        if not left.reads | left.writes <= place.of_run.reads | place.of_run.writes:
            _link(model, place)


def _completion(
    place: GroupJob,
    fact: facts.BarrierCommitted,
    written: facts.WrittenSnapshot,
    used: tuple[Used, ...],
) -> Completion:
    committed = fact.committed if written.at is None else written.at
    run = place.run if fact.run == place.run else fact.run  # one object for all barriers of a run
    return Completion(
        fact.barrier, written.snapshot, written.parent, place.job, fact.started, committed, used,
        fact.batch, run, query=fact.query, generation=fact.generation,
    )  # fmt: skip


def _complete_root(model: Model, place: GroupJob, used: Used, fact: facts.BarrierCommitted) -> None:
    """Fill in the base table's snapshot of a barrier for reads under it that state none."""
    table = used.table
    if used.aligned and table not in model.group_of:
        _take_as_root(model, table, place.group)
        tables_changed(model, [table])
    completed = model.done.get(table)
    if (
        table in model.roots
        and not model.writers.get(table)
        and completed is not None
        and fact.barrier not in completed
    ):
        read = Completion(fact.barrier, used.snapshot, None, None, fact.started, fact.started)
        complete(model, place.group, table, read)


def _cut(model: Model, fact: facts.RootsCut) -> None:
    for snapshot in fact.snapshots:
        # a cut shows the table that has the name now, whatever the clock of the server says
        at = max(fact.at, model.reused.get(snapshot.table, fact.at))
        root = Completion(fact.barrier, snapshot.snapshot, snapshot.parent, None, at, at)
        complete(model, fact.group, snapshot.table, root)
        for job in model.writers.get(snapshot.table, ()):
            model.places[job].position = fact.barrier


def _end(model: Model, fact: facts.RunEnded) -> None:
    endings = model.endings.setdefault(fact.job, {})
    endings[fact.run] = Ending(fact.at, fact.how, max(fact.at, fact.heard))
    place = model.places.get(fact.job)
    if place is not None and place.run == fact.run:
        place.ended = endings[fact.run]
        model.unsettled.add(fact.job)


def _retire(model: Model, fact: facts.JobRetired) -> None:
    model.registered.pop(fact.job, None)
    place = model.places.pop(fact.job, None)
    forget_steps(model, fact.job)
    model.starting.discard(fact.job)
    if place is None:
        return
    model.group(place.group).stands.pop(fact.job, None)
    runs = frozenset(place.runs | set(model.endings.pop(fact.job, {})))
    model.retired[fact.job] = Retirement(fact.at, fact.why, runs)
    for table in place.tables:
        model.readers.get(table, set()).discard(fact.job)
        model.writers.get(table, set()).discard(fact.job)
    for table in place.writes:
        if not model.writers.get(table):
            model.abandoned[table] = fact.job
            _only_declared(model, table)
    tables_changed(model, place.tables)


def _place(model: Model, fact: facts.JobPlaced) -> None:
    place = model.places.get(fact.job)
    model.starting.discard(fact.job)
    if place is not None and place.position is None:
        place.started_up, place.start_barrier, place.placed = (
            dict(fact.snapshots),
            fact.barrier,
            True,
        )


def _find(model: Model, fact: facts.TableFound) -> None:
    """Let every registration say the table's name.

    Jobs that counted with the announced table count with this one.
    """
    if fact.announced in model.group_of and fact.table not in model.group_of:
        _rename(model, fact.announced, fact.table)
    for job, registration in model.registered.items():
        before, registration.tables = (
            registration.tables,
            registration.tables.renamed(fact.announced, fact.table),
        )
        if registration.tables is not before and job in model.places:
            _link(model, model.places[job])


def _rename(model: Model, announced: Table, table: Table) -> None:
    """Give the table all that was held of the announced one: the name has no history yet."""
    held: tuple[dict[Table, Any], ...] = (
        model.group_of, model.done, model.writers, model.readers, model.abandoned,
    )  # fmt: skip
    for of in held:
        if announced in of:
            of[table] = of.pop(announced)
    for place in model.places.values():
        place.rename(announced, table)
    if announced in model.roots:
        model.roots.remove(announced)
        model.roots.add(table)


def _move_name(_model: Model, _fact: facts.TableRenamed) -> None:
    """Facts come under the names that their tables have now (renames.py)."""


def _reuse(model: Model, fact: facts.NameReused) -> None:
    """Let go of the barriers that the name had while it may have meant another table."""
    if fact.at <= model.reused.get(fact.table, -inf):
        return
    model.reused[fact.table] = fact.at
    done = model.done.get(fact.table)
    last = done.last_before(fact.at) if done is not None else None
    if last is not None:
        let_go(model, model.group_of[fact.table], fact.table, last)
    places = [model.places[job] for job in sorted(model.jobs_at(fact.table))]
    for place in places:
        place.of_before = place.of_before.without(fact.table)
        if place.since < fact.at:
            place.of_run = place.of_run.without(fact.table)
            place.last_tables = ((), ())
    for place in places:
        _link(model, place)
    for job in sorted(model.jobs_at(fact.table)):
        _link(model, model.places[job])
    model.rederive |= model.readers.get(fact.table, set()) & model.steps.keys()


_RULES: dict[type[facts.Fact], Callable[[Model, Any], None]] = {
    facts.BarrierCommitted: _commit,
    facts.RunStarted: _start,
    facts.RunEnded: _end,
    facts.RootsCut: _cut,
    facts.JobRegistered: _register,
    facts.GroupDeclared: _declare,
    facts.JobRetired: _retire,
    facts.JobPlaced: _place,
    facts.RolledBack: roll_back,
    facts.TableFound: _find,
    facts.TableRenamed: _move_name,
    facts.NameReused: _reuse,
}
