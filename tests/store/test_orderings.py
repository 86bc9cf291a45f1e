"""Orders of events, folded by the core alone.

Each leaves the rows of a store that took the events one by one.

`test_any_order.py` compares fewer of them on real databases with an independent oracle;
`tests/slow/test_orderings.py` has more.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from strandline.core.changes import compact
from strandline.core.changes.rows import FacetSeen
from worlds.simulation.orderings import OrderStore, first_wrong_order, order_store

NOW = datetime.now(UTC).replace(microsecond=0)


@pytest.fixture
def orders(tmp_path: Path) -> Iterator[OrderStore]:
    """An empty store for histories."""
    with order_store(tmp_path) as store:
        yield store


@pytest.mark.parametrize("count", [1_000, pytest.param(5_000, marks=pytest.mark.slow)])
def test_any_order_leaves_the_rows_of_one_by_one(orders: OrderStore, count: int) -> None:
    assert first_wrong_order(orders, 1, count, NOW) == ""


def test_fold_with_last_row_wins_is_detected(
    orders: OrderStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(compact._MERGES, FacetSeen, compact._any)

    assert "FacetSeen: " in first_wrong_order(orders, 1, 1_000, NOW)
