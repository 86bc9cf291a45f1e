"""Threads in the background give way to the job's own.

Reporting a query must not delay the next one.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time

# a third of the weight of the others; far less, and a thread that holds Python's lock could keep
# the job waiting
NICE = 5
_LEAST = 19
_BUSY_SECONDS = 0.03  # how long who has got an answer is mostly busy with the next question


def give_way() -> None:
    """Lower the priority of the calling thread.

    Only Linux has priorities of threads: elsewhere nothing changes.
    """
    if sys.platform != "linux":
        return
    thread = threading.get_native_id()
    with contextlib.suppress(OSError):  # a sandbox may forbid it
        os.setpriority(
            os.PRIO_PROCESS, thread, min(_LEAST, os.getpriority(os.PRIO_PROCESS, thread) + NICE)
        )


def let_pass(at: float) -> None:
    """Wait until a moment (milliseconds since 1970) is a little while ago.

    Then the job's own Python, which goes on at that moment, asks its next question without waiting
    for Python's lock.
    """
    time.sleep(max(0.0, min(_BUSY_SECONDS, at / 1000 + _BUSY_SECONDS - time.time())))
