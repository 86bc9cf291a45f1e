"""`strandline rejected`: what was sent and not taken.

Rejected over HTTP by producer and reason, the dead letters of a topic, and
events that are kept unread.
"""

from argparse import ArgumentParser, Namespace
from typing import Any

import orjson
from sqlalchemy import Engine

from strandline.cli.answers import (
    add_list_output,
    number,
    one_line,
    short_time,
    show_table,
    tell,
    tell_list,
)
from strandline.cli.collector import Ask, add_collector_arguments, answering
from strandline.cli.command import Command
from strandline.core.exports.lists import REFUSED_COLUMNS
from strandline.settings import Settings
from strandline.store.catalog.received import dead_letters_page, unread_page
from strandline.store.ingest.refused import refused_page

Json = dict[str, Any]
PAGES = {
    "/rejected-events": refused_page,
    "/dead-letters": dead_letters_page,
    "/unread-events": unread_page,
}
NOTHING = "nothing was rejected, and there is no dead letter"


def arguments(parser: ArgumentParser) -> None:
    """The command's own arguments."""
    parser.add_argument(
        "--limit", type=number(1, 1_000), default=50, help="how many of each at most (default: 50)"
    )
    add_list_output(parser, "the answer as JSON, with the beginning of each body")
    add_collector_arguments(parser)


def run(options: Namespace, settings: Settings) -> int:
    """Print what is not empty of the lists."""
    with answering(options, settings, _of_database) as ask:
        refused, dead, unread = (ask(path, {"limit": options.limit}) for path in PAGES)
    lists = {"rejected": refused["items"], "deadLetters": dead["items"], "unread": unread["items"]}
    rows = [{"list": name} | one for name, items in lists.items() for one in items]
    cut = ", ".join(
        name
        for name, page in zip(lists, (refused, dead, unread), strict=True)
        if page["nextCursor"]
    )
    more = f"more is known of {cut}; a greater --limit shows more" if cut else ""
    if tell_list(options, lists, rows, more, REFUSED_COLUMNS):
        return 0
    _show_lists(refused, dead, unread)
    return 0


def _show_lists(refused: Json, dead: Json, unread: Json) -> None:
    if refused["items"]:
        rows = [_refused(one) for one in refused["items"]]
        show_table(("REJECTED", "NEWEST", "PRODUCER", "REASON"), rows, _more(refused))
    if dead["items"]:
        hint = "strandline replay --dead-letters takes those that are events by now"
        show_table(
            ("DEAD LETTER", "PLACE", "REASON"),
            [_dead(one) for one in dead["items"]],
            [*_more(dead), hint],
        )
    if unread["items"]:
        hint = "a fault of the collector's own; they are kept, and taken again when it starts the next time"
        show_table(
            ("UNREAD EVENT", "PLACE", "REASON"),
            [_dead(one) for one in unread["items"]],
            [*_more(unread), hint],
        )
    if not (refused["items"] or dead["items"] or unread["items"]):
        tell(False, None, lambda: [NOTHING])


def _of_database(engine: Engine) -> Ask:
    def ask(path: str, asked: Any) -> Json:
        with engine.connect() as connection:
            items, cursor = PAGES[path](connection, asked["limit"])
        plain: Json = orjson.loads(
            orjson.dumps({"items": items, "nextCursor": cursor}, option=orjson.OPT_UTC_Z)
        )
        return plain

    return ask


def _more(page: Json) -> list[str]:
    return (
        [f"(the newest {len(page['items'])}; a greater --limit shows more)"]
        if page["nextCursor"]
        else []
    )


def _refused(one: Json) -> list[str]:
    return [
        f"{one['count']} times",
        short_time(one["newestAt"]),
        one["producer"] or "",
        one_line(one["reason"]),
    ]


def _dead(one: Json) -> list[str]:
    place = f"{one['topic']}[{one['partition']}]@{one['offset']}" if one["topic"] else ""
    return [
        short_time(one["receivedAt"]),
        place,
        one_line(one["reason"].rpartition(" (at ")[0] or one["reason"]),
    ]


REFUSED = Command("rejected", run, arguments)
