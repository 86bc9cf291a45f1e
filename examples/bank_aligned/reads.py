"""Reads the aligned bank while its streams run, in three ways, and says where money is missing.

A strong read asks the collector which snapshots belong together. A read at one catalog instant
takes of each table what was committed by then: all of one moment, and yet not of one state where a
job lags. A latest read takes what each table has. Every credit is somebody's debit, so credits less
debits, and the sum of all balances, are 0 in every strong read.
"""

import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from pace import STOP
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import sum as total

from strandline_spark import read_consistent
from strandline_spark.consistency.collector import ConfigurationError, ConsistencyError

READS = int(os.environ.get("BANK_READS", "10"))
PAUSE = float(os.environ.get("BANK_READ_SECONDS", "1"))
CREDITS, DEBITS, BALANCE = TABLES = (
    "lake.aligned.credits",
    "lake.aligned.debits",
    "lake.aligned.balance",
)
SUMS = f"{'credits':>9} {'debits':>9} {'difference':>10}"
WAYS = ("strong: one barrier", "one catalog instant", "latest: whatever is there")
HEAD = f"""|         | {" | ".join(f"{way:^30}" for way in WAYS)} |
| barrier | {SUMS} | {SUMS} | {SUMS} |"""


@dataclass(frozen=True)
class Sums:
    """The sums of a reader over the three tables."""

    credits: int
    debits: int
    balances: int

    @property
    def right(self) -> bool:
        """True if no money is missing."""
        return self.credits == self.debits and self.balances == 0

    def __str__(self) -> str:
        return f"{self.credits:9,} {self.debits:9,} {self.credits - self.debits:10,}"


@dataclass(frozen=True)
class Reads:
    """A strong read, and the reads of the other two kinds that followed it."""

    barrier: int | None
    strong: Sums
    instant: Sums
    latest: Sums

    def __str__(self) -> str:
        return f"| {self.barrier:7} | {self.strong} | {self.instant} | {self.latest} |"


def sums(tables: Mapping[str, DataFrame]) -> Sums:
    """Sum up three tables: the same for both kinds of reads."""
    sides = (tables[CREDITS].agg(total("amount")), tables[DEBITS].agg(total("amount")))
    row = sides[0].crossJoin(sides[1]).crossJoin(tables[BALANCE].agg(total("balance"))).first()
    return Sums(*(int(value or 0) for value in row)) if row is not None else Sums(0, 0, 0)


def at_one_instant(spark: SparkSession) -> dict[str, DataFrame]:
    """Each table as it was at one moment, by the times of its commits.

    What a catalog can give that knows no more.
    """
    now = datetime.now(UTC).isoformat(sep=" ", timespec="milliseconds")
    return {name: spark.read.option("timestampAsOf", now).table(name) for name in TABLES}


def read(spark: SparkSession) -> Reads | None:
    """One read of each kind; None while there is no version yet."""
    try:
        with read_consistent(spark, TABLES) as tables:
            barrier, strong = tables.barrier, sums(tables)
    except ConfigurationError:
        raise  # asking again does not help
    except ConsistencyError as reason:
        print(f"no strong read yet: {reason}", flush=True)
        return None
    instant = sums(at_one_instant(spark))
    return Reads(barrier, strong, instant, sums({name: spark.table(name) for name in TABLES}))


def read_all(spark: SparkSession, goes_on: Callable[[int], bool]) -> list[Reads]:
    """Read as long as `goes_on(reads so far)` says so, and show each read."""
    seen: list[Reads] = []
    while goes_on(len(seen)):
        if found := read(spark):
            print(found if seen else f"{HEAD}\n{found}", flush=True)
            seen.append(found)
        time.sleep(PAUSE)
    return seen


def verdict(seen: list[Reads]) -> str:
    """Return the number of wrong reads in words."""
    wrong = {
        kind: sum(not getattr(one, kind).right for one in seen) or "none"
        for kind in ("strong", "instant", "latest")
    }
    return (
        f"{len(seen)} strong reads, {wrong['strong']} wrong; {len(seen)} at one catalog instant, "
        f"{wrong['instant']} wrong; {len(seen)} latest reads, {wrong['latest']} wrong"
    )


if __name__ == "__main__":
    with SparkSession.builder.appName("bank_reads").getOrCreate() as spark:
        found = read_all(spark, lambda reads: reads < READS and not STOP.exists())
        print(verdict(found))
        sys.exit(any(not one.strong.right for one in found))
