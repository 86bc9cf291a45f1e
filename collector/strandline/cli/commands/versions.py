"""`strandline versions TABLE...`: the snapshots that belong together, and what blocks newer ones."""

import time
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Engine

from strandline.cli.answers import tell
from strandline.cli.collector import Collector, add_collector_arguments, source_of
from strandline.cli.command import Command
from strandline.cli.models import model_in, table_called, table_named
from strandline.core.versions.strong_weak import Reading, ago, held_by, strong, weak, weakly_held_by
from strandline.settings import Settings
from strandline.store.versions.answers import Latest, holders_answer, reading_answer, with_latest


def arguments(parser: ArgumentParser) -> None:
    """Add the command's own arguments."""
    parser.add_argument("table", nargs="+", help="a table: bank.balance, or dataset:NAMESPACE:NAME")
    parser.add_argument(
        "--weak", action="store_true", help="the newest barrier of these tables alone"
    )
    parser.add_argument("--json", action="store_true", help="the answer as JSON")
    add_collector_arguments(parser)


def run(options: Namespace, settings: Settings) -> int:
    """Print the version; a refusal is an error with its reason."""
    consistency = "weak" if options.weak else "strong"
    with source_of(options, settings) as source:
        if isinstance(source, Collector):
            answer, labels = _of_collector(source, options.table, consistency)
        else:
            answer, labels = _of_database(source, options.table, consistency)
    tell(options.json, answer, lambda: _lines(answer, labels))
    return 0


def _of_collector(
    collector: Collector, texts: Sequence[str], consistency: str
) -> tuple[dict[str, Any], list[str]]:
    """Return the version as a running collector has it, and the names of its tables for people."""
    tables = list(dict.fromkeys(table_named(collector, text) for text in texts))
    named = [{"namespace": table.namespace, "name": table.name} for table in tables]
    wanted = {"tables": named, "consistency": consistency}
    answer = collector.request("POST", "/versions", body=wanted)
    return answer, [table.label for table in tables]


def _of_database(
    engine: Engine, texts: Sequence[str], consistency: str
) -> tuple[dict[str, Any], list[str]]:
    """Return the version as the store has it, and the names of its tables for people."""
    is_weak = consistency == "weak"
    with model_in(engine) as (connection, model):
        now = time.time()
        tables = list(dict.fromkeys(table_called(connection, model, text) for text in texts))
        found: Sequence[Reading | Latest] = (
            with_latest(connection, weak(model, tables), tables)
            if is_weak
            else strong(model, tables)
        )
        tracked = [reading for reading in found if isinstance(reading, Reading)]
        holders = weakly_held_by(model, tracked) if is_weak else held_by(model, tables, tracked)
        answer = {
            "consistency": consistency,
            "tables": [reading_answer(reading, now) for reading in found],
            "blockedBy": holders_answer(holders, now),
        }
        return answer, [model.call(reading.table) for reading in found]


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
