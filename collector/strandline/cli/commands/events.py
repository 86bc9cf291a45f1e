"""`strandline events`: events as received, newest first, of a job, run, dataset or time."""

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
PAGE = 200
HEAD = ("RECEIVED", "EVENT TIME", "TYPE", "INPUTS", "OUTPUTS", "RUN", "JOB")


def run(options: Namespace, settings: Settings) -> int:
    """Print the events."""
    times = (options.since, options.until)
    since, until = (time and time.isoformat() for time in times)
    parameters: Json = {
        "job": options.job,
        "runId": options.run,
        "dataset": options.dataset,
        "since": since,
        "until": until,
    }
    with source_of(options, settings) as source:
        answer = source.pages("/events", parameters, options.limit, PAGE)
    items, is_cut = answer["items"], answer["nextCursor"] is not None
    after = [f"(the newest {len(items)}; a greater --limit shows more)"] if is_cut else []
    after += [] if is_cut else [_archive(batch) for batch in answer["archived"]]
    problems = "\nstrandline: ".join(line.strip("()") for line in after)
    if tell_list(options, answer, items, problems, COLUMNS["/events"]):
        return 0
    if items:
        show_table(HEAD, [_row(item) for item in items], after)
    else:
        nothing = "no event matches" if any(parameters.values()) else "no event is stored yet"
        show(["no events are left in the store" if answer["archived"] else nothing, *after])
    return 0


def _archive(batch: Json) -> str:
    days = f"{short_time(batch['receivedFrom'])[:10]} to {short_time(batch['receivedUntil'])[:10]}"
    return (
        f"(archived: {batch['events']} events of all jobs, received {days}, are in "
        f"{batch['target']}; see strandline rebuild)"
    )


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
