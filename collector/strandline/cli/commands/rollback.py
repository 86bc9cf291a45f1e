"""`strandline rollback TABLE BARRIER`.

The steps that take a table and everything made from it back. It changes nothing.

With --execute it carries them out on Iceberg tables, after a rehearsal; run again after a kill, it
goes on. With --done, once somebody has carried the steps out by hand, versions go on in the next
generation.
"""

import sys
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from sqlalchemy import Connection

from strandline.cli.models import job_called, store_of, table_called, tell
from strandline.core.access.granted import EVERYTHING
from strandline.core.versions.facts import Fact, RolledBack, Table
from strandline.core.versions.model import Model
from strandline.core.versions.rollback import Plan, RollbackStep, plan
from strandline.escaping import escaped
from strandline.execution.iceberg_tables import IcebergTables, catalog_properties
from strandline.execution.rollback import Executor, Open, begin, open_rollback, running_jobs
from strandline.settings import Settings
from strandline.store.versions.lookup import call
from strandline.store.versions.outside_jobs import (
    OutsideJob,
    in_words,
    jobs_outside,
    outside_answer,
)

Exists: TypeAlias = Callable[[Table, str], bool]
Called: TypeAlias = Mapping[str, str]  # a step's target to what people call it


def run(options: Namespace, settings: Settings) -> int:
    """Print the plan, or carry it out."""
    if options.execute or options.rehearse:
        return _execute(options, settings)

    def decide(
        connection: Connection, model: Model, now: float
    ) -> tuple[Sequence[Fact], tuple[Plan, Called, list[str], list[OutsideJob], list[str]]]:
        found = _planned(connection, model, options)
        back = RolledBack(found.domain, found.tables, found.barrier or 0, now)
        called = {one: model.call(one) for one in found.tables} | {
            job: job[1] for job in found.jobs
        }
        names = {":".join(one): name for one, name in called.items()}
        outside = jobs_outside(connection, found.tables, found.jobs)
        words = in_words(connection, model, outside)
        return ([back] if options.done else []), (
            found,
            names,
            running_jobs(model, found),
            outside,
            words,
        )

    with store_of(settings) as (_, follower):
        found, called, running, outside, words = follower.decide(decide)
    steps = [
        {
            "action": s.action,
            "target": s.target,
            "before": s.before,
            "after": s.after,
            **dict(s.details),
        }
        for s in found.steps
    ]
    answer = {
        "kind": found.kind,
        "barrier": found.barrier,
        "generation": found.generation,
        "steps": steps,
        "outside": [outside_answer(one) for one in outside],
    }
    tell(
        answer,
        lambda: (
            _begun(found, running)
            if options.done
            else [*_lines(found, called), *_beside(words), *_next(options)]
        ),
        as_json=options.json,
    )
    return 0


def _planned(
    connection: Connection, model: Model, options: Namespace, exists: Exists = lambda *_: True
) -> Plan:
    call(connection, model, model.domain_of)
    table = table_called(connection, model, options.table)
    domain = model.domain_at(table)
    newest = (domain.newest if domain is not None else None) or 0
    lost = {job_called(model, text): newest + 1 for text in options.lost_state}
    return plan(model, table, options.barrier, exists, lost)


def _execute(options: Namespace, settings: Settings) -> int:
    tables = IcebergTables(catalog_properties(options.catalog_property))
    with store_of(settings) as (_, follower):
        with follower.question(EVERYTHING) as (connection, model):
            opened = _opened(connection, model, options, tables)
        if opened.raised:
            _say(
                f"done already: generation {opened.plan.generation} of group "
                f"{opened.plan.domain} has begun"
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
    _say(f"generation {opened.plan.generation} of group {opened.plan.domain} has begun")
    _say(_restart(opened.plan))
    return 0


def _opened(
    connection: Connection, model: Model, options: Namespace, tables: IcebergTables
) -> Open:
    """Return the rollback that was begun and is not over, else a new one of what is still there."""
    call(connection, model, model.domain_of)
    table = table_called(connection, model, options.table)
    there = open_rollback(connection, model.domain_of.get(table, ""))
    same = there is not None and (there.table, there.barrier) == (table, options.barrier)
    if there is not None and same and not (there.raised and running_jobs(model, there.plan)):
        return there  # else it is over: its jobs were started again
    found = _planned(
        connection, model, options, lambda one, snapshot: tables.has(model.call(one), snapshot)
    )
    return Open(table, options.barrier, found)


def _restart(found: Plan) -> str:
    return f"start these jobs now, in this order: {', '.join(name for _, name in found.jobs)}"


def _say(line: str) -> None:
    sys.stdout.write(escaped(line) + "\n")
    sys.stdout.flush()  # a process that is killed has reported what is done


def _begun(found: Plan, running: Sequence[str]) -> list[str]:
    where = f"barrier {found.barrier}" if found.barrier is not None else "the base tables"
    begun = (
        f"generation {found.generation} of group {found.domain} has begun: its versions go "
        f"on from {where}"
    )
    return [
        begun,
        *(
            f"  {job} still runs from its old state: stop it, and restart it as planned"
            for job in running
        ),
    ]


def _beside(words: Sequence[str]) -> list[str]:
    """Return what else uses the tables: the plan takes none of it back."""
    head = "not in the plan, for they carry no barriers here; stop those that run:"
    return [head, *(f"  {one}" for one in words)] if words else []


def _next(options: Namespace) -> list[str]:
    lost = "".join(f" --lost-state {job}" for job in options.lost_state)
    again = f"strandline rollback {options.table} {options.barrier}{lost}"
    return [
        f"nothing has been changed; {again} --execute carries it out on Iceberg tables;",
        "by hand, where the plan raises the generation, run",
        f"  {again} --done",
    ]


def _lines(found: Plan, called: Called) -> list[str]:
    lines = [
        (
            f"{found.kind} plan {_where(found)}; then generation {found.generation} of "
            f"group {found.domain} begins"
        )
    ]
    for number, step in enumerate(found.steps, 1):
        lines.append(f"{number:3}. {step.action} {called.get(step.target, step.target)}")
        lines.append(f"       when {step.before}; done when {step.after}")
        lines += [f"       {line}" for line in _by_hand(step)]
    return lines


def _where(found: Plan) -> str:
    return (
        f"back to barrier {found.barrier}"
        if found.barrier is not None
        else f"from the base tables: {found.why}"
    )


def _by_hand(step: RollbackStep) -> list[str]:
    """Return what to type, or to remove."""
    details = dict(step.details)
    folder, batch = details.get("checkpointLocation"), details.get("batchId")
    if folder and step.action == "cut checkpoint":
        return [
            (
                f"{folder}: remove from commits/, then from offsets/, what is numbered above "
                f"{batch}, with its .crc"
            )
        ]
    if folder:
        return [f"{folder}: remove all that is in it"]
    return details["sql"].split("\n") if "sql" in details else []
