"""Threads in the background give way to the job's own: what is told of a query must not delay the next one."""

from __future__ import annotations

import contextlib
import os
import sys
import threading

NICE = (
    5  # a third of the weight of the others; far less, and a thread that holds Python's lock could keep the job waiting
)
_LEAST = 19


def give_way() -> None:
    """Lowers the priority of the calling thread. Only Linux has priorities of threads: elsewhere nothing changes."""
    if sys.platform != "linux":
        return
    thread = threading.get_native_id()
    with contextlib.suppress(OSError):  # a sandbox may forbid it
        os.setpriority(os.PRIO_PROCESS, thread, min(_LEAST, os.getpriority(os.PRIO_PROCESS, thread) + NICE))
