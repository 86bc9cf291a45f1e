"""A lake of the test's own."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def bank(lake: Any, tmp_path: Path) -> Iterator[Any]:
    """An empty namespace in the catalog `lake`; see `aligned_lake.Lake`."""
    from worlds.lake import bank_in

    with bank_in(lake, tmp_path) as bank:
        yield bank
