"""A topic of a test's own."""

from collections.abc import Iterator
from uuid import uuid4

import pytest
from sqlalchemy import Engine

from consuming import make_topic
from strandline.store.connect import make_engine


@pytest.fixture
def topic(kafka: str) -> str:
    """A topic of two partitions."""
    name = f"events-{uuid4().hex[:8]}"
    make_topic(kafka, name, partitions=2)
    return name


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
