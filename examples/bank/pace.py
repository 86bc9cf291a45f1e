"""How long the bank's streams run: until their share of the transfers has gone through, then each stops by itself."""

import os
import time
from pathlib import Path

from pyspark.sql.streaming import StreamingQuery

ROUNDS = int(os.environ.get("BANK_ROUNDS", "10"))  # micro-batches of the ingest job
ROWS = 80  # transfers in a round
TRIGGER = os.environ.get("BANK_TRIGGER", "2 seconds")
SECONDS = int(os.environ.get("BANK_SECONDS", "120"))  # a stream that gets nothing new for so long gives up
CHECKPOINTS = os.environ.get("BANK_CHECKPOINTS", "checkpoints")
STOP = Path(os.environ.get("BANK_STOP", "stop"))  # all streams end once this file is there


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
            raise TimeoutError(f"stream {query.name}: nothing new for {SECONDS} s, {sum(taken.values())} rows so far")
    while query.status["isTriggerActive"]:
        time.sleep(0.02)
    query.stop()
