"""`strandline snapshots`: the known snapshots of a table, the newest first."""

from argparse import Namespace
from typing import Any

from strandline.cli.answers import (
    short_time,
    show,
    show_table,
    tell_list,
)
from strandline.cli.collector import source_of
from strandline.core.exports.lists import COLUMNS
from strandline.settings import Settings

Json = dict[str, Any]
HEAD = ("SNAPSHOT", "COMMITTED", "BARRIER", "OPERATION", "ROWS", "ACCURACY")


def run(options: Namespace, settings: Settings) -> int:
    """Print the snapshots."""
    with source_of(options, settings) as source:
        table = source.table(options.table)
        answer = source.pages("/datasets/snapshots", table.named, options.limit)
    items = answer["items"]
    cut = f"the newest {len(items)}; a greater --limit shows more" if answer["nextCursor"] else ""
    if tell_list(options, answer, items, cut, COLUMNS["/datasets/snapshots"]):
        return 0
    if items:
        show_table(HEAD, [_row(item) for item in items], [f"({cut})"] if cut else [])
    else:
        show([f"no snapshot of {options.table} is known"])
    return 0


def _row(item: Json) -> list[str]:
    numbers = (
        "" if item[name] is None else str(item[name]) for name in ("barrierId", "numberOfRows")
    )
    barrier, rows = numbers
    accuracy = "observed" if item["observed"] else "exact"
    return [
        item["snapshotId"],
        short_time(item["committedAt"] or ""),
        barrier,
        item["operation"] or "",
        rows,
        accuracy,
    ]
