"""Databases of a test's own.

These tests kill what writes to them, fill their disks and cut their connections.
"""

import pytest
from sqlalchemy import Engine

from fixtures.stores import BOTH


@pytest.fixture
def sqlite_url(own_sqlite_url: str) -> str:
    """Make a fresh SQLite file."""
    return own_sqlite_url


@pytest.fixture
def postgres_url(own_postgres_url: str) -> str:
    """Make a fresh PostgreSQL database."""
    return own_postgres_url


@pytest.fixture(params=BOTH)
def database_url(request: pytest.FixtureRequest) -> str:
    """Make a fresh database: the test runs on SQLite and on PostgreSQL."""
    url: str = request.getfixturevalue(f"own_{request.param}_url")
    return url


@pytest.fixture
def sqlite_engine(own_sqlite_engine: Engine) -> Engine:
    """Make an engine on a fresh SQLite file."""
    return own_sqlite_engine


@pytest.fixture
def postgres_engine(own_postgres_engine: Engine) -> Engine:
    """Make an engine on a fresh PostgreSQL database."""
    return own_postgres_engine
