"""The executor that listeners get for their IO.

Not Python's ThreadPoolExecutor, whose threads the interpreter joins at its end: one task that hangs would keep the job's
process alive for ever. These threads die with the process.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any, TypeVar

_T = TypeVar("_T")


class IoExecutor(Executor):
    """A few daemon threads."""

    def __init__(self, threads: int) -> None:
        self._tasks: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._closed = False
        self._most = threads
        self._threads: list[threading.Thread] = []
        self._starting = threading.Lock()

    def submit(self, fn: Callable[..., _T], /, *args: Any, **kwargs: Any) -> Future[_T]:
        """Runs the call on one of the threads, in order of submission."""
        if self._closed:
            raise RuntimeError("the application has ended: no new IO")
        self._start_another()
        future: Future[_T] = Future()
        self._tasks.put(lambda: _fulfil(future, fn, args, kwargs))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Takes no more; `finish` is what the emitter uses."""
        self.finish(5.0 if wait else 0.0)

    def finish(self, seconds: float) -> None:
        """Takes no more, and waits at most that long for what was submitted."""
        until = time.monotonic() + seconds
        self._closed = True
        for _ in self._threads:
            self._tasks.put(None)
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))

    def _start_another(self) -> None:
        with self._starting:
            if len(self._threads) < self._most:
                thread = threading.Thread(target=self._run, name="strandline-io", daemon=True)
                self._threads.append(thread)
                thread.start()

    def _run(self) -> None:
        while (task := self._tasks.get()) is not None:
            task()


def _fulfil(future: Future[_T], fn: Callable[..., _T], args: Any, kwargs: Any) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        future.set_result(fn(*args, **kwargs))
    except BaseException as error:  # as every executor does: the future carries it
        future.set_exception(error)
