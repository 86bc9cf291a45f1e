"""Stops a streaming query from outside when its work is done.

A micro-batch cannot stop the query that runs it.
"""

from __future__ import annotations

import threading
import time

from pyspark import InheritableThread
from pyspark.sql.streaming import StreamingQuery

from strandline_spark.extraction.aligned_outputs import note_finished

_LOOK_SECONDS = 0.25
_PATIENCE_SECONDS = 10


def stop_when_finished(query: StreamingQuery, finished: threading.Event) -> None:
    """Stop the query, between two micro-batches, once `finished` is set.

    Give up when it ends otherwise.
    """
    thread = InheritableThread(
        target=_wait_and_stop, args=(query, finished)
    )  # closes its connection when it ends
    thread.daemon = True
    thread.start()


def _wait_and_stop(query: StreamingQuery, finished: threading.Event) -> None:
    try:
        while not finished.wait(_LOOK_SECONDS):
            if not query.isActive:
                return
        until = time.monotonic() + _PATIENCE_SECONDS
        while (
            query.status["isTriggerActive"] and time.monotonic() < until
        ):  # a stop in mid-batch makes Spark print long stack traces
            time.sleep(0.01)
        note_finished(query.id)
        query.stop()
    except Exception:  # noqa: S110  (the session is gone, and the query with it)
        pass
