"""Stores of the tests of commands."""

import pytest

from fixtures.stores import SQLITE_FIRST


@pytest.fixture(params=SQLITE_FIRST)
def database_url(request: pytest.FixtureRequest) -> str:
    """Give the URL of an empty store."""
    url: str = request.getfixturevalue(f"{request.param}_url")
    return url


@pytest.fixture(params=SQLITE_FIRST)
def own_database_url(request: pytest.FixtureRequest) -> str:
    """Make a fresh, migrated database for the test."""
    url: str = request.getfixturevalue(f"own_{request.param}_url")
    return url
