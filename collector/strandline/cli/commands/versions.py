"""`strandline versions TABLE...`: snapshots that belong together, and what blocks newer ones."""

from argparse import Namespace
from collections.abc import Sequence
from typing import Any

from strandline.cli.answers import tell
from strandline.cli.collector import source_of
from strandline.core.versions.promises import PROMISES
from strandline.core.versions.strong_weak import ago
from strandline.settings import Settings


def run(options: Namespace, settings: Settings) -> int:
    """Print the version; a refusal is an error with its reason."""
    with source_of(options, settings) as source:
        tables = list(dict.fromkeys(map(source.table, options.table)))
        named = [table.named for table in tables]
        answer = source.post("/versions", {"tables": named, "consistency": options.consistency})
    labels = [table.label for table in tables]
    tell(answer, lambda: _lines(answer, labels), as_json=options.json)
    return 0


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
    blocked = [f"blocked by {reason}" for reason in reasons]
    untracked = [table["untracked"] for table in answer["tables"] if "untracked" in table]
    not_said = [why for why in untracked if not any(reason.startswith(why) for reason in reasons)]
    return [head, *tables, *no_strong, *not_said, *blocked]


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
