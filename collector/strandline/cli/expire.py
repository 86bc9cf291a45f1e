"""`strandline expire TABLE`: which snapshots nobody needs any more, and why the others stay. It reports, and drops nothing."""

import time
from argparse import ArgumentParser, Namespace

from strandline.cli._models import model_of, table_called, tell
from strandline.cli.command import Command
from strandline.core.expiry import Expiry, pins
from strandline.settings import Settings
from strandline.store.answers import expiry_of

SHOWN = 20


def arguments(parser: ArgumentParser) -> None:
    """The command's own arguments."""
    parser.add_argument("table", help="a table: bank.balance, or dataset:NAMESPACE:NAME")
    parser.add_argument("--json", action="store_true", help="the answer as JSON, with all snapshots")


def run(options: Namespace, settings: Settings) -> int:
    """Print what is expirable and what is kept."""
    with model_of(settings) as (connection, model):
        table = table_called(connection, model, options.table)
        found = expiry_of(connection, table, pins(model, table, settings.keep_barriers), time.time())
    answer = {
        "table": table[1],
        "expirable": list(found.expirable),
        "kept": [{"snapshotId": one.snapshot, "reasons": list(one.reasons)} for one in found.kept()],
    }
    tell(options.json, answer, lambda: _lines(model.call(table), found))
    return 0


def _lines(name: str, found: Expiry) -> list[str]:
    if not found.ancestry and not found.others:
        return [f"{name}: no snapshot of it is known, so there is nothing to expire"]
    lines = [f"{name}: {len(found.expirable)} snapshots are expirable, {found.kept_count} are kept"]
    lines += [f"  expirable {snapshot}" for snapshot in found.expirable[:SHOWN]]
    if len(found.expirable) > SHOWN:
        lines.append(f"  ... and {len(found.expirable) - SHOWN} more: --json shows all")
    pinned = [(found.ancestry[place], found.reasons[place]) for place in sorted(found.reasons)]
    lines += [f"  kept {snapshot}: {'; '.join(reasons)}" for snapshot, reasons in pinned]
    if between := len(found.ancestry) - found.first - len(pinned):
        lines.append(f"  kept {between} more, each because it comes after one that is needed")
    if found.others:
        lines.append(f"  kept {len(found.others)} outside the main ancestry: nothing is known of their readers")
    return lines


EXPIRE = Command("expire", run, arguments)
