"""A hundred thousand orders of events: the core folds each to the rows that a store has which took them one by one.

`tests/store/test_any_order.py` compares fewer of them on real databases with an independent oracle. `make soak` folds more:
STRANDLINE_SOAK_ORDERINGS (1,000,000), from STRANDLINE_SOAK_SEED.
"""

import os
import random
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import Engine

from strandline.core.changes import compact
from strandline.core.changes.rows import FacetSeen
from worlds.simulation.databases import Eyes, quick_engine
from worlds.simulation.orderings import difference, events_of, folded, order_of, statements_of, stored

ORDERINGS, OF_EACH = 50_000, 50
SOAK_ORDERINGS = int(os.environ.get("STRANDLINE_SOAK_ORDERINGS", "1000000"))
SEED = int(os.environ.get("STRANDLINE_SOAK_SEED", "1000000"))
NOW = datetime.now(UTC).replace(microsecond=0)


@pytest.fixture
def store(sqlite_template: Path, tmp_path: Path) -> Iterator[tuple[Engine, Eyes]]:
    """A store, and who looks at its file."""
    file = Path(shutil.copy(sqlite_template, tmp_path))
    engine, eyes = quick_engine(file), Eyes(file)
    yield engine, eyes
    eyes.close()
    engine.dispose()


def check(store: tuple[Engine, Eyes], first: int, orderings: int) -> str:
    """The first history with an order that leaves other rows than the store has, '' if none has one."""
    for seed in range(first, first + orderings // OF_EACH):
        arrivals, chance = events_of(seed, NOW), random.Random(seed)
        expected, statements = stored(*store, arrivals), statements_of(arrivals)
        for _ in range(OF_EACH):
            batches = order_of(chance, len(arrivals))
            if wrong := difference(expected, folded(statements, batches)):
                return f"history {seed} as {batches}: {wrong}"
    return ""


def test_fifty_thousand_orders_leave_what_one_by_one_does(store: tuple[Engine, Eyes]) -> None:
    assert check(store, 1, ORDERINGS) == ""


def test_a_fold_that_lets_the_last_row_win_is_noticed(
    store: tuple[Engine, Eyes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(compact._MERGES, FacetSeen, compact._any)

    assert "FacetSeen: " in check(store, 1, 1000)


@pytest.mark.soak
def test_more_orders(store: tuple[Engine, Eyes]) -> None:
    print(f"{SOAK_ORDERINGS} orders from history {SEED}")

    assert check(store, SEED, SOAK_ORDERINGS) == ""
