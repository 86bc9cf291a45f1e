"""How long the bank's streams run: until their share of the transfers has gone through, then each stops by itself."""

import os
import time

from pyspark.sql.streaming import StreamingQuery

ROUNDS = int(os.environ.get("BANK_ROUNDS", "10"))  # micro-batches of the ingest job
ROWS = 80  # transfers in a round
TRIGGER = os.environ.get("BANK_TRIGGER", "2 seconds")
SECONDS = int(os.environ.get("BANK_SECONDS", "170"))  # a stream without input gives up then
CHECKPOINTS = os.environ.get("BANK_CHECKPOINTS", "checkpoints")


def finish(query: StreamingQuery, rows: int) -> None:
    """Let a stream take `rows` rows, then stop it between two micro-batches."""
    deadline = time.monotonic() + SECONDS
    while rows_taken(query) < rows:
        if query.awaitTermination(0.2):
            return
        if time.monotonic() > deadline:
            raise TimeoutError(f"stream {query.name}: {rows_taken(query)} of {rows} rows came within {SECONDS} s")
    while query.status["isTriggerActive"]:
        time.sleep(0.02)
    query.stop()


def rows_taken(query: StreamingQuery) -> int:
    """Rows that the stream has read in all its committed micro-batches since it started."""
    return sum(progress["numInputRows"] for progress in query.recentProgress)
