"""The duration of the bank's streams.

Until their share of the transfers has gone through, then each stops by itself.
"""

import os
import time
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

ROUNDS = int(os.environ.get("BANK_ROUNDS", "10"))  # micro-batches of the ingest job
ROWS = 80  # transfers in a round
TRIGGER = os.environ.get("BANK_TRIGGER", "2 seconds")
SECONDS = int(
    os.environ.get("BANK_SECONDS", "120")
)  # a stream that gets nothing new for so long gives up
CHECKPOINTS = os.environ.get("BANK_CHECKPOINTS", "checkpoints")
STOP = Path(os.environ.get("BANK_STOP", "stop"))  # all streams end once this file is there


def rounds_of(spark: SparkSession, table: str) -> DataFrame:
    """The rounds of a table as a stream, one a micro-batch, from its first.

    Waits until that is there.
    """
    deadline = time.monotonic() + SECONDS
    while spark.table(f"{table}.snapshots").isEmpty() and not STOP.exists():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{table} has no snapshot after {SECONDS} s")
        time.sleep(0.3)
    return spark.readStream.option("streaming-max-files-per-micro-batch", 1).table(table)


def finish(query: StreamingQuery, rows: int) -> None:
    """Let a stream take `rows` rows, then stop it between two micro-batches."""
    taken: dict[int, int] = {}
    news = time.monotonic()
    while sum(taken.values()) < rows and not STOP.exists():
        if query.awaitTermination(0.2):
            return
        for progress in query.recentProgress:
            if progress.batchId not in taken and progress.numInputRows:
                taken[progress.batchId] = progress.numInputRows
                news = time.monotonic()
        if time.monotonic() > news + SECONDS:
            raise TimeoutError(
                f"stream {query.name}: nothing new for {SECONDS} s, "
                f"{sum(taken.values())} rows so far"
            )
    while query.status["isTriggerActive"]:
        time.sleep(0.02)
    query.stop()
