"""`strandline snapshots` as text, JSON and CSV, from the database and from a collector."""

import json

import pytest

from fixtures.servers import serving
from strandline.cli import main
from strandline.store.sql.engine import make_engine
from worlds.scenarios.bank import bank
from worlds.scenarios.taking import fill


@pytest.fixture
def url(sqlite_url: str) -> str:
    """A database with the bank of three barriers."""
    engine = make_engine(sqlite_url)
    fill(engine, bank(barriers=3))
    engine.dispose()
    return sqlite_url


def asked(url: str, capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str, str]:
    code = main(["snapshots", *argv], {"STRANDLINE_DATABASE_URL": url})
    return code, *capsys.readouterr()


def test_newest_snapshot_is_listed_first(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = asked(url, capsys, "lake.bank.transfers")

    rows = [line.split() for line in out.splitlines()]
    assert (code, rows[0][:3]) == (0, ["SNAPSHOT", "COMMITTED", "BARRIER"])
    assert [(row[0], *row[3:]) for row in rows[1:]] == [
        ("103", "3", "append", "80", "reported"),
        ("102", "2", "append", "80", "reported"),
        ("101", "1", "append", "80", "reported"),
    ]


def test_cut_list_says_so(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = asked(url, capsys, "bank.transfers", "--limit", "2")
    _, listed, beside = asked(url, capsys, "bank.transfers", "--limit", "2", "--csv")

    assert out.splitlines()[-1] == "(the newest 2; a greater --limit shows more)"
    assert [line.split(",")[0] for line in listed.splitlines()] == ["snapshotId", "103", "102"]
    assert beside == "strandline: the newest 2; a greater --limit shows more\n"


def test_collector_gives_the_same_list(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    own = json.loads(asked(url, capsys, "bank.transfers", "--json")[1])
    engine = make_engine(url)
    with serving(engine) as root:
        others = json.loads(asked(url, capsys, "bank.transfers", "--json", "--url", root)[1])
    engine.dispose()

    assert (others, len(own["items"])) == (own, 3)


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("job:bank:bank_ingest", "job:bank:bank_ingest: is a job, not a table"),
        ("bank.nothing", "unknown dataset or job: 'bank.nothing'"),
    ],
)
def test_unknown_table_is_reported_in_one_line(
    table: str, said: str, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = asked(url, capsys, table)

    assert (code, err.count("\n")) == (1, 1)
    assert said in err
