"""`strandline late TABLE`: how far a table is behind its base tables, and where the time goes."""

from argparse import Namespace
from typing import Any

from strandline.cli.answers import tell
from strandline.cli.collector import source_of
from strandline.core.versions.strong_weak import ago
from strandline.settings import Settings

Answer = dict[str, Any]


def run(options: Namespace, settings: Settings) -> int:
    """Print staleness and delay."""
    with source_of(options, settings) as source:
        table = source.table(options.table)
        answer = source.ask("/delays", table.named | {"barrier": options.barrier})
    tell(answer, lambda: _lines(answer), as_json=options.json)
    return 0


def _lines(answer: Answer) -> list[str]:
    writer, delay = answer["writer"], answer["delay"]
    owner = f"written by job {writer['name']}" if writer else "a base table"
    lines = [f"{answer['label']}, {owner}: {_behind(answer['staleness'])}"]
    lines += [
        f"  the version of all tables together is blocked by {reason}"
        for reason in answer["blockedBy"]
    ]
    if delay is None:
        return [*lines, "  no barrier is completed, or the last one is too old"]
    lines.append(
        f"  barrier {delay['barrier']} took {delay['seconds']:.1f} s from its base table to this "
        "table:"
    )
    for part in delay["parts"]:
        mark = "  <- the largest part" if part == delay["bottleneck"] else ""
        label = part["table"]["label"]
        step = f"{part['job']['name']} -> {label}" if part["job"] else f"base table {label}"
        lines.append(f"    {part['seconds']:8.1f} s  {part['kind']:4}  {step}{mark}")
    return lines


def _behind(staleness: Answer) -> str:
    if staleness["barrier"] is None:
        return "not late, it has the newest barrier"
    return f"{ago(staleness['seconds'])} behind, barrier {staleness['barrier']} is missing"
