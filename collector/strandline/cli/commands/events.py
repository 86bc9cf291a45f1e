"""`strandline events`: events as received, newest first, of a job, run, dataset or time."""

from argparse import Namespace
from typing import Any

import orjson
from sqlalchemy import Engine

from strandline.cli.answers import (
    short_time,
    show,
    show_table,
    tell_list,
)
from strandline.cli.collector import Ask, answering
from strandline.cli.options import time_argument
from strandline.core.access.granted import EVERYTHING
from strandline.core.exports.lists import COLUMNS
from strandline.core.openlineage.times import micros_of
from strandline.settings import Settings
from strandline.store.catalog.event_filters import event_filter
from strandline.store.catalog.received import CURSOR, event_answer, events_page
from strandline.store.ingest.archived import archived_answer
from strandline.store.sql.pages import decode_cursor

Json = dict[str, Any]
PAGE = 200
HEAD = ("RECEIVED", "EVENT TIME", "TYPE", "INPUTS", "OUTPUTS", "RUN", "JOB")


def run(options: Namespace, settings: Settings) -> int:
    """Print the events."""
    times = {
        name: vars(options)[name] and vars(options)[name].isoformat() for name in ("since", "until")
    }
    parameters: Json = {
        "job": options.job,
        "runId": options.run,
        "dataset": options.dataset,
    } | times
    with answering(options, settings, _of_database) as ask:
        items, complete, archived = _all(ask, parameters, options.limit)
    after = [] if complete else [f"(the newest {len(items)}; a greater --limit shows more)"]
    after += [_archive(batch) for batch in archived] if complete else []
    answer = {"items": items, "complete": complete, "archived": archived}
    if tell_list(
        options,
        answer,
        items,
        "\nstrandline: ".join(line.strip("()") for line in after),
        COLUMNS["/events"],
    ):
        return 0
    if items:
        show_table(HEAD, [_row(item) for item in items], after)
    else:
        nothing = "no event matches" if any(parameters.values()) else "no event is stored yet"
        show(["no event is stored any more" if archived else nothing, *after])
    return 0


def _archive(batch: Json) -> str:
    days = f"{short_time(batch['receivedFrom'])[:10]} to {short_time(batch['receivedUntil'])[:10]}"
    return (
        f"(archived: {batch['events']} events of all jobs, received {days}, are in "
        f"{batch['target']}; see strandline rebuild)"
    )


def _all(ask: Ask, parameters: Json, limit: int) -> tuple[list[Json], bool, list[Json]]:
    items: list[Json] = []
    cursor: str | None = None
    while True:
        page = ask(
            "/events", parameters | {"limit": min(PAGE, limit - len(items)), "cursor": cursor}
        )
        items += page["items"]
        cursor = page["nextCursor"]
        if cursor is None or len(items) >= limit:
            return (
                items,
                cursor is None,
                page.get("archived", []),
            )  # a server of an older version names none


def _of_database(engine: Engine) -> Ask:
    def ask(_path: str, parameters: Any) -> Json:
        after = (
            None if parameters["cursor"] is None else decode_cursor(parameters["cursor"], CURSOR)
        )
        with engine.connect() as connection:
            wanted = event_filter(
                connection,
                parameters["job"],
                parameters["runId"],
                parameters["dataset"],
                *(_micros(parameters[name]) for name in SPAN),
            )
            page, cursor = events_page(connection, parameters["limit"], after, wanted, EVERYTHING)
            gone = archived_answer(connection, wanted.since, wanted.until)
        items = [event_answer(item) for item in page]
        answer: Json = orjson.loads(
            orjson.dumps({"items": items, "archived": gone}, option=orjson.OPT_UTC_Z)
        )
        return answer | {"nextCursor": cursor}

    return ask


SPAN = ("since", "until")


def _micros(text: str | None) -> int | None:
    return None if text is None else micros_of(time_argument(text))


def _row(item: Json) -> list[str]:
    event = item["event"]
    job, of_run = event.get("job") or event.get("dataset") or {}, event.get("run") or {}
    return [
        short_time(item["receivedAt"]),
        short_time(item["eventTime"]),
        event.get("eventType") or "",
        *(str(len(event.get(side) or ())) for side in ("inputs", "outputs")),
        of_run.get("runId", ""),
        item.get("problem") or job.get("name", ""),
    ]
