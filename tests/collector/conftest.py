"""Engines on one database only, for tests that do not run on both by the same story."""

from collections.abc import Iterator

import pytest
from sqlalchemy import Engine

from strandline.store.sql.engine import make_engine


@pytest.fixture
def postgres_engine(postgres_url: str) -> Iterator[Engine]:
    """An engine on a fresh PostgreSQL database."""
    engine = make_engine(postgres_url)
    yield engine
    engine.dispose()


@pytest.fixture
def sqlite_engine(sqlite_url: str) -> Iterator[Engine]:
    """An engine on a fresh SQLite file."""
    engine = make_engine(sqlite_url)
    yield engine
    engine.dispose()
