"""An engine on SQLite alone, for tests that do not run on both databases by the same story; generated tests look at no clock."""

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings
from sqlalchemy import Engine

from strandline.store.sql.engine import make_engine

settings.register_profile("no clock", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("no clock")


@pytest.fixture
def sqlite_engine(sqlite_url: str) -> Iterator[Engine]:
    """An engine on a fresh SQLite file."""
    engine = make_engine(sqlite_url)
    yield engine
    engine.dispose()
