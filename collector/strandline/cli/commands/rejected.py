"""`strandline rejected`: one line for each kind of record that was not taken.

Events rejected over HTTP, dead letters of a topic, and events that are kept unread.
"""

from argparse import Namespace
from typing import Any

from strandline.cli.answers import (
    one_line,
    short_time,
    show,
    show_table,
    tell_list,
)
from strandline.cli.collector import source_of
from strandline.core.exports.lists import COLUMNS
from strandline.settings import Settings

Json = dict[str, Any]
HEAD = ("LIST", "COUNT", "FIRST", "NEWEST", "PRODUCER", "REASON", "EXAMPLE")
NAMES = {"rejected": "rejected", "deadLetters": "dead letter", "unread": "unread"}
HINTS = {
    "deadLetters": "strandline replay --dead-letters takes those that are events by now",
    "unread": (
        "unread events are kept because of a fault of the collector, and taken at its next start"
    ),
}
EXAMPLE = 60
NOTHING = "nothing was rejected, and there is no dead letter"


def run(options: Namespace, settings: Settings) -> int:
    """Print one line a kind, newest first."""
    with source_of(options, settings) as source:
        answer = source.ask("/rejected", {"limit": options.limit})
    kinds = answer["items"]
    cut = "" if answer["complete"] else "there are more; a greater --limit may show them"
    if tell_list(options, answer, kinds, cut, COLUMNS["/rejected"]):
        return 0
    if not kinds:
        show([NOTHING])
        return 0
    lists = {kind["list"] for kind in kinds}
    hints = [hint for name, hint in HINTS.items() if name in lists]
    show_table(HEAD, [_row(kind) for kind in kinds], [*([f"({cut})"] if cut else []), *hints])
    return 0


def _row(kind: Json) -> list[str]:
    example = kind["place"] or one_line(kind["body"])
    return [
        NAMES[kind["list"]],
        str(kind["count"]),
        short_time(kind["firstAt"]),
        short_time(kind["newestAt"]),
        kind["producer"] or "",
        one_line(kind["reason"]),
        example if len(example) <= EXAMPLE else f"{example[: EXAMPLE - 1]}…",
    ]
