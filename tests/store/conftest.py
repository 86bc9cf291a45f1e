"""A store whose changes are noted, and a graph in memory that follows it."""

import pytest
from sqlalchemy import Engine

from strandline.runtime.lineage_graph import LineageGraph
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
