"""Stores of the tests of commands."""

from pathlib import Path

import pytest

from fixtures.sqlite_first import database_url, own_database_url

__all__ = ["database_url", "own_database_url"]


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """Return settings with a database that is not there yet."""
    return {"STRANDLINE_DATABASE_URL": f"sqlite:///{tmp_path}/strandline.db"}
