"""A store whose changes are noted, a graph in memory that follows it, and a second store."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine

from strandline.runtime.lineage_graph import LineageGraph
from strandline.store.sql.engine import make_engine
from worlds.scenarios.kept_graph import PLENTY, follow


@pytest.fixture
def graph() -> LineageGraph:
    """A graph that keeps all that it reads."""
    return LineageGraph(PLENTY)


@pytest.fixture
def followed(engine: Engine) -> Engine:
    """A store whose changes are noted."""
    follow(engine)
    return engine


@pytest.fixture
def plain_engine(sqlite_template: Path, tmp_path: Path) -> Iterator[Engine]:
    """A second store, to compare with."""
    (tmp_path / "plain.db").write_bytes(sqlite_template.read_bytes())
    plain = make_engine(f"sqlite:///{tmp_path / 'plain.db'}")
    yield plain
    plain.dispose()
