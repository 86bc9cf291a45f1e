"""A store whose changes are noted, a memory of jobs that follows it, and a second store."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine

from strandline.runtime.job_memory import JobMemory
from strandline.store.sql.engine import make_engine
from worlds.scenarios.kept_graph import PLENTY, follow


@pytest.fixture
def memory() -> JobMemory:
    """Give a memory that keeps all that it reads."""
    return JobMemory(PLENTY)


@pytest.fixture
def followed(engine: Engine) -> Engine:
    """Give a store whose changes are noted."""
    follow(engine)
    return engine


@pytest.fixture
def plain_engine(sqlite_template: Path, tmp_path: Path) -> Iterator[Engine]:
    """Give a second store, to compare with."""
    (tmp_path / "plain.db").write_bytes(sqlite_template.read_bytes())
    plain = make_engine(f"sqlite:///{tmp_path / 'plain.db'}")
    yield plain
    plain.dispose()
