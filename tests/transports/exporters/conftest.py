"""Fixtures: target catalogs, and exports that a test drives step by step."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sqlalchemy import Engine

from fixtures.contract_servers.datahub import DataHubContract
from fixtures.contract_servers.marquez import MarquezContract
from fixtures.contract_servers.server import ContractServer
from fixtures.stores import SQLITE_FIRST
from strandline.exporters.exporting import Exporting
from strandline.exporters.registry import targets_of
from strandline.settings import Settings


@pytest.fixture(params=SQLITE_FIRST)
def database_url(request: pytest.FixtureRequest) -> str:
    """Give the URL of an empty store."""
    url: str = request.getfixturevalue(f"{request.param}_url")
    return url


@pytest.fixture(params=SQLITE_FIRST)
def own_database_url(request: pytest.FixtureRequest) -> str:
    """Make a fresh, migrated database for the test."""
    url: str = request.getfixturevalue(f"own_{request.param}_url")
    return url


@pytest.fixture
def marquez() -> Iterator[MarquezContract]:
    """A Marquez that listens."""
    server = MarquezContract()
    yield server
    server.close()


@pytest.fixture
def datahub() -> Iterator[DataHubContract]:
    """A DataHub that listens."""
    server = DataHubContract()
    yield server
    server.close()


@pytest.fixture
def anybody() -> Iterator[ContractServer]:
    """A server that takes everything."""
    server = ContractServer()
    yield server
    server.close()


Export = Callable[..., Exporting]


@pytest.fixture
def exporting(engine: Engine) -> Iterator[Export]:
    """Makes an Exporting of settings, registered."""
    made: list[Exporting] = []

    def make(now: float = 0.0, **settings: Any) -> Exporting:
        found = Exporting(
            engine,
            targets_of(Settings(**settings)),
            lambda why: None,
            settings.pop("max_waiting", 200_000),
        )
        found.register(now)
        made.append(found)
        return found

    yield make
    for one in made:
        for courier in one.couriers:
            courier.target.close()
