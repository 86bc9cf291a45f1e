"""`strandline jobs`, `datasets`, `runs` and `search`.

The same rows as text, on a terminal, as JSON and from a collector.
"""

import csv
import io
import json
import os
import pty
import subprocess
import sys

import pytest
from sqlalchemy import Engine

from fixtures.commands import Command, command_on
from fixtures.servers import serving
from fixtures.versions_server.events import two_streams
from worlds.builders import NOON, Json, dataset, event, run_id, store

ERROR = {
    "errorMessage": {"message": "Division by zero\n  at line 3", "programmingLanguage": "JAVA"}
}


def events() -> list[Json]:
    """One job that fails, one that has written a table."""
    columns = {"fields": [{"name": "amount"}]}
    return [
        event("START", 1, "load", 0),
        event("FAIL", 1, "load", 60, facets=ERROR),
        event("COMPLETE", 2, "daily", 30, outputs=[dataset("bank.daily", schema=columns)]),
    ]


@pytest.fixture
def cli(sqlite_url: str, sqlite_engine: Engine, capsys: pytest.CaptureFixture[str]) -> Command:
    """Give a function that runs commands on a store with these events."""
    store(sqlite_engine, events(), NOON)
    return command_on(sqlite_url, capsys)


def test_lists_are_plain_tables(cli: Command) -> None:
    assert cli("jobs") == (
        0,
        (
            "STATE     STARTED              ENDED                JOB    NAMESPACE  REASON\n"
            "COMPLETE  2026-11-20 12:00:30  2026-11-20 12:00:30  daily  tests      -\n"
            "FAIL      2026-11-20 12:00:00  2026-11-20 12:01:00  load   tests      Division by zero\n"
        ),
        "",
    )
    assert cli("datasets") == (
        0,
        (
            "DATASET     WRITTEN BY  STATE     ENDED                NAMESPACE\n"
            "bank.daily  daily       COMPLETE  2026-11-20 12:00:30  hive://lake\n"
        ),
        "",
    )
    assert cli("runs", "DAILY") == (
        0,
        (
            "STATE     STARTED              ENDED                JOB    RUN\n"
            f"COMPLETE  2026-11-20 12:00:30  2026-11-20 12:00:30  daily  {run_id(2)}\n"
        ),
        "",
    )
    assert cli("search", "Amount") == (
        0,
        "KIND   FOUND       IN              NAMESPACE\ntable  bank.daily  column: amount  hive://lake\n",
        "",
    )


def test_run_that_was_stopped_is_called_so(cli: Command, sqlite_engine: Engine) -> None:
    daily, copy = dataset("bank.daily"), dataset("bank.copy")
    for kind, seconds in (("COMPLETE", 80), ("ABORT", 90)):
        store(sqlite_engine, [event(kind, seconds, "stream", seconds, [daily], [copy])], NOON)

    states = [line.split()[0] for line in cli("runs", "--state", "stopped")[1].splitlines()]

    assert states == ["STATE", "STOPPED"]
    assert json.loads(cli("runs", "stream", "--json")[1])["items"][0]["state"] == "ABORT"
    assert "job stream  STOPPED 2026-11-20 12:01:30" in cli("lineage", "bank.copy")[1]
    assert cli("impact", "bank.daily")[1].splitlines()[2].endswith("2026-11-20 12:01:30  STOPPED")


def test_lists_say_when_they_are_cut(cli: Command) -> None:
    _, out, _ = cli("jobs", "--limit", "1")

    assert out.splitlines()[1:] == [
        "COMPLETE  2026-11-20 12:00:30  2026-11-20 12:00:30  daily  tests",
        "(the first 1; a greater --limit shows more)",
    ]


@pytest.mark.parametrize(
    ("argv", "jobs"),
    [
        (["--failed"], ["load"]),
        (["--state", "fail,complete"], ["daily", "load"]),
        (
            ["--failed", "--since", "2026-11-20T12:01:00Z", "--until", "2026-11-20T12:01:01Z"],
            ["load"],
        ),
        (["--failed", "--until", "2026-11-20"], []),
        (["--namespace", "elsewhere"], []),
        (["--as-of", "2026-11-20T12:00:10Z"], ["load"]),
        (["--as-of", "2026-11-20T12:00:30Z", "--state", "running"], ["load"]),
        (["--as-of", "2026-11-20T12:00:30Z", "--failed"], []),
        (["--as-of", "2026-11-20T11:00:00Z"], []),
    ],
)
def test_lists_accept_the_filters_of_the_api(
    cli: Command, sqlite_engine: Engine, argv: list[str], jobs: list[str]
) -> None:
    with serving(sqlite_engine) as address:
        served = json.loads(cli("jobs", "--json", "--url", address, *argv)[1])

    assert [one["name"] for one in json.loads(cli("jobs", "--json", *argv)[1])["items"]] == jobs
    assert [one["name"] for one in served["items"]] == jobs
    assert [
        one["job"]["name"] for one in json.loads(cli("runs", "--json", *argv)[1])["items"]
    ] == sorted(jobs)[::-1]


def test_lists_of_jobs_and_datasets_take_tags_and_owners(
    cli: Command, sqlite_engine: Engine
) -> None:
    marks = {"tags": {"tags": [{"key": "etl"}]}, "ownership": {"owners": [{"name": "team"}]}}
    store(sqlite_engine, [event("COMPLETE", 3, "marked", 90, job_facets=marks)], NOON)

    with serving(sqlite_engine) as address:
        for of in ([], ["--url", address]):
            for argv in (["--tag", "no", "--tag", "etl"], ["--owner", "t*m"]):
                items = json.loads(cli("jobs", "--json", *argv, *of)[1])["items"]
                assert [one["name"] for one in items] == ["marked"]
            assert cli("datasets", "--owner", "team", *of)[1] == "no dataset matches\n"


def test_collector_gives_the_same_list(cli: Command, sqlite_engine: Engine) -> None:
    with serving(sqlite_engine) as address:
        for argv in (
            ["jobs"],
            ["datasets", "--failed"],
            ["datasets", "--json"],
            ["datasets", "--csv"],
            ["datasets", "--json", "--as-of", "2026-11-20T12:00:30Z"],
            ["jobs", "--json"],
            ["runs", "load"],
            ["search", "a"],
            ["search", "a", "--json"],
        ):
            assert cli(*argv, "--url", address) == cli(*argv)


def test_datasets_have_their_lag_from_the_database_and_from_a_collector(
    cli: Command, sqlite_engine: Engine
) -> None:
    store(sqlite_engine, two_streams(), NOON)

    with serving(sqlite_engine) as address:
        for of in ([], ["--url", address]):
            items = json.loads(cli("datasets", "--json", *of)[1])["items"]
            lags = {one["name"]: one["lagSeconds"] for one in items}
            assert (lags["bank.transfers"], lags["bank.daily"]) == (0, None)
            assert lags["bank.credits"] > 0
            past = json.loads(cli("datasets", "--json", "--as-of", "1d", *of)[1])["items"]
            assert {one["lagSeconds"] for one in past} == {None}


def test_empty_list_says_that_nothing_matches(cli: Command) -> None:
    assert cli("runs", "--state", "lost") == (0, "no run matches\n", "")
    assert cli("search", "nowhere") == (
        0,
        "no name, run, snapshot, application, tag, column or SQL text matches\n",
        "",
    )


def test_invalid_filter_is_reported_in_one_line(cli: Command) -> None:
    code, out, err = cli("jobs", "--state", "broken")

    assert (code, out) == (2, "")
    assert err == (
        "strandline jobs: argument --state: broken is not one of START, RUNNING, COMPLETE, FAIL, ABORT (stopped), LOST, "
        "or several of them with commas (strandline jobs --help)\n"
    )
    assert cli("runs", "dail") == (
        2,
        "",
        "strandline: unknown job: 'dail'; did you mean daily?\n",
    )


def test_colours_are_used_on_a_terminal_only(cli: Command, sqlite_url: str) -> None:
    piped = subprocess.run(
        JOBS, capture_output=True, env=environ_of(sqlite_url, 200), check=True
    ).stdout

    assert "\x1b[1;31mFAIL\x1b[0m" in on_a_terminal(sqlite_url, 200)
    assert b"\x1b" not in piped


@pytest.mark.slow
def test_narrow_terminal_shows_whole_names(cli: Command, sqlite_url: str) -> None:
    assert "load   tests      Division by zero" in on_a_terminal(sqlite_url, 40)


JOBS = [sys.executable, "-m", "strandline", "jobs"]


def environ_of(url: str, columns: int) -> dict[str, str]:
    known = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    return known | {
        "STRANDLINE_DATABASE_URL": url,
        "TERM": "xterm-256color",
        "COLUMNS": str(columns),
    }


def on_a_terminal(url: str, columns: int) -> str:
    """Return the output of `strandline jobs` on a terminal of this width."""
    master, slave = pty.openpty()
    with subprocess.Popen(JOBS, stdout=slave, env=environ_of(url, columns)) as process:
        os.close(slave)
        shown = b""
        while piece := read(master):
            shown += piece
        process.wait(60)
    os.close(master)
    return shown.decode()


def read(terminal: int) -> bytes:
    """Return the next output; nothing at the end, which Linux reports as an error."""
    try:
        return os.read(terminal, 65536)
    except OSError:
        return b""


def lines_of(text: str) -> list[dict[str, str]]:
    """Return the lines of a CSV by their columns."""
    return list(csv.DictReader(io.StringIO(text)))


@pytest.mark.parametrize(
    ("argv", "column", "values"),
    [
        (["jobs"], "name", ["daily", "load"]),
        (["jobs"], "latestRun.error", ["", "Division by zero"]),
        (["datasets"], "latestWrite.job.name", ["daily"]),
        (["runs", "load"], "runId", [run_id(1)]),
        (["search", "Amount"], "id", ["dataset:hive://lake:bank.daily"]),
        (["events", "--job", "load"], "event.eventType", ["FAIL", "START"]),
        (["names"], "name", []),
        (["keys", "list"], "name", ["reader"]),
        (["catalog-options", "lake", "data-lineage=false"], "key", ["data-lineage"]),
        (["rejected"], "list", []),
        (["exports"], "name", []),
    ],
)
def test_every_list_is_available_as_csv(
    cli: Command, argv: list[str], column: str, values: list[str]
) -> None:
    cli("keys", "add", "reader", "--scope", "read", "--namespace", "*")

    code, text, errors = cli(*argv, "--csv")

    assert (code, errors) == (0, "")
    assert [line[column] for line in lines_of(text)] == values
    assert cli(*argv, "--format", "csv") == (code, text, errors)
    assert cli(*argv, "--format", "json") == cli(*argv, "--json")


@pytest.mark.parametrize(
    "argv",
    [
        ("search", ""),
        ("runs", ""),
        ("events", "--job", ""),
        ("events", "--run", ""),
        ("events", "--dataset", ""),
    ],
)
def test_empty_name_does_not_match_everything(cli: Command, argv: tuple[str, ...]) -> None:
    code, text, errors = cli(*argv)

    assert (code, text) == (2, "")
    assert "is empty" in errors
