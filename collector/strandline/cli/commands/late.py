"""`strandline late TABLE`.

How far a table is behind its base tables, where the time goes, and whose turn it is.
"""

import time
from argparse import ArgumentParser, Namespace
from typing import Any

from strandline.cli.command import Command
from strandline.cli.models import model_of, table_called, tell
from strandline.core.versions.delays import Delay, Staleness, delay, staleness
from strandline.core.versions.facts import Table
from strandline.core.versions.model import Model
from strandline.core.versions.strong_weak import ago, held_by
from strandline.errors import RefusedError
from strandline.settings import Settings


def arguments(parser: ArgumentParser) -> None:
    """The command's own arguments."""
    parser.add_argument("table", help="a table: bank.balance, or dataset:NAMESPACE:NAME")
    parser.add_argument(
        "--barrier", type=int, help="the barrier whose delay is shown (default: the last one)"
    )
    parser.add_argument("--json", action="store_true", help="the answer as JSON")


def run(options: Namespace, settings: Settings) -> int:
    """Print staleness and delay."""
    now = time.time()
    with model_of(settings) as (connection, model):
        table = table_called(connection, model, options.table)
        if not model.is_managed(table):
            raise RefusedError(f"{model.why_unmanaged(table)}: it has no barriers", "untracked")
        stale = staleness(model, table, now)
        barrier = options.barrier if options.barrier is not None else model.done[table].last
        found = delay(model, table, barrier) if barrier is not None else None
        reasons = [holder.reason(now) for holder in held_by(model, [table])]
        holders = list(dict.fromkeys(reasons))  # once, however many tables a job writes
    answer = {
        "table": table[1],
        "staleSeconds": stale.seconds,
        "missingBarrier": stale.barrier,
        "blockedBy": holders,
        "delay": _answer(found) if found is not None else None,
    }
    tell(options.json, answer, lambda: _lines(model, table, stale, found, holders))
    return 0


def _owner(model: Model, table: Table) -> str:
    writer = model.writer(table)
    return f"written by job {writer[1]}" if writer is not None else "a base table"


def _answer(found: Delay) -> dict[str, Any]:
    parts = [
        {
            "table": one.table[1],
            "job": one.job[1] if one.job else None,
            "kind": one.kind,
            "seconds": one.seconds,
        }
        for one in found.parts
    ]
    return {"barrier": found.barrier, "seconds": found.seconds, "parts": parts}


def _lines(
    model: Model, table: Table, stale: Staleness, found: Delay | None, holders: list[str]
) -> list[str]:
    lines = [f"{model.call(table)}, {_owner(model, table)}: {_behind(stale)}"]
    lines += [f"  the version of all tables together is blocked by {holder}" for holder in holders]
    if found is None:
        return [*lines, "  no barrier is completed yet"]
    lines.append(
        f"  barrier {found.barrier} took {found.seconds:.1f} s from its base table to this table:"
    )
    largest = found.bottleneck
    for part in found.parts:
        who = part.job[1] if part.job is not None else "cut"
        mark = "  <- the largest part" if part is largest else ""
        lines.append(
            f"    {part.seconds:8.1f} s  {part.kind:4}  {who} -> {model.call(part.table)}{mark}"
        )
    return lines


def _behind(stale: Staleness) -> str:
    if stale.barrier is None:
        return "not late, it has the newest barrier"
    return f"{ago(stale.seconds)} behind, barrier {stale.barrier} is missing"


LATE = Command("late", run, arguments)
