"""`strandline versions TABLE...`: snapshots that belong together, and what blocks newer ones."""

import time
from argparse import Namespace
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Engine

from strandline.cli.answers import tell
from strandline.cli.collector import Collector, source_of
from strandline.cli.models import model_in, table_called, table_named
from strandline.core.versions.promises import PROMISES
from strandline.core.versions.strong_weak import ago
from strandline.core.versions.version_answer import Asked, answer_versions
from strandline.settings import Settings
from strandline.store.versions.answers import version_document


def run(options: Namespace, settings: Settings) -> int:
    """Print the version; a refusal is an error with its reason."""
    with source_of(options, settings) as source:
        if isinstance(source, Collector):
            answer, labels = _of_collector(source, options.table, options.consistency)
        else:
            answer, labels = _of_database(source, options.table, options.consistency)
    tell(answer, lambda: _lines(answer, labels), as_json=options.json)
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
    engine: Engine, texts: Sequence[str], consistency: Asked
) -> tuple[dict[str, Any], list[str]]:
    """Return the version as the store has it, and the names of its tables for people."""
    with model_in(engine) as (connection, model):
        tables = list(dict.fromkeys(table_called(connection, model, text) for text in texts))
        answer = version_document(
            connection, answer_versions(model, tables, consistency), tables, time.time()
        )
        return answer, [model.call(table) for table in tables]


def _lines(answer: dict[str, Any], names: Sequence[str]) -> list[str]:
    width = max(map(len, names))
    tables = [
        f"  {name:{width}}  snapshot {table['snapshotId']}  {_version(table)}".rstrip()
        for name, table in zip(names, answer["tables"], strict=True)
    ]
    head = f"{answer['consistency']}: {PROMISES[answer['consistency']]}"
    no_strong = [f"not strong: {answer['reason']}"] if "reason" in answer else []
    reasons = dict.fromkeys(
        blocker["reason"] for blocker in answer["blockedBy"]
    )  # once, however many tables a job writes
    return [head, *tables, *no_strong, *(f"blocked by {reason}" for reason in reasons)]


def _version(version: dict[str, Any]) -> str:
    if "observed" in version:
        return "its inputs were observed, not proven" if version["observed"] else ""
    if version["barrier"] is None:
        newer = (
            f"; {version['newerApproximate']} is newer, its id is not known"
            if "newerApproximate" in version
            else ""
        )
        return f"untracked: its latest snapshot, without any promise{newer}"
    generation = f", generation {version['generation']}" if version["generation"] > 1 else ""
    behind = f"{ago(version['lagSeconds'])} behind" if version["lagSeconds"] else "nothing newer"
    return f"barrier {version['barrier']} of group {version['group']}{generation}, {behind}"
