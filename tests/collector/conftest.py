"""An engine on SQLite alone, for tests that do not run on both databases by the same story; generated tests look at no clock."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from sqlalchemy import Engine, insert

from strandline.store.schema.tables import store_settings
from strandline.store.sql.engine import make_engine

FAR = "9" * 18  # microseconds
settings.register_profile("no clock", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("no clock")


@pytest.fixture
def sqlite_engine(sqlite_url: str) -> Iterator[Engine]:
    """An engine on a fresh SQLite file."""
    engine = make_engine(sqlite_url)
    yield engine
    engine.dispose()


@pytest.fixture
def plain_engine(sqlite_template: Path, tmp_path: Path) -> Iterator[Engine]:
    """A store of its own that writes each facet in a row, to compare with one that writes sets."""
    (tmp_path / "plain.db").write_bytes(sqlite_template.read_bytes())
    plain = make_engine(f"sqlite:///{tmp_path / 'plain.db'}")
    with plain.begin() as connection:
        connection.execute(insert(store_settings).values(key="facet_sets_from", value=FAR))
    yield plain
    plain.dispose()
