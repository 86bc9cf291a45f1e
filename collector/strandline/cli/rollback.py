"""`strandline rollback TABLE BARRIER`: the steps that take a table and everything made from it back. It changes nothing.

With --done, once the steps are carried out, versions go on in the next incarnation.
"""

from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from sqlalchemy import Connection

from strandline.cli._models import job_called, store_of, table_called, tell
from strandline.cli.command import Command
from strandline.core.barriers import Fact, RolledBack
from strandline.core.model import Model
from strandline.core.rollback import Plan, plan
from strandline.settings import Settings
from strandline.store.version_names import call

Called: TypeAlias = Mapping[str, str]  # a step's target to what people call it


def arguments(parser: ArgumentParser) -> None:
    """The command's own arguments."""
    parser.add_argument("table", help="a table: bank.balance, or dataset:NAMESPACE:NAME")
    parser.add_argument("barrier", type=int, help="the barrier to go back to, or to the newest possible before it")
    parser.add_argument(
        "--lost-state", action="append", default=[], metavar="JOB", help="a job whose checkpoint is gone"
    )
    parser.add_argument("--done", action="store_true", help="the steps are carried out: go on in the next incarnation")
    parser.add_argument("--json", action="store_true", help="the answer as JSON")


def run(options: Namespace, settings: Settings) -> int:
    """Print the plan."""

    def decide(
        connection: Connection, model: Model, now: float
    ) -> tuple[Sequence[Fact], tuple[Plan, Called, list[str]]]:
        call(connection, model, model.domain_of)
        table = table_called(connection, model, options.table)
        newest = model.domain(model.domain_of.get(table, "")).newest or 0
        lost = {job_called(model, text): newest + 1 for text in options.lost_state}
        found = plan(model, table, options.barrier, retained=lost)
        back = RolledBack(found.domain, found.tables, found.barrier or 0, now)
        running = [job[1] for job in found.jobs if model.places[job].ended is None]
        called = {one: model.call(one) for one in found.tables} | {job: job[1] for job in found.jobs}
        return ([back] if options.done else []), (found, {":".join(one): name for one, name in called.items()}, running)

    with store_of(settings) as (_, follower):
        found, called, running = follower.decide(decide)
    steps = [
        {"action": s.action, "target": s.target, "before": s.before, "after": s.after, **dict(s.details)}
        for s in found.steps
    ]
    answer = {"kind": found.kind, "barrier": found.barrier, "incarnation": found.incarnation, "steps": steps}
    tell(
        options.json,
        answer,
        lambda: _begun(found, running) if options.done else [*_lines(found, called), *_next(options)],
    )
    return 0


def _begun(found: Plan, running: Sequence[str]) -> list[str]:
    where = f"barrier {found.barrier}" if found.barrier is not None else "the roots"
    begun = f"incarnation {found.incarnation} of domain {found.domain} has begun: its versions go on from {where}"
    return [begun, *(f"  {job} still runs from its old state: stop it, and restart it as planned" for job in running)]


def _next(options: Namespace) -> list[str]:
    lost = "".join(f" --lost-state {job}" for job in options.lost_state)
    done = f"strandline rollback {options.table} {options.barrier}{lost} --done"
    return ["nothing has been changed; where the plan raises the incarnation, run", f"  {done}"]


def _lines(found: Plan, called: Called) -> list[str]:
    where = f"back to barrier {found.barrier}" if found.barrier is not None else f"from the roots: {found.why}"
    lines = [f"{found.kind} plan {where}; then incarnation {found.incarnation} of domain {found.domain} begins"]
    for number, step in enumerate(found.steps, 1):
        lines.append(f"{number:3}. {step.action} {called.get(step.target, step.target)}")
        lines.append(f"       when {step.before}; done when {step.after}")
    return lines


ROLLBACK = Command("rollback", run, arguments)
