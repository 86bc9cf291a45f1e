"""`strandline snapshots` as text, JSON and CSV, from the database and from a collector."""

import json

import pytest
from sqlalchemy import Engine

from fixtures.commands import Command, command_on
from fixtures.servers import serving
from worlds.scenarios.bank import bank
from worlds.scenarios.taking import fill


@pytest.fixture
def snapshots(
    sqlite_url: str, sqlite_engine: Engine, capsys: pytest.CaptureFixture[str]
) -> Command:
    """Give a function that runs `strandline snapshots` on the bank of three barriers."""
    fill(sqlite_engine, bank(barriers=3))
    return command_on(sqlite_url, capsys, "snapshots")


def test_newest_snapshot_is_listed_first(snapshots: Command) -> None:
    code, out, _ = snapshots("lake.bank.transfers")

    rows = [line.split() for line in out.splitlines()]
    assert (code, rows[0][:3]) == (0, ["SNAPSHOT", "COMMITTED", "BARRIER"])
    assert [(row[0], *row[3:]) for row in rows[1:]] == [
        ("103", "3", "append", "80", "exact"),
        ("102", "2", "append", "80", "exact"),
        ("101", "1", "append", "80", "exact"),
    ]


def test_cut_list_says_so(snapshots: Command) -> None:
    _, out, _ = snapshots("bank.transfers", "--limit", "2")
    _, listed, beside = snapshots("bank.transfers", "--limit", "2", "--csv")

    assert out.splitlines()[-1] == "(the newest 2; a greater --limit shows more)"
    assert [line.split(",")[0] for line in listed.splitlines()] == ["snapshotId", "103", "102"]
    assert beside == "strandline: the newest 2; a greater --limit shows more\n"


def test_collector_gives_the_same_list(snapshots: Command, sqlite_engine: Engine) -> None:
    own = json.loads(snapshots("bank.transfers", "--json")[1])
    with serving(sqlite_engine) as root:
        others = json.loads(snapshots("bank.transfers", "--json", "--url", root)[1])

    assert (others, len(own["items"])) == (own, 3)


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("job:bank:bank_ingest", "job:bank:bank_ingest: is a job, not a table"),
        ("bank.nothing", "unknown dataset: 'bank.nothing'"),
    ],
)
def test_unknown_table_is_reported_in_one_line(table: str, said: str, snapshots: Command) -> None:
    code, _, err = snapshots(table)

    assert (code, err.count("\n")) == (2, 1)
    assert said in err
