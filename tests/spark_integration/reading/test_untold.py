"""An aligned job beside a collector that has not heard of everything: what the tables themselves say comes first."""

from collections.abc import Mapping
from typing import Any

import pytest
from pyspark.sql import DataFrame

from strandline_spark import aligned_stream

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")]


def test_a_barrier_of_which_the_collector_has_not_heard_is_not_left_out(bank: Any, collector: str) -> None:
    from aligned_lake import tell

    for table in ("credits", "debits", "balance"):
        bank.table(table)
    commit(bank, 1)
    for table in ("credits", "debits"):
        tell(bank, collector, f"bank_{table}", table, "bank")
    work(bank)
    commit(bank, 2, 3)
    for table in ("credits", "debits"):
        tell(bank, collector, f"bank_{table}", table, "bank", only=3)

    work(bank)

    assert bank.barriers("balance") == [1, 2, 3]


def commit(bank: Any, *barriers: int) -> None:
    """A transfer at each barrier."""
    for barrier in barriers:
        for table in ("credits", "debits"):
            bank.commit(table, barrier, (barrier, 10 * barrier), domain="bank")


def work(bank: Any) -> None:
    """Make all checkpoints of balance that are possible now."""

    def balances(inputs: Mapping[str, DataFrame], barrier: int) -> DataFrame:
        return inputs["credits"].unionAll(inputs["debits"].selectExpr("account", "-amount"))

    sources, place = [bank.name("credits"), bank.name("debits")], str(bank.folder / "ck")
    query = aligned_stream(
        bank.spark, sources, bank.name("balance"), balances,
        checkpoint=place, domain="bank", available_now=True, timeout=30,
    )  # fmt: skip
    try:
        assert query.awaitTermination(90)
    finally:
        query.stop()
