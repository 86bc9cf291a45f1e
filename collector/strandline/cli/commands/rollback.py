"""`strandline rollback TABLE BARRIER`.

The steps that take a table and everything made from it back. It changes nothing.

With --execute it carries them out on Iceberg and Delta tables, after a rehearsal; run again after a
kill, it goes on. With --done, once somebody has carried the steps out by hand, their conditions are
checked and versions go on in the next generation.
"""

import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence
from shlex import quote
from typing import Any, TypeAlias

from sqlalchemy import Connection

from strandline.cli.models import job_called, store_of, table_called, tell
from strandline.core.access.granted import EVERYTHING
from strandline.core.versions.facts import Fact, RolledBack, Table
from strandline.core.versions.model import Model, descendants
from strandline.core.versions.rollback import Plan, RollbackStep, plan
from strandline.errors import RefusedError
from strandline.escaping import escaped
from strandline.execution.lake_tables import LakeTables
from strandline.execution.rollback import Executor, Open, begin, open_rollback, running_jobs
from strandline.runtime.follower import Follower
from strandline.settings import Settings
from strandline.store.versions.lookup import call
from strandline.store.versions.outside_jobs import in_words, jobs_outside, outside_answer
from strandline.store.versions.rollback_answers import plan_answer
from strandline.store.versions.stored_tables import stored_tables

Called: TypeAlias = Mapping[str, str]  # a step's target to what people call it


def run(options: Namespace, settings: Settings) -> int:
    """Print the plan, or carry it out."""
    if options.execute or options.rehearse:
        return _execute(options, settings)
    tables = LakeTables(options.catalog_property)
    with store_of(settings) as (_, follower):
        unchecked = _refuse_unmet(follower, options, tables) if options.done else []

        def decide(
            connection: Connection, model: Model, now: float
        ) -> tuple[Sequence[Fact], tuple[dict[str, Any], list[str]]]:
            rollback = _planned(connection, model, options)
            back = RolledBack(rollback.group, rollback.tables, rollback.barrier or 0, now)
            outside = jobs_outside(connection, rollback.tables, rollback.jobs)
            answer = plan_answer(rollback) | {"outside": [outside_answer(job) for job in outside]}
            if options.done:
                lines = _begun(rollback, running_jobs(model, rollback), unchecked)
                return [back], (answer | {"unchecked": unchecked}, lines)
            words = in_words(connection, model, outside)
            called = {":".join(table): model.call(table) for table in rollback.tables}
            called |= {":".join(job): job[1] for job in rollback.jobs}
            return [], (answer, [*_lines(rollback, called), *_beside(words), *_next(options)])

        answer, lines = follower.decide(decide)
    tell(answer, lambda: lines, as_json=options.json)
    return 0


def _refuse_unmet(follower: Follower, options: Namespace, tables: LakeTables) -> list[str]:
    """Refuse steps whose conditions do not hold; return why others cannot be checked here."""
    with follower.question(EVERYTHING) as (connection, model):
        rollback = _planned(connection, model, options)
        table = table_called(connection, model, options.table)
    unmet, unchecked = Executor(follower, Open(table, options.barrier, rollback), tables).unmet()
    if unmet:
        raise RefusedError(f"the plan is not carried out: {'; '.join(unmet)}", "not_done")
    return unchecked


def _planned(
    connection: Connection, model: Model, options: Namespace, tables: LakeTables | None = None
) -> Plan:
    """Return the plan; with `tables`, to snapshots that these still have."""
    call(connection, model, model.group_of)
    table = table_called(connection, model, options.table)
    group = model.group_at(table)
    newest = (group.newest if group is not None else None) or 0
    lost = {job_called(model, text): newest + 1 for text in options.lost_state}
    stored = stored_tables(connection, descendants(model, table))

    def exists(table: Table, snapshot: str) -> bool:
        return tables is None or tables.has(stored[table], snapshot)

    return plan(model, table, options.barrier, exists, lost, stored)


def _execute(options: Namespace, settings: Settings) -> int:
    tables = LakeTables(options.catalog_property)
    with store_of(settings) as (_, follower):
        with follower.question(EVERYTHING) as (connection, model):
            opened = _opened(connection, model, options, tables)
        if opened.raised:
            _say(
                f"already done: generation {opened.plan.generation} of group "
                f"{opened.plan.group} has begun"
            )
            _say(_restart(opened.plan))
            return 0
        executor = Executor(follower, opened, tables)
        _say(f"{opened.plan.kind} plan {_where(opened.plan)}; rehearsal:")
        for line in executor.rehearse():
            _say(line)
        if options.rehearse:
            _say("nothing has been changed")
            return 0
        begin(follower, opened)
        executor.carry_out(_say)
    _say(f"generation {opened.plan.generation} of group {opened.plan.group} has begun")
    _say(_restart(opened.plan))
    return 0


def _opened(connection: Connection, model: Model, options: Namespace, tables: LakeTables) -> Open:
    """Return the rollback that was begun and is not over, else a new one of what is still there."""
    call(connection, model, model.group_of)
    table = table_called(connection, model, options.table)
    begun = open_rollback(connection, model, model.group_of.get(table, ""))
    if begun is not None and (begun.table, begun.barrier) == (table, options.barrier):
        is_over = begun.raised and running_jobs(model, begun.plan)
        if not is_over:
            return begun
    return Open(table, options.barrier, _planned(connection, model, options, tables))


def _restart(plan: Plan) -> str:
    return f"start these jobs now, in this order: {', '.join(name for _, name in plan.jobs)}"


def _say(line: str) -> None:
    sys.stdout.write(escaped(line) + "\n")
    sys.stdout.flush()  # a process that is killed has reported what is done


def _begun(plan: Plan, running: Sequence[str], unchecked: Sequence[str]) -> list[str]:
    where = f"barrier {plan.barrier}" if plan.barrier is not None else "the base tables"
    begun = (
        f"generation {plan.generation} of group {plan.group} has begun: its versions go "
        f"on from {where}"
    )
    return [
        begun,
        *(
            f"  {job} still runs from its old state: stop it, and restart it as planned"
            for job in running
        ),
        *(f"  not checked: {why}" for why in unchecked),
    ]


def _beside(words: Sequence[str]) -> list[str]:
    """Return the other users of the tables; the plan undoes nothing of theirs."""
    head = "not in the plan, because they carry no barriers here; stop those that run:"
    return [head, *(f"  {word}" for word in words)] if words else []


def _next(options: Namespace) -> list[str]:
    lost = "".join(f" --lost-state {quote(job)}" for job in options.lost_state)
    again = f"strandline rollback {quote(options.table)} {options.barrier}{lost}"
    return [
        f"nothing has been changed; {again} --execute executes it on Iceberg and Delta tables;",
        "by hand, where the plan raises the generation, run",
        f"  {again} --done",
    ]


def _lines(plan: Plan, called: Called) -> list[str]:
    lines = [
        (
            f"{plan.kind} plan {_where(plan)}; then generation {plan.generation} of "
            f"group {plan.group} begins"
        )
    ]
    for number, step in enumerate(plan.steps, 1):
        lines.append(f"{number:3}. {step.action} {called.get(step.target, step.target)}")
        lines.append(f"       when {step.before}; done when {step.after}")
        lines += [f"       {line}" for line in _by_hand(step)]
    return lines


def _where(plan: Plan) -> str:
    return (
        f"back to barrier {plan.barrier}"
        if plan.barrier is not None
        else f"from the base tables: {plan.why}"
    )


def _by_hand(step: RollbackStep) -> list[str]:
    """Return the commands to type, or the files to remove."""
    details = dict(step.details)
    folder, batch = details.get("checkpointLocation"), details.get("batchId")
    if folder and step.action == "cut checkpoint":
        return [
            (
                f"{folder}: remove the files numbered above {batch} with their .crc files, "
                "first from commits/, then from offsets/"
            )
        ]
    if folder:
        return [f"{folder}: remove all that is in it"]
    return details["sql"].split("\n") if "sql" in details else []
