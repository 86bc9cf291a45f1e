"""An unknown name and options that contradict each other: one exit code and one line."""

from collections.abc import Iterator

import pytest
from sqlalchemy import Engine

from fixtures.servers import serving
from strandline.cli import main
from strandline.cli.declarations import COMMANDS
from worlds.builders import event, store
from worlds.scenarios.bank import bank
from worlds.scenarios.taking import fill

RUN = "0196a1c2-0000-7000-8000-000000000001"
BY_URL = [
    ["lineage", "unheard"],
    ["lineage", "dataset:bank:unheard"],
    ["lineage", "job:bank:unheard"],
    ["lineage", f"run:{RUN}"],
    ["lineage", "bank.balance", "--snapshot", "99"],
    ["impact", "unheard"],
    ["impact", "job:bank:unheard"],
    ["paths", "unheard", "bank.balance"],
    ["paths", "bank.balance", "unheard"],
    ["changes", "unheard", "--since", "1d"],
    ["runs", "unheard"],
    ["events", "--job", "unheard"],
    ["events", "--run", RUN],
    ["events", "--dataset", "unheard"],
    ["snapshots", "unheard"],
    ["versions", "unheard"],
    ["versions", "unheard", "--weak"],
    ["versions", "unheard", "--cut"],
    ["late", "unheard"],
    ["keys", "revoke", "unheard"],
]
BY_DATABASE = [
    ["expire", "unheard"],
    ["rollback", "unheard", "1"],
    ["rollback", "bank.balance", "1", "--lost-state", "unheard"],
    ["retire", "unheard"],
    ["exports", "parked", "unheard"],
    ["exports", "replay", "unheard"],
]
CONTRADICTIONS = [
    ["lineage", "bank.balance", "--kind", "column"],
    ["lineage", "bank.balance", "--granularity", "column", "--kind", "job"],
    ["lineage", "bank.balance", "--dependency", "direct"],
    ["lineage", "bank.balance", "--nodes", "--collapse", "root"],
    ["paths", "bank.debits", "bank.balance", "--kind", "column"],
    ["changes", "--since", "2026-01-02", "--until", "2026-01-01"],
    ["jobs", "--since", "2026-01-02", "--as-of", "2026-01-01"],
    ["jobs", "--since", "2026-01-02", "--until", "2026-01-01"],
    ["events", "--since", "2026-01-02", "--until", "2026-01-01"],
]
NAMELESS = {
    *("namespaces", "search", "jobs", "datasets", "rejected"),  # filters, not names
    *("names", "catalog-options", "export", "import", "tables", "retention"),
    *("serve", "consume", "demo", "check", "migrate", "backup", "restore", "replay"),
    *("archive", "rebuild", "report"),
    "forget",  # it is done where there is nothing to forget
}


@pytest.fixture
def address(sqlite_engine: Engine) -> Iterator[str]:
    fill(sqlite_engine, bank())
    with serving(sqlite_engine) as address:
        yield address


def test_every_command_that_takes_a_name_is_in_the_tables() -> None:
    assert {argv[0] for argv in (*BY_URL, *BY_DATABASE)} == COMMANDS.keys() - NAMELESS


def test_unknown_name_ends_with_2(
    address: str, sqlite_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    database = ["--database-url", sqlite_url]
    asked = [[*argv, "--url", address] for argv in BY_URL]
    asked += [[*argv, *database] for argv in (*BY_URL, *BY_DATABASE)]

    ends = []
    for argv in asked:
        code = main(argv, {})
        out, err = capsys.readouterr()
        ends.append((argv, code, out, err.count("\n")))

    assert ends == [(argv, 2, "", 1) for argv in asked]


@pytest.mark.parametrize("argv", CONTRADICTIONS, ids=" ".join)
def test_contradictory_options_end_with_2(
    address: str, sqlite_url: str, argv: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    ends = []
    for source in (["--url", address], ["--database-url", sqlite_url]):
        code = main([*argv, *source], {})
        out, err = capsys.readouterr()
        ends.append((code, out, err))

    assert ends[0] == ends[1]
    assert ends[0][:2] == (2, "")
    assert ends[0][2].count("\n") == 1


def test_job_of_something_else_than_a_run_ends_with_2(
    sqlite_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ["--of", "a", "b", "--dataset", "c", "d"]

    assert main(["forget", *names, "--database-url", sqlite_url], {}) == 2
    assert capsys.readouterr().err == "strandline: --of names the job of a run: give --run\n"


def test_ambiguous_name_ends_with_2(
    sqlite_url: str, sqlite_engine: Engine, capsys: pytest.CaptureFixture[str]
) -> None:
    store(
        sqlite_engine,
        [event("START", 1), event("START", 2) | {"job": {"namespace": "b", "name": "etl"}}],
    )

    assert main(["runs", "etl", "--database-url", sqlite_url], {}) == 2
    assert "say which: job:b:etl, job:tests:etl" in capsys.readouterr().err
