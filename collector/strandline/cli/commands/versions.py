"""`strandline versions TABLE...`.

It shows the snapshots of the tables that belong together, and what blocks a newer version.
"""

import time
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from typing import Any

from strandline.cli.command import Command
from strandline.cli.models import model_of, table_called, tell
from strandline.core.versions.strong_weak import ago
from strandline.core.versions.version_answer import PROMISES, answer_versions
from strandline.settings import Settings
from strandline.store.versions.answers import version_document


def arguments(parser: ArgumentParser) -> None:
    """Add the command's own arguments."""
    parser.add_argument("table", nargs="+", help="a table: bank.balance, or dataset:NAMESPACE:NAME")
    kinds = parser.add_mutually_exclusive_group()
    for name, promise in PROMISES.items():
        kinds.add_argument(
            f"--{name}", dest="consistency", action="store_const", const=name, help=promise
        )
    parser.set_defaults(consistency="auto")
    parser.add_argument("--json", action="store_true", help="the answer as JSON")


def run(options: Namespace, settings: Settings) -> int:
    """Print the version; a refusal is an error with its reason."""
    with model_of(settings) as (connection, model):
        called = (table_called(connection, model, text) for text in options.table)
        tables = list(dict.fromkeys(called))
        answer = version_document(
            connection,
            answer_versions(model, tables, options.consistency),
            tables,
            time.time(),
        )
        names = [model.call(table) for table in tables]
    tell(options.json, answer, lambda: _lines(answer, names))
    return 0


def _lines(answer: dict[str, Any], names: Sequence[str]) -> list[str]:
    width = max(map(len, names))
    tables = [
        f"  {name:{width}}  snapshot {one['snapshotId']}  {_version(one)}".rstrip()
        for name, one in zip(names, answer["tables"], strict=True)
    ]
    head = f"{answer['consistency']}: {PROMISES[answer['consistency']]}"
    no_strong = [f"not strong: {answer['reason']}"] if "reason" in answer else []
    reasons = dict.fromkeys(
        one["reason"] for one in answer["blockedBy"]
    )  # once, however many tables a job writes
    return [head, *tables, *no_strong, *(f"blocked by {reason}" for reason in reasons)]


def _version(one: dict[str, Any]) -> str:
    if "observed" in one:
        return "its inputs were observed, not proven" if one["observed"] else ""
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
