"""`strandline jobs`, `datasets`, `runs` and `search`.

The first three list by state, time and namespace; the last finds any part of a text.

Asked of the database, or with --url of a running collector.
"""

from argparse import Namespace
from collections.abc import Callable, Mapping
from typing import Any

from strandline.cli.answers import (
    one_line,
    short_time,
    show,
    show_table,
    state_word,
    tell_list,
)
from strandline.cli.collector import source_of
from strandline.core.exports.lists import COLUMNS
from strandline.core.labels import label_of
from strandline.settings import Settings

Json = dict[str, Any]
LABELS = ("tag", "owner")  # filters of datasets and jobs


def run_list(
    kind: str, columns: Mapping[str, Callable[[Json], str]]
) -> Callable[[Namespace, Settings], int]:
    """Return the function of a command that prints a list of this kind in these columns."""

    def run(options: Namespace, settings: Settings) -> int:
        with source_of(options, settings) as source:
            answer = source.pages(f"/{kind}", _parameters(options), options.limit)
        items = answer["items"]
        is_cut = answer["nextCursor"] is not None
        cut = f"the first {len(items)}; a greater --limit shows more" if is_cut else ""
        if tell_list(options, answer, items, cut, COLUMNS[f"/{kind}"]):
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


def _parameters(options: Namespace) -> Json:
    """Return the options as parameters of the API."""
    if "text" in options:
        return {"q": options.text}
    times = {"since": options.since, "until": options.until, "asOf": options.as_of}
    parameters: Json = {name: time and time.isoformat() for name, time in times.items()}
    states = (options.state or frozenset()) | ({"FAIL"} if options.failed else frozenset())
    parameters |= {"namespace": options.namespace, "state": ",".join(sorted(states)) or None}
    of_some = [name for name in ("job", *LABELS) if name in options]
    parameters |= {name: getattr(options, name) for name in of_some}
    return parameters


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

    Where it has none, how many below it failed, or what else there is to know of it.
    """

    def cell(item: Json) -> str:
        run = (item[key] if key else item) or {}
        failed = f"{run['failedChildren']} below it failed" if run.get("failedChildren") else ""
        return one_line(run.get("error") or failed or run.get("notice", ""))

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
