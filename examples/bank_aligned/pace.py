"""The duration of the bank's aligned streams, and the folder of their state.

The bank's own settings.
"""

import os
import time
from pathlib import Path

from pyspark.sql.streaming import StreamingQuery

ROUNDS = int(
    os.environ.get("BANK_ROUNDS", "10")
)  # barriers of the group: micro-batches of the ingest job
TRIGGER = os.environ.get("BANK_TRIGGER", "2 seconds")
SLOW_TRIGGER = os.environ.get(
    "BANK_SLOW_TRIGGER", TRIGGER
)  # of debits: two jobs are seldom equally fast
START = os.environ.get("BANK_START", "earliest")  # latest: a new job begins at the newest barrier
SECONDS = float(
    os.environ.get("BANK_SECONDS", "120")
)  # an input that gets nothing new for so long is an error
DATABASE = os.environ.get("BANK_DATABASE", "lake.aligned")  # of the tables that the streams write
CHECKPOINTS = os.environ.get("BANK_CHECKPOINTS", "checkpoints")
STOP = Path(os.environ.get("BANK_STOP", "stop"))  # all streams end once this file is there


def finish(query: StreamingQuery) -> None:
    """Wait until the stream ends by itself, or the stop file is there.

    Then stop it between two micro-batches.
    """
    while not query.awaitTermination(0.2):
        if STOP.exists():
            end(query)


def end(query: StreamingQuery) -> None:
    """Stop a stream between two micro-batches.

    One that waits for an input is stopped while it waits.
    """
    patience = time.monotonic() + 5
    while query.isActive and query.status["isTriggerActive"] and time.monotonic() < patience:
        time.sleep(0.02)
    query.stop()
