"""Reads the bank while its streams run, strong and latest side by side, and says where money is missing.

A strong read asks the collector which snapshots belong together; a latest read takes what each table has. In every
strong read credits and debits are equal and the balances sum to 0. Ends with 1 if one is not.
"""

import os
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass

from pace import STOP
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import sum as total

from strandline_spark import read_consistent
from strandline_spark.collector_calls import ConsistencyError

READS = int(os.environ.get("BANK_READS", "10"))
PAUSE = float(os.environ.get("BANK_READ_SECONDS", "1"))
TABLES = ("lake.bank.credits", "lake.bank.debits", "lake.bank.balance")


@dataclass(frozen=True)
class Sums:
    """What a reader makes of the three tables: credits less debits, and the sum of all balances."""

    missing: int
    balances: int

    @property
    def right(self) -> bool:
        """Whether no money is missing."""
        return (self.missing, self.balances) == (0, 0)

    def __str__(self) -> str:
        return f"credits - debits {self.missing:6}, balances {self.balances:6}"


def sums(tables: Mapping[str, DataFrame]) -> Sums:
    """Sum up three tables."""
    credits, debits, balance = (tables[name] for name in TABLES)
    both = credits.agg(total("amount").alias("c")).crossJoin(debits.agg(total("amount").alias("d")))
    row = both.crossJoin(balance.agg(total("balance").alias("b"))).first()
    assert row is not None
    return Sums((row.c or 0) - (row.d or 0), row.b or 0)


def strong(spark: SparkSession) -> tuple[int | None, Sums] | None:
    """One strong read with its barrier; None while there is no version yet."""
    try:
        with read_consistent(spark, TABLES) as tables:
            return tables.barrier, sums(tables)
    except ConsistencyError as reason:
        print(f"no strong read yet: {reason}", flush=True)
        return None


def latest(spark: SparkSession) -> Sums:
    """One read of whatever is there."""
    return sums({name: spark.table(name) for name in TABLES})


def main(spark: SparkSession) -> int:
    """Read until enough was read; 1 if a strong read was wrong."""
    seen: list[tuple[Sums, Sums]] = []
    while len(seen) < READS and not STOP.exists():
        found, now = strong(spark), latest(spark)
        if found is not None:
            barrier, sums_then = found
            seen.append((sums_then, now))
            print(f"barrier {barrier:4}   strong: {sums_then}   latest: {now}", flush=True)
        time.sleep(PAUSE)
    wrong = sum(not found.right for found, _ in seen), sum(not now.right for _, now in seen)
    print(f"{len(seen)} reads: {wrong[0]} strong ones wrong, {wrong[1]} latest ones wrong", flush=True)
    return int(wrong[0] > 0)


if __name__ == "__main__":
    with SparkSession.builder.appName("bank_reads").getOrCreate() as spark:
        sys.exit(main(spark))
