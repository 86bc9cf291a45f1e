"""Reads the aligned bank while its streams run, strong and latest side by side, and says where money is missing.

A strong read asks the collector which snapshots belong together; a latest read takes what each table has. Every credit
is somebody's debit, so credits less debits, and the sum of all balances, are 0 in every strong read.
"""

import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pace import STOP
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import sum as total

from strandline_spark import read_consistent
from strandline_spark.consistency.collector import ConfigurationError, ConsistencyError

READS = int(os.environ.get("BANK_READS", "10"))
PAUSE = float(os.environ.get("BANK_READ_SECONDS", "1"))
CREDITS, DEBITS, BALANCE = TABLES = ("lake.aligned.credits", "lake.aligned.debits", "lake.aligned.balance")
HEAD = f"""|         | {"strong read: one barrier":^34} | {"latest read: whatever is there":^34} |
| barrier | {"credits":>10} {"debits":>10} {"difference":>12} | {"credits":>10} {"debits":>10} {"difference":>12} |"""


@dataclass(frozen=True)
class Sums:
    """What a reader makes of the three tables."""

    credits: int
    debits: int
    balances: int

    @property
    def right(self) -> bool:
        """Whether no money is missing."""
        return self.credits == self.debits and self.balances == 0

    def __str__(self) -> str:
        return f"{self.credits:10,} {self.debits:10,} {self.credits - self.debits:12,}"


@dataclass(frozen=True)
class Pair:
    """A strong read and the latest read that followed it."""

    barrier: int | None
    strong: Sums
    latest: Sums

    def __str__(self) -> str:
        return f"| {self.barrier:7} | {self.strong} | {self.latest} |"


def sums(tables: Mapping[str, DataFrame]) -> Sums:
    """Sum up three tables: the same for both kinds of reads."""
    sides = (tables[CREDITS].agg(total("amount")), tables[DEBITS].agg(total("amount")))
    row = sides[0].crossJoin(sides[1]).crossJoin(tables[BALANCE].agg(total("balance"))).first()
    return Sums(*(int(value or 0) for value in row)) if row is not None else Sums(0, 0, 0)


def read(spark: SparkSession) -> Pair | None:
    """One read of each kind; None while there is no version yet."""
    try:
        with read_consistent(spark, TABLES) as tables:
            barrier, strong = tables.barrier, sums(tables)
    except ConfigurationError:
        raise  # asking again does not help
    except ConsistencyError as reason:
        print(f"no strong read yet: {reason}", flush=True)
        return None
    return Pair(barrier, strong, sums({name: spark.table(name) for name in TABLES}))


def read_all(spark: SparkSession, goes_on: Callable[[int], bool]) -> list[Pair]:
    """Read as long as `goes_on(reads so far)` says so, and show each read."""
    seen: list[Pair] = []
    while goes_on(len(seen)):
        if pair := read(spark):
            print(pair if seen else f"{HEAD}\n{pair}", flush=True)
            seen.append(pair)
        time.sleep(PAUSE)
    return seen


def verdict(seen: list[Pair]) -> str:
    """How many reads were wrong."""
    strong = sum(not pair.strong.right for pair in seen) or "none"
    latest = sum(not pair.latest.right for pair in seen) or "none"
    return f"{len(seen)} strong reads, {strong} wrong; {len(seen)} latest reads, {latest} wrong"


if __name__ == "__main__":
    with SparkSession.builder.appName("bank_reads").getOrCreate() as spark:
        pairs = read_all(spark, lambda reads: reads < READS and not STOP.exists())
        print(verdict(pairs))
        sys.exit(any(not pair.strong.right for pair in pairs))
