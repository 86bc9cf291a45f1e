"""Collectors behind a client.

One with the bank, which is filled once and only read, and empty ones.
"""

from collections.abc import Callable, Iterator

import httpx
import pytest
from sqlalchemy import Engine

from fixtures.servers import client_of, serving
from fixtures.sqlite_first import database_url, own_database_url
from fixtures.stores import SQLITE_FIRST
from strandline.store.sql.engine import make_engine
from worlds.scenarios.bank import bank
from worlds.scenarios.taking import fill

__all__ = ["database_url", "own_database_url"]


@pytest.fixture(scope="session", params=SQLITE_FIRST)
def bank_client(
    request: pytest.FixtureRequest, new_store: Callable[[str], str]
) -> Iterator[httpx.Client]:
    """Give a client of a collector that has heard of the whole bank, for tests that only read."""
    engine = make_engine(new_store(request.param))
    fill(engine, bank())
    with serving(engine) as address, client_of(address) as client:
        yield client
    engine.dispose()


@pytest.fixture
def client(engine: Engine) -> Iterator[httpx.Client]:
    """A client of /api/v2 of a collector on the test's own database."""
    with serving(engine) as address, client_of(address) as client:
        yield client


@pytest.fixture
def root(engine: Engine) -> Iterator[str]:
    """The address of a collector on the test's own database."""
    with serving(engine) as address:
        yield address


@pytest.fixture
def marquez(root: str) -> Iterator[httpx.Client]:
    """A client of its /api/v1."""
    with client_of(root, "/api/v1") as client:
        yield client


@pytest.fixture(scope="module", params=SQLITE_FIRST)
def module_url(request: pytest.FixtureRequest, new_store: Callable[[str], str]) -> str:
    """Give the URL of a store for the tests of a module, which only read."""
    return new_store(request.param)


@pytest.fixture(scope="module")
def shared_marquez(module_url: str) -> Iterator[httpx.Client]:
    """Give a client of /api/v1 of a collector that knows nothing, for requests that are rejected."""
    engine = make_engine(module_url)
    with serving(engine) as address, client_of(address, "/api/v1") as client:
        yield client
    engine.dispose()
