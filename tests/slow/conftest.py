"""Databases of a test's own: these tests kill what writes to them, fill their disks and cut their connections."""

import pytest
from sqlalchemy import Engine


@pytest.fixture
def sqlite_url(own_sqlite_url: str) -> str:
    """Make a fresh SQLite file."""
    return own_sqlite_url


@pytest.fixture
def postgres_url(own_postgres_url: str) -> str:
    """Make a fresh PostgreSQL database."""
    return own_postgres_url


@pytest.fixture
def sqlite_engine(own_sqlite_engine: Engine) -> Engine:
    """Make an engine on a fresh SQLite file."""
    return own_sqlite_engine


@pytest.fixture
def postgres_engine(own_postgres_engine: Engine) -> Engine:
    """Make an engine on a fresh PostgreSQL database."""
    return own_postgres_engine
