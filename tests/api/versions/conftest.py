"""A running server on SQLite and on PostgreSQL."""

from collections.abc import Iterator

import pytest
from sqlalchemy import Engine

from fixtures.versions_server.server import Server, running


@pytest.fixture
def server(engine: Engine) -> Iterator[Server]:
    with running(engine) as server:
        yield server
