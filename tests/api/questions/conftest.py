"""The bank with owners and tags, behind a server and behind the command line."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from sqlalchemy import Engine

from fixtures.commands import Command, command_on
from fixtures.servers import client_of, serving
from fixtures.stores import BOTH, engine_of
from strandline.store.sql.engine import make_engine
from worlds.scenarios.bank import FACET, bank
from worlds.scenarios.plain import columns, dataset, run
from worlds.scenarios.taking import fill

ODD = 'a"b<c>&\n]] -->;`'


def owned(by: str) -> dict[str, object]:
    return {"ownership": FACET | {"owners": [{"name": by, "type": "TEAM"}]}}


def world(engine: Engine) -> None:
    """The bank; and orders -> rows -> totals, with a dashboard that only reads, and a name that no format likes."""
    fill(engine, bank())
    tags = FACET | {"tags": [{"key": "pii", "value": "mail", "source": "USER", "field": "mail"}]}
    orders = dataset(
        "orders",
        **owned("shop"),
        tags=tags,
        schema=FACET | {"fields": [{"name": "mail"}, {"name": "id"}]},
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


@pytest.fixture(params=BOTH)
def database_url(request: pytest.FixtureRequest) -> str:
    """Give the URL of an empty store.

    The SQL of a question differs between SQLite and PostgreSQL.
    """
    url: str = request.getfixturevalue(f"{request.param}_url")
    return url


@pytest.fixture(scope="session")
def world_url(new_store: Callable[[str], str]) -> str:
    """Give the URL of a store with the world, which tests only read."""
    url = new_store("sqlite")
    engine = make_engine(url)
    world(engine)
    engine.dispose()
    return url


@pytest.fixture
def own_world(world_url: str, tmp_path: Path) -> Iterator[Engine]:
    """Give an engine on a copy of the world, to which the test may add."""
    file = tmp_path / "world.db"
    shutil.copy(world_url.removeprefix("sqlite:///"), file)
    yield from engine_of(f"sqlite:///{file}")


@pytest.fixture(scope="session")
def server(world_url: str) -> Iterator[httpx.Client]:
    """Give a client of a server with the world, which tests only read."""
    for engine in engine_of(world_url):
        with serving(engine) as address, client_of(address) as client:
            yield client


@pytest.fixture
def own_server(own_world: Engine) -> Iterator[httpx.Client]:
    """Give a client of a server with the test's own world."""
    with serving(own_world) as address, client_of(address) as client:
        yield client


@pytest.fixture
def command(world_url: str, capsys: pytest.CaptureFixture[str]) -> Command:
    """Give a function that runs the command line on the world."""
    return command_on(world_url, capsys)


@pytest.fixture
def own_command(own_world: Engine, capsys: pytest.CaptureFixture[str]) -> Command:
    """Give a function that runs the command line on the test's own world."""
    return command_on(str(own_world.url), capsys)
