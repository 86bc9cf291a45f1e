"""Carrying a rollback's plan out: the rehearsal first, then each step between its two conditions.

The plan is kept in the database from the first step on. Whoever runs the command again after a kill
goes on with that plan: what is done already is seen by its condition and left alone. Jobs are not
stopped or started here: a step begins only while none of them runs, and a job of before is fenced
by the generation in the tables themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import inf
from shlex import quote

import msgspec
from sqlalchemy import Connection, delete, insert, select, update

from strandline.core.access.granted import EVERYTHING
from strandline.core.versions.facts import Fact, RolledBack, Table
from strandline.core.versions.model import Model
from strandline.core.versions.rollback import Plan, RollbackStep
from strandline.errors import RefusedError
from strandline.execution.checkpoint_folders import CheckpointFolder
from strandline.execution.lake_tables import LakeTables
from strandline.runtime.follower import Follower
from strandline.store.schema.version_tables import open_rollbacks
from strandline.store.versions.outside_jobs import in_words, jobs_outside

Say = Callable[[str], None]
MICRO = 1_000_000


class Open(msgspec.Struct, frozen=True):
    """A rollback that has begun: what was asked for, and the plan that is being carried out."""

    table: Table
    barrier: int
    plan: Plan
    raised: bool = False


def open_rollback(connection: Connection, model: Model, group: str) -> Open | None:
    """Return the rollback of a group that has begun and is not over.

    A plan that names a table which was renamed since, or whose name another table got, is over.
    """
    row = connection.execute(
        select(open_rollbacks.c.begun_at, open_rollbacks.c.body).where(
            open_rollbacks.c.group_name == group
        )
    ).first()
    if row is None:
        return None
    opened = msgspec.json.decode(row.body, type=Open)
    # the barrier is gone, too, where a rename from before the plan came to be known after it
    holds = all(
        table in model.group_of
        and model.reused.get(table, -inf) * MICRO <= row.begun_at
        and (not opened.plan.barrier or opened.plan.barrier in model.done[table])
        for table in opened.plan.tables
    )
    return opened if holds else None


def running_jobs(model: Model, plan: Plan) -> list[str]:
    """Return the plan's jobs that run now, the most downstream first."""
    return [
        job[1]
        for job in reversed(plan.jobs)
        if job in model.places and model.places[job].ended is None
    ]


def begin(follower: Follower, wanted: Open) -> None:
    """Keep the plan, unless something stands in its way.

    That is a job that runs, of the plan or beside it, or another rollback of the group.
    """

    def decide(connection: Connection, model: Model, now: float) -> tuple[list[Fact], None]:
        _refuse_running(connection, model, wanted.plan)
        group = wanted.plan.group
        there = open_rollback(connection, model, group)
        if there is not None and not there.raised and there != wanted:
            raise RefusedError(
                f"a rollback of {there.table[1]} to barrier {there.barrier} is on its "
                "way: finish it first"
            )
        if there != wanted:
            connection.execute(delete(open_rollbacks).where(open_rollbacks.c.group_name == group))
            row = {
                "group_name": group,
                "begun_at": round(now * MICRO),
                "body": msgspec.json.encode(wanted),
            }
            connection.execute(insert(open_rollbacks).values(row))
        return [], None

    follower.decide(decide)


def _refuse_running(connection: Connection, model: Model, plan: Plan) -> None:
    running = running_jobs(model, plan)
    if running:
        raise RefusedError(
            f"stop these jobs first, in this order: {', '.join(running)}; "
            "then run the command again"
        )
    outside = [job for job in jobs_outside(connection, plan.tables, plan.jobs) if job.runs]
    if outside:
        lines = "; ".join(in_words(connection, model, outside))
        raise RefusedError(
            f"stop these jobs, which use the tables and are not in the plan: {lines}; "
            "then run the command again"
        )


@dataclass(slots=True)
class Executor:
    """One plan and the places that it changes."""

    follower: Follower
    opened: Open
    tables: LakeTables

    def rehearse(self) -> Iterator[str]:
        """Yield the changes in rows and micro-batches; raise if a step could not be done.

        Nothing is changed.
        """
        for step in self.opened.plan.steps:
            details = dict(step.details)
            match step.action:
                case "roll back table" | "clear table":
                    tables, address = self.tables.reach(details)
                    now, then = tables.rows(address, None), 0
                    if "snapshotId" in details:
                        then = tables.rows(address, details["snapshotId"])
                    yield f"  {details['table']}: {now} rows now, {then} after: {then - now:+d}"
                case "cut checkpoint" | "clear checkpoint":
                    yield from self._rehearse_folder(step)

    def unmet(self) -> tuple[list[str], list[str]]:
        """Return the steps whose conditions do not hold, and why others cannot be checked here."""
        unmet: list[str] = []
        unchecked: list[str] = []
        for number, step in enumerate(self.opened.plan.steps, 1):
            if step.action in ("stop job", "restart job", "raise generation"):
                continue
            folder = _folder(step)
            if step.action == "cut checkpoint" and folder is not None and folder.is_empty():
                unchecked.append(f"{folder.location}: no checkpoint is there")
                continue
            try:
                if not self._is_done(step):
                    what = dict(step.details).get("table", step.target)
                    unmet.append(f"{number}. {step.action} {what}: not yet: {step.after}")
            except RefusedError as error:
                unchecked.append(str(error))
        return unmet, unchecked

    def _rehearse_folder(self, step: RollbackStep) -> Iterator[str]:
        folder = _folder(step)
        if folder is None:
            yield f"  checkpoint of {step.target}: none is known, so nothing is cut"
            return
        there, batch = folder.batches("offsets"), _batch(step)
        if step.action == "clear checkpoint":
            yield f"  {folder.location}: {len(there)} micro-batches now, none after"
        elif batch is None or batch not in folder.batches("commits"):
            job = step.target.rpartition(":")[2]
            raise RefusedError(
                f"{folder.location} no longer has micro-batch {batch}: "
                f"add --lost-state {quote(job)}"
            )
        else:
            gone = sum(number > batch for number in there)
            yield (
                f"  {folder.location}: ends with micro-batch {there[-1]} now, "
                f"with {batch} after: {-gone}"
            )

    def carry_out(self, say: Say) -> None:
        """Do each step that is not done; raises RefusedError where one cannot be."""
        for number, step in enumerate(self.opened.plan.steps, 1):
            if step.action in ("stop job", "restart job"):
                continue
            what = f"{number:3}. {step.action} {dict(step.details).get('table', step.target)}"
            if self._is_done(step):
                say(f"{what}: done already")
                continue
            with self.follower.question(EVERYTHING) as (connection, model):
                _refuse_running(connection, model, self.opened.plan)
            say(f"{what} ...")
            self._do(step)
            if not self._is_done(step):
                raise RefusedError(
                    f"{step.action} {step.target}: after it, this does not hold: "
                    f"{step.after}; run it again"
                )
            say(f"{what}: done")

    def _is_done(self, step: RollbackStep) -> bool:
        details, generation = dict(step.details), self.opened.plan.generation
        match step.action:
            case "roll back table":
                tables, address = self.tables.reach(details)
                return tables.is_restored(address, details["snapshotId"], generation)
            case "clear table":
                tables, address = self.tables.reach(details)
                return tables.is_cleared(address, generation)
            case "cut checkpoint":
                folder, batch = _folder(step), _batch(step)
                return folder is None or batch is None or folder.ends_with(batch)
            case "clear checkpoint":
                folder = _folder(step)
                return folder is None or folder.is_empty()
        return self.opened.raised

    def _do(self, step: RollbackStep) -> None:
        details, generation = dict(step.details), self.opened.plan.generation
        folder, batch = _folder(step), _batch(step)
        match step.action:
            case "roll back table":
                tables, address = self.tables.reach(details)
                tables.restore(address, details["snapshotId"], generation)
            case "clear table":
                tables, address = self.tables.reach(details)
                tables.clear(address, generation)
            case "cut checkpoint" if folder is not None and batch is not None:
                folder.cut(batch)
            case "clear checkpoint" if folder is not None:
                folder.clear()
            case "raise generation":
                self._raise()

    def _raise(self) -> None:
        plan = self.opened.plan

        def decide(connection: Connection, model: Model, now: float) -> tuple[list[Fact], None]:
            _refuse_running(connection, model, plan)
            raised = msgspec.structs.replace(self.opened, raised=True)
            where = open_rollbacks.c.group_name == plan.group
            connection.execute(
                update(open_rollbacks).where(where).values(body=msgspec.json.encode(raised))
            )
            return [RolledBack(plan.group, plan.tables, plan.barrier or 0, now)], None

        self.follower.decide(decide)
        self.opened = msgspec.structs.replace(self.opened, raised=True)


def _folder(step: RollbackStep) -> CheckpointFolder | None:
    location = dict(step.details).get("checkpointLocation", "")
    return CheckpointFolder(location) if location else None


def _batch(step: RollbackStep) -> int | None:
    number = dict(step.details).get("batchId", "")
    return int(number) if number else None
