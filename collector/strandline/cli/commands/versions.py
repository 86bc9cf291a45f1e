"""`strandline versions TABLE...`.

Which snapshots of the tables belong together, and what blocks the version.
"""

import time
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from typing import Any

from strandline.cli.command import Command
from strandline.cli.models import model_of, table_called, tell
from strandline.core.versions.strong_weak import Reading, ago, held_by, strong, weak, weakly_held_by
from strandline.settings import Settings
from strandline.store.versions.answers import Latest, holders_answer, reading_answer, with_latest


def arguments(parser: ArgumentParser) -> None:
    """The command's own arguments."""
    parser.add_argument("table", nargs="+", help="a table: bank.balance, or dataset:NAMESPACE:NAME")
    parser.add_argument(
        "--weak", action="store_true", help="the newest barrier of these tables alone"
    )
    parser.add_argument("--json", action="store_true", help="the answer as JSON")


def run(options: Namespace, settings: Settings) -> int:
    """Print the version; a refusal is an error with its reason."""
    with model_of(settings) as (connection, model):
        now = time.time()
        tables = list(
            dict.fromkeys(table_called(connection, model, text) for text in options.table)
        )
        found: Sequence[Reading | Latest] = (
            with_latest(connection, weak(model, tables), tables)
            if options.weak
            else strong(model, tables)
        )
        managed = [one for one in found if isinstance(one, Reading)]
        answer: dict[str, Any] = {
            "consistency": "weak" if options.weak else "strong",
            "tables": [reading_answer(one, now) for one in found],
            "blockedBy": holders_answer(
                weakly_held_by(model, managed) if options.weak else held_by(model, tables, managed),
                now,
            ),
        }
    tell(options.json, answer, lambda: _lines(answer, [model.call(one.table) for one in found]))
    return 0


STRONG = "strong: the newest barrier that all tables which depend on each other have completed"
WEAK = "weak: the newest barrier that the tables asked for have completed"


def _lines(answer: dict[str, Any], names: Sequence[str]) -> list[str]:
    width = max(map(len, names))
    tables = [
        f"  {name:{width}}  snapshot {one['snapshotId']}  {_version(one)}"
        for name, one in zip(names, answer["tables"], strict=True)
    ]
    head = WEAK if answer["consistency"] == "weak" else STRONG
    reasons = dict.fromkeys(
        one["reason"] for one in answer["blockedBy"]
    )  # once, however many tables a job writes
    return [head, *tables, *(f"blocked by {reason}" for reason in reasons)]


def _version(one: dict[str, Any]) -> str:
    if one["barrier"] is None:
        newer = (
            f"; {one['newerApproximate']} is newer, its id is not known"
            if "newerApproximate" in one
            else ""
        )
        return f"untracked: its latest snapshot, without any promise{newer}"
    incarnation = f", generation {one['generation']}" if one["generation"] > 1 else ""
    behind = f"{ago(one['lagSeconds'])} behind" if one["lagSeconds"] else "nothing newer"
    return f"barrier {one['barrier']} of group {one['group']}{incarnation}, {behind}"


VERSIONS = Command("versions", run, arguments)
