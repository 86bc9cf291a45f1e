"""Aligned jobs trust the tables over a collector that lacks events."""

from collections.abc import Mapping
from typing import Any

import pytest
from pyspark.sql import DataFrame

from strandline_spark import aligned_stream
from strandline_spark.consistency.collector import Collector

pytestmark = [pytest.mark.spark, pytest.mark.slow]

TABLES = ("credits", "debits", "balance")


def test_barrier_unknown_to_the_collector_is_not_skipped(bank: Any, collector: str) -> None:
    from strandline_spark.conf import conf_of
    from worlds.lake import name_the_place, report_commits

    for table in TABLES:
        bank.table(table)
        name_the_place(bank, collector, table)
    commit(bank, 1)
    for table in ("credits", "debits"):
        report_commits(bank, collector, f"bank_{table}", table, "bank")
    work(bank)
    commit(bank, 2, 3)
    for table in ("credits", "debits"):
        report_commits(bank, collector, f"bank_{table}", table, "bank", only=3)

    application = conf_of(dict(bank.spark.sparkContext.getConf().getAll())).app_name
    asked = {
        "namespace": "default",
        "name": f"{application}.{bank.name('balance')}",
        "position": 1,
    }
    told = Collector(collector, None).ask("POST", "/api/v2/jobs/decision", asked)
    work(bank)

    assert told["barrier"] == 3  # as far as the collector knows
    assert bank.barriers("balance") == [1, 2, 3]


def commit(bank: Any, *barriers: int) -> None:
    """A transfer at each barrier."""
    for barrier in barriers:
        for table in ("credits", "debits"):
            bank.commit(table, barrier, (barrier, 10 * barrier), group="bank")


def work(bank: Any) -> None:
    """Make all checkpoints of balance that are possible now."""

    def balances(inputs: Mapping[str, DataFrame], barrier: int) -> DataFrame:
        return inputs["credits"].unionAll(inputs["debits"].selectExpr("account", "-amount"))

    sources, place = [bank.name("credits"), bank.name("debits")], str(bank.folder / "ck")
    query = aligned_stream(
        bank.spark, sources, bank.name("balance"), balances,
        checkpoint=place, group="bank", available_now=True, timeout=30,
    )  # fmt: skip
    try:
        assert query.awaitTermination(600)
    finally:
        query.stop()
