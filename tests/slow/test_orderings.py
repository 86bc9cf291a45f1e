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


def test_fifty_thousand_orders_leave_the_same_rows(tmp_path: Path) -> None:
    with order_store(tmp_path) as orders:
        assert first_wrong_order(orders, 101, 50_000, NOW) == ""


@pytest.mark.soak
def test_a_million_orders_leave_the_rows_of_one_by_one(tmp_path: Path) -> None:
    print(f"{SOAK_ORDERINGS} orders from history {SEED}")

    with order_store(tmp_path) as orders:
        assert first_wrong_order(orders, SEED, SOAK_ORDERINGS, NOW) == ""
