"""`strandline jobs`, `datasets` and `runs`: what there is, by state, time and namespace; `search`.

By a part of whatever text.

Asked of the database, or with --url of a running collector.
"""

from argparse import Namespace
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import orjson
from sqlalchemy import Connection, Engine

from strandline.cli.answers import (
    one_line,
    short_time,
    show,
    show_table,
    state_word,
    tell_list,
)
from strandline.cli.collector import Ask, answering
from strandline.cli.models import model_in
from strandline.core.exports.lists import COLUMNS
from strandline.core.labels import label_of
from strandline.core.openlineage.times import micros_of
from strandline.errors import NotFoundError
from strandline.settings import Settings
from strandline.store.catalog.filters import Filter
from strandline.store.catalog.lists import add_lags, datasets_page, jobs_page, runs_page
from strandline.store.catalog.search import search_page
from strandline.store.lineage.lookup import job_called
from strandline.store.sql.pages import decode_cursor

Json = dict[str, Any]
PAGE = 1_000
LABELS = ("tag", "owner")  # filters of datasets and jobs
CURSORS = {
    "jobs": (str, str),
    "datasets": (str, str),
    "runs": (int, int),
    "search": (int, str, str, str),
}


def run_list(
    kind: str, columns: Mapping[str, Callable[[Json], str]]
) -> Callable[[Namespace, Settings], int]:
    """Return the function of a command that prints a list of this kind in these columns."""

    def run(options: Namespace, settings: Settings) -> int:
        items, complete = _all(options, settings, kind)
        cut = "" if complete else f"the first {len(items)}; a greater --limit shows more"
        if tell_list(
            options, {"items": items, "complete": complete}, items, cut, COLUMNS[f"/{kind}"]
        ):
            return 0
        after = [f"({cut})"] if cut else []
        if items:
            show_table(
                list(columns), [[cell(item) for cell in columns.values()] for item in items], after
            )
        else:
            show([_nothing(kind, options)])
        return 0

    return run


def _nothing(kind: str, options: Namespace) -> str:
    parameters = [
        vars(options).get(name)
        for name in ("namespace", "state", "since", "until", "as_of", "job", "text", *LABELS)
    ]
    narrowed = any(parameters) or vars(options).get("failed")
    return f"no {NOUNS[kind]} {'matches' if narrowed else 'is known yet'}"


def _all(options: Namespace, settings: Settings, kind: str) -> tuple[list[Json], bool]:
    """As many items as were asked for, page by page, and whether there are no more."""
    items: list[Json] = []
    cursor: str | None = None
    with answering(options, settings, lambda engine: _of_database(engine, options)) as ask:
        parameters = _asked_of_api(ask, options) if options.url else {}
        while True:
            page = ask(
                f"/{kind}",
                parameters | {"limit": min(PAGE, options.limit - len(items)), "cursor": cursor},
            )
            items += page["items"]
            cursor = page["nextCursor"]
            if cursor is None or len(items) >= options.limit:
                return items, cursor is None


def _asked_of_api(ask: Ask, options: Namespace) -> Json:
    """Return the parameters of what the options ask for."""
    options_by_name = vars(options)
    parameters: Json = (
        {"q": options_by_name["text"]} if "text" in options_by_name else _filters(options)
    )
    return (
        parameters | _job_named(ask, options_by_name["job"])
        if options_by_name.get("job")
        else parameters
    )


def _job_named(ask: Ask, text: str) -> Json:
    """Return the job that a person means, as the API takes it."""
    node = ask("/lineage", {"node": text, "depth": 0})["nodes"][0]
    if node["type"] != "job":
        raise NotFoundError(f"{text}: is a dataset, not a job")
    return {"namespace": node["namespace"], "name": node["name"]}


def _filters(options: Namespace) -> Json:
    states = ",".join(sorted(_asked_states(options)))
    times = {"since": options.since, "until": options.until, "asOf": options.as_of}
    filters = {name: time and time.isoformat() for name, time in times.items()}
    labels = {name: getattr(options, name) for name in LABELS if hasattr(options, name)}
    return {"namespace": options.namespace, "state": states or None} | filters | labels


def _asked_states(options: Namespace) -> frozenset[str]:
    return (options.state or frozenset()) | ({"FAIL"} if options.failed else frozenset())


def _of_database(engine: Engine, options: Namespace) -> Ask:
    def ask(path: str, parameters: Mapping[str, Any]) -> Json:
        kind = path.removeprefix("/")
        after = (
            None
            if parameters["cursor"] is None
            else decode_cursor(parameters["cursor"], CURSORS[kind])
        )
        with engine.connect() as connection:
            answer = _page(connection, kind, options, (parameters["limit"], after))
        if kind == "datasets" and options.format:
            now = datetime.now(UTC)
            asked = _filter(options, micros_of(now))
            with model_in(engine) as (connection, model):
                add_lags(connection, model, answer, asked, now.timestamp())
        plain: Json = orjson.loads(orjson.dumps(answer))
        return plain

    return ask


def _page(connection: Connection, kind: str, options: Namespace, place: tuple[int, Any]) -> Json:
    now = micros_of(datetime.now(UTC))
    match kind:
        case "search":
            return search_page(connection, options.text, *place, now)
        case "runs":
            job = job_called(connection, options.job) if options.job else None
            return runs_page(connection, job, _filter(options, now), now, *place)
        case "jobs":
            return jobs_page(connection, _filter(options, now), now, *place)
    return datasets_page(connection, _filter(options, now), now, *place)


def _filter(options: Namespace, now: int) -> Filter:
    times = options.since, options.until, options.as_of
    since, until, as_of = (None if time is None else micros_of(time) for time in times)
    past = None if as_of is None or as_of >= now else as_of
    labels = (tuple(getattr(options, name, ())) for name in LABELS)
    return Filter(options.namespace, _asked_states(options), since, until, past, *labels)


def _writer(dataset: Json) -> str:
    return str(dataset["latestWrite"]["job"]["name"]) if dataset["latestWrite"] else ""


def _write_state(dataset: Json) -> str:
    return "DROPPED" if dataset.get("droppedAt") else _state("latestWrite")(dataset)


def _run(key: str, name: str) -> Callable[[Json], str]:
    """Return the cell of a run that an item holds, or is."""

    def cell(item: Json) -> str:
        run = item[key] if key else item
        value = "" if run is None else run.get(name) or ""
        return short_time(value) if name.endswith("At") else one_line(value)

    return cell


def _state(key: str) -> Callable[[Json], str]:
    """Return the cell with the state of the run that an item holds, or is."""
    cell = _run(key, "state")
    return lambda item: state_word(cell(item))


def _reason(key: str) -> Callable[[Json], str]:
    """Return the cell with the error of the run that an item holds, or is.

    Where it has none, how many below it failed.
    """

    def cell(item: Json) -> str:
        run = (item[key] if key else item) or {}
        failed = f"{run['failedChildren']} below it failed" if run.get("failedChildren") else ""
        return one_line(run.get("error") or failed)

    return cell


def _found(hit: Json) -> str:
    where = f"{hit['matched']}: {one_line(hit['text'])}" if hit.get("text") else hit["matched"]
    return f"{where}, started {short_time(hit['startedAt'])}" if hit.get("startedAt") else where


NOUNS: Mapping[str, str] = {
    "jobs": "job",
    "datasets": "dataset",
    "runs": "run",
    "search": "name, run, snapshot, application, tag, column or SQL text",
}
JOB_COLUMNS: Mapping[str, Callable[[Json], str]] = {
    "STATE": _state("latestRun"),
    "STARTED": _run("latestRun", "startedAt"),
    "ENDED": _run("latestRun", "endedAt"),
    "JOB": lambda item: item["name"],
    "NAMESPACE": lambda item: item["namespace"],
    "REASON": _reason("latestRun"),
}
DATASET_COLUMNS: Mapping[str, Callable[[Json], str]] = {
    "DATASET": label_of,
    "WRITTEN BY": _writer,
    "STATE": _write_state,
    "ENDED": _run("latestWrite", "endedAt"),
    "NAMESPACE": lambda item: item["namespace"],
}
RUN_COLUMNS: Mapping[str, Callable[[Json], str]] = {
    "STATE": _state(""),
    "STARTED": _run("", "startedAt"),
    "ENDED": _run("", "endedAt"),
    "JOB": lambda item: str(item["job"]["name"]),
    "RUN": lambda item: item["runId"],
    "REASON": _reason(""),
}
SEARCH_COLUMNS: Mapping[str, Callable[[Json], str]] = {
    "KIND": lambda item: "table" if item["type"] == "dataset" else item["type"],
    "FOUND": lambda item: item["label"],
    "IN": _found,
    "NAMESPACE": lambda item: item["namespace"],
}
run_jobs = run_list("jobs", JOB_COLUMNS)
run_datasets = run_list("datasets", DATASET_COLUMNS)
run_runs = run_list("runs", RUN_COLUMNS)
run_search = run_list("search", SEARCH_COLUMNS)
