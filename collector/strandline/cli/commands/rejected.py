"""`strandline rejected`: one line for each kind of record that was not taken.

Events rejected over HTTP, dead letters of a topic, and events that are kept unread.
"""

from argparse import Namespace
from typing import Any

import orjson
from sqlalchemy import Engine

from strandline.cli.answers import (
    one_line,
    short_time,
    show,
    show_table,
    tell_list,
)
from strandline.cli.collector import Ask, answering
from strandline.core.exports.lists import COLUMNS
from strandline.settings import Settings
from strandline.store.catalog.rejections import rejection_kinds

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
    with answering(options, settings, _of_database) as ask:
        answer = ask("/rejected", {"limit": options.limit})
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


def _of_database(engine: Engine) -> Ask:
    def ask(_path: str, parameters: Any) -> Json:
        with engine.connect() as connection:
            kinds, complete = rejection_kinds(connection, parameters["limit"])
        answer = orjson.dumps({"items": kinds, "complete": complete}, option=orjson.OPT_UTC_Z)
        plain: Json = orjson.loads(answer)
        return plain

    return ask


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
