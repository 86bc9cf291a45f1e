"""How long the aligned streams of the bank run, and where they keep what they know: the bank's own settings."""

import os
import time
from pathlib import Path

from pyspark.sql.streaming import StreamingQuery

ROUNDS = int(os.environ.get("BANK_ROUNDS", "10"))  # barriers of the domain: micro-batches of the ingest job
TRIGGER = os.environ.get("BANK_TRIGGER", "2 seconds")
SECONDS = float(os.environ.get("BANK_SECONDS", "120"))  # an input that gets nothing new for so long is an error
CHECKPOINTS = os.environ.get("BANK_CHECKPOINTS", "checkpoints")
STOP = Path(os.environ.get("BANK_STOP", "stop"))  # all streams end once this file is there


def finish(query: StreamingQuery) -> None:
    """Wait until the stream ends by itself, or the stop file is there; then stop it between two micro-batches."""
    while not query.awaitTermination(0.2):
        if STOP.exists():
            while query.status["isTriggerActive"] and query.isActive:
                time.sleep(0.02)
            query.stop()
            return
