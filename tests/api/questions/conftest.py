"""The bank with owners and tags, behind a server and behind the command line."""

from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from sqlalchemy import Engine

from fixtures.servers import client_of, serving
from strandline.cli import main
from strandline.store.sql.engine import make_engine
from worlds.scenarios.bank import FACET, bank
from worlds.scenarios.plain import columns, dataset, run
from worlds.scenarios.taking import fill

Command = Callable[..., tuple[int, str, str]]
ODD = 'a"b<c>&\n]] -->;`'


def owned(by: str) -> dict[str, object]:
    """An ownership facet."""
    return {"ownership": FACET | {"owners": [{"name": by, "type": "TEAM"}]}}


def world(engine: Engine) -> None:
    """The bank; and orders -> rows -> totals, with a dashboard that only reads, and a name that no format likes."""
    fill(engine, bank())
    tags = FACET | {"tags": [{"key": "pii", "value": "mail", "source": "USER", "field": "mail"}]}
    orders = dataset(
        "orders", **owned("shop"), tags=tags, schema=FACET | {"fields": [{"name": "mail"}, {"name": "id"}]}
    )
    rows = columns("rows", mail=("orders", "mail"), id=("orders", "id"))
    fill(
        engine,
        [
            run("COMPLETE", 1, "load", [], [orders]),
            run("COMPLETE", 2, "clean", ["orders"], [rows], of_job=owned("data")),
            run("COMPLETE", 3, "count", ["rows"], [columns("totals", number=("rows", "id"))]),
            run("COMPLETE", 4, "dashboard", ["rows"], [], of_job=owned("sales")),
            run("COMPLETE", 5, "odd", ["totals"], [ODD]),
        ],
    )


@pytest.fixture
def server(sqlite_url: str) -> Iterator[httpx.Client]:
    """A client of a server with the world."""
    engine = make_engine(sqlite_url)
    world(engine)
    with serving(engine) as address, client_of(address) as client:
        yield client
    engine.dispose()


@pytest.fixture
def command(
    sqlite_url: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Command:
    """Runs the command line on a database with the world."""
    monkeypatch.chdir(tmp_path)  # no .env of this folder
    engine = make_engine(sqlite_url)
    world(engine)
    engine.dispose()

    def run_command(*argv: str) -> tuple[int, str, str]:
        code = main(argv, {"STRANDLINE_DATABASE_URL": sqlite_url})
        said = capsys.readouterr()
        return code, said.out, said.err

    return run_command
