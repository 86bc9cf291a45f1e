"""A collector with the bank that a module's tests only read: filled once for each database, not once for each test."""

from collections.abc import Callable, Iterator
from shutil import copy
from uuid import uuid4

import httpx
import pytest
from sqlalchemy import Engine, create_engine

from fixtures.servers import client_of, serving
from strandline.store.sql.engine import make_engine
from worlds.scenarios.bank import bank
from worlds.scenarios.taking import fill


@pytest.fixture(scope="module", params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def module_url(request: pytest.FixtureRequest) -> Iterator[str]:
    """The URL of a migrated database of the module's own, on SQLite and on PostgreSQL."""
    made: Callable[[pytest.FixtureRequest], Iterator[str]] = {"sqlite": _sqlite, "postgres": _postgres}[request.param]
    yield from made(request)


@pytest.fixture(scope="module")
def bank_client(module_url: str) -> Iterator[httpx.Client]:
    """A client of a collector that has heard of the whole bank."""
    engine = make_engine(module_url)
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


@pytest.fixture(scope="module")
def shared_marquez(module_url: str) -> Iterator[httpx.Client]:
    """A client of /api/v1 of a collector that knows nothing, for what is refused."""
    engine = make_engine(module_url)
    with serving(engine) as address, client_of(address, "/api/v1") as client:
        yield client
    engine.dispose()


def _sqlite(request: pytest.FixtureRequest) -> Iterator[str]:
    factory: pytest.TempPathFactory = request.getfixturevalue("tmp_path_factory")
    file = factory.mktemp("bank") / "strandline.db"
    copy(request.getfixturevalue("sqlite_template"), file)
    yield f"sqlite:///{file}"


def _postgres(request: pytest.FixtureRequest) -> Iterator[str]:
    server: Callable[[str], str] = request.getfixturevalue("postgres_server")
    template, name = request.getfixturevalue("postgres_template"), f"bank_{uuid4().hex[:12]}"
    _run(server("postgres"), f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY file_copy")
    yield server(name)
    _run(server("postgres"), f"DROP DATABASE {name} WITH (FORCE)")


def _run(url: str, statement: str) -> None:
    engine = create_engine(url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.exec_driver_sql(statement)
    engine.dispose()
