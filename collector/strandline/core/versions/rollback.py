"""Plans to take a table and everything made from it back to a barrier.

Incremental where a barrier exists that all of them completed and still have, and whose Spark state
all their jobs retain; else full: clear, and replay from the base tables. Steps are idempotent, each
with a condition before and after.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from strandline.core.versions.facts import Job, Table
from strandline.core.versions.model import Group, Model, descendants
from strandline.core.versions.rollback_statements import (
    GENERATION,
    StoredTable,
    clear,
    restore,
    restored_when,
)
from strandline.errors import RefusedError


@dataclass(frozen=True, slots=True)
class RollbackStep:
    """A step of a plan.

    It is done once `after` holds, and must not begin before `before` holds.
    """

    action: str
    target: str
    before: str
    after: str
    details: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """Steps in order.

    `barrier` is where an incremental plan ends; `why` says why the plan is a full one.
    """

    kind: Literal["incremental", "full"]
    group: str
    barrier: int | None
    generation: int
    tables: tuple[Table, ...]
    jobs: tuple[Job, ...]
    steps: tuple[RollbackStep, ...]
    why: str = ""


def plan(
    model: Model,
    table: Table,
    barrier: int,
    exists: Callable[[Table, str], bool] = lambda table, snapshot: True,
    retained: Mapping[Job, int] | None = None,
    stored: Mapping[Table, StoredTable] | None = None,
) -> Plan:
    """Return the plan to take `table` back to `barrier`, or to the newest possible one before it.

    Raises a RefusedError for a barrier that the group never had.

    `exists`: whether a table still has a snapshot. `retained`: per job the oldest barrier whose
    state it has; a job that is not named has them all. `stored`: how tables are reached.
    """
    if not model.is_tracked(table):
        raise RefusedError(f"{model.why_untracked(table)}: it cannot be rolled back", "untracked")
    group = model.group(model.group_of[table])
    _refuse_unknown(model, table, group, barrier)
    tables = descendants(model, table)
    jobs = tuple(dict.fromkeys(job for table in tables if (job := model.writer(table)) is not None))
    barrier_found = newest_restorable(model, tables, jobs, barrier, exists, retained or {})
    generation = group.generation + 1
    reached = {table: (stored or {}).get(table, StoredTable(model.call(table))) for table in tables}
    if barrier_found is not None:
        steps = _incremental(model, reached, jobs, barrier_found, generation)
        return Plan(
            "incremental", group.name, barrier_found, generation, tuple(tables), jobs, steps
        )
    _refuse_root(model, table, barrier, tables)
    cleared = [table for table in tables if model.sources(table)]
    steps = _full(model, {table: reached[table] for table in cleared}, jobs, generation)
    names = ", ".join(map(model.call, tables))
    why = (
        f"no barrier up to {barrier} is left in all of {names} and in the checkpoints of their jobs"
    )
    return Plan("full", group.name, None, generation, tuple(cleared), jobs, steps, why)


def _refuse_unknown(model: Model, table: Table, group: Group, barrier: int) -> None:
    if barrier == 0 or barrier in group.births or barrier < group.forgotten:
        return  # 0: back to before the first one
    had = "has no barrier yet"
    if group.order:
        had = f"never had barrier {barrier}; it has {group.order[0]} to {group.order[-1]}"
    raise RefusedError(f"{model.call(table)}: group {group.name} {had}", "no_version")


def _refuse_root(model: Model, table: Table, barrier: int, tables: list[Table]) -> None:
    """A full plan starts from the base tables as they are: it takes none of them back."""
    newest = model.done[table].last
    if not model.sources(table) and newest is not None and barrier < newest:
        raise RefusedError(
            f"{model.call(table)} is a base table, so it goes back only together with all "
            f"tables made from it, and no barrier up to {barrier} is left in all of "
            f"{', '.join(map(model.call, tables))} and in the checkpoints of their jobs",
            "base_table",
        )


def newest_restorable(
    model: Model,
    tables: list[Table],
    jobs: tuple[Job, ...],
    barrier: int,
    exists: Callable[[Table, str], bool],
    retained: Mapping[Job, int],
) -> int | None:
    """b*: the newest barrier up to `barrier` that all tables have and all jobs can go back to."""
    oldest = max((retained[job] for job in jobs if job in retained), default=None)
    for candidate in model.done[tables[0]].up_to(barrier):
        if oldest is not None and candidate < oldest:
            return None
        if all(_has(model, table, candidate, exists) for table in tables):
            return candidate
    return None


def _has(model: Model, table: Table, barrier: int, exists: Callable[[Table, str], bool]) -> bool:
    done = model.done[table]
    return barrier in done and exists(table, done.of[barrier].snapshot)


def _incremental(
    model: Model,
    tables: dict[Table, StoredTable],
    jobs: tuple[Job, ...],
    barrier: int,
    generation: int,
) -> tuple[RollbackStep, ...]:
    restores = [
        _restore(table, stored, model.done[table].of[barrier].snapshot, generation)
        for table, stored in reversed(tables.items())
    ]
    rewind = [_rewind(model, job, barrier) for job in reversed(jobs)]
    return (*_stops(jobs), *restores, *rewind, _raise(generation), *_restarts(jobs))


def _full(
    model: Model, tables: dict[Table, StoredTable], jobs: tuple[Job, ...], generation: int
) -> tuple[RollbackStep, ...]:
    stopped = [job for job in jobs if any(model.writer(table) == job for table in tables)]
    clears = [_clear(table, stored, generation) for table, stored in reversed(tables.items())]
    forget = [
        RollbackStep(
            "clear checkpoint",
            _shown(job),
            "the job is stopped",
            "the folder is empty",
            _checkpoint(model, job),
        )
        for job in reversed(stopped)
    ]
    return (
        *_stops(tuple(stopped)),
        *clears,
        *forget,
        _raise(generation),
        *_restarts(tuple(stopped)),
    )


def _stops(jobs: tuple[Job, ...]) -> list[RollbackStep]:
    return [
        RollbackStep(
            "stop job", _shown(job), "every job downstream of it is stopped", "it is not running"
        )
        for job in reversed(jobs)
    ]


def _restarts(jobs: tuple[Job, ...]) -> list[RollbackStep]:
    return [
        RollbackStep(
            "restart job",
            _shown(job),
            "every job upstream of it runs",
            "a new run of it is running",
        )
        for job in jobs
    ]


def _raise(generation: int) -> RollbackStep:
    before = f"generation {generation - 1}, and all steps before are done"
    return RollbackStep(
        "raise generation", "group", before, f"answers show generation {generation}"
    )


def _restore(table: Table, stored: StoredTable, snapshot: str, generation: int) -> RollbackStep:
    """The table's own property fences its writer.

    An aligned job of an earlier generation commits nothing more.
    """
    details = (("snapshotId", snapshot), *_reached(stored, restore(stored, snapshot, generation)))
    after = restored_when(stored, snapshot, generation)
    return RollbackStep("roll back table", _shown(table), "its writer is stopped", after, details)


def _clear(table: Table, stored: StoredTable, generation: int) -> RollbackStep:
    begins = "" if stored.format in ("delta", "paimon", "hudi") else "its history begins anew, "
    return RollbackStep(
        "clear table",
        _shown(table),
        "its writer and all its readers are stopped",
        f"the table has no rows, {begins}and its {GENERATION} is {generation}",
        _reached(stored, clear(stored, generation)),
    )


def _reached(stored: StoredTable, statements: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Return the details that lead to a table, with the statements where there are any."""
    details = [("table", stored.called), ("format", stored.format), ("location", stored.location)]
    details += [("sql", ";\n".join(statements))] if statements else []
    return tuple((key, value) for key, value in details if value)


def _rewind(model: Model, job: Job, barrier: int) -> RollbackStep:
    """Return the checkpoint's files to delete.

    Those are the files after the micro-batch that committed the barrier.
    """
    place = model.places[job]
    batches = {
        model.done[table].of[barrier].batch
        for table in place.writes
        if barrier in model.done.get(table, ())
    }
    batch = next((number for number in sorted(b for b in batches if b is not None)), None)
    last = f"micro-batch {batch}" if batch is not None else f"the micro-batch of barrier {barrier}"
    details = (*_checkpoint(model, job), ("batchId", str(batch) if batch is not None else ""))
    after = f"offsets/ and commits/ end with {last}"
    return RollbackStep("cut checkpoint", _shown(job), "the job is stopped", after, details)


def _checkpoint(model: Model, job: Job) -> tuple[tuple[str, str], ...]:
    return (("checkpointLocation", model.places[job].checkpoint or ""),)


def _shown(name: tuple[str, str]) -> str:
    return f"{name[0]}:{name[1]}"
