"""The aligned bank in one application, with somebody who reads it all the while.

For a machine with little memory.

Its streams end after BANK_READS reads of each kind.
"""

import sys
import time

import balance
import credits
import debits
import naive_balance
from pace import SECONDS, STOP, end
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery
from reads import BALANCE, READS, Reads, read_all, verdict


def main(spark: SparkSession) -> list[Reads]:
    """Run all streams until enough was read; gives what was read."""
    queries = [job.start(spark, None) for job in (credits, debits, balance)]
    wait_for_the_first(spark, queries)
    queries.append(naive_balance.start(spark))
    seen = read_all(
        spark,
        lambda reads: (
            reads < READS and all(query.isActive for query in queries) and not STOP.exists()
        ),
    )
    for query in queries:
        end(query)
    for query in queries:
        check(query)
    return seen


def wait_for_the_first(spark: SparkSession, queries: list[StreamingQuery]) -> None:
    """Wait until the last table of the chain has a snapshot, and so all have."""
    deadline = time.monotonic() + SECONDS
    while spark.table(f"{BALANCE}.snapshots").isEmpty() and not STOP.exists():
        for query in queries:
            check(query)
        if time.monotonic() > deadline:
            raise TimeoutError(f"{BALANCE} has no snapshot after {SECONDS:.0f} s")
        time.sleep(0.3)


def check(query: StreamingQuery) -> None:
    """Raise what ended a stream, if anything did."""
    if error := query.exception():
        raise error


if __name__ == "__main__":
    with SparkSession.builder.appName("bank_aligned").getOrCreate() as spark:
        found = main(spark)
        print(verdict(found))
        sys.exit(any(not one.strong.right for one in found))
