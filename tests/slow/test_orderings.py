"""More orders than tests/store/test_orderings.py folds, of other histories.

`make soak` folds STRANDLINE_SOAK_ORDERINGS (1,000,000), from STRANDLINE_SOAK_SEED.
"""

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from worlds.simulation.orderings import first_wrong_order, order_store

SOAK_ORDERINGS = int(os.environ.get("STRANDLINE_SOAK_ORDERINGS", "1000000"))
SEED = int(os.environ.get("STRANDLINE_SOAK_SEED", "1000000"))
NOW = datetime.now(UTC).replace(microsecond=0)


@pytest.mark.parametrize(
    ("first", "count"),
    [
        pytest.param(101, 50_000, id="50,000 orders"),
        pytest.param(SEED, SOAK_ORDERINGS, id="soak", marks=pytest.mark.soak),
    ],
)
def test_orders_leave_the_rows_of_one_by_one(tmp_path: Path, first: int, count: int) -> None:
    print(f"{count} orders from history {first}")

    with order_store(tmp_path) as orders:
        assert first_wrong_order(orders, first, count, NOW) == ""
