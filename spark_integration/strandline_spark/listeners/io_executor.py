"""The executor that listeners get for their IO.

Not Python's ThreadPoolExecutor, whose threads the interpreter joins at its end: one task that hangs
would keep the job's process alive for ever. These threads die with the process.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any, TypeVar

_LOG = logging.getLogger("strandline")
_WAITING = 1000
_T = TypeVar("_T")


class IoExecutor(Executor):
    """A few daemon threads, and a bounded number of tasks that wait for them."""

    def __init__(self, threads: int) -> None:
        self._tasks: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._closed = False
        self._dropped = False
        self._most = threads
        self._threads: list[threading.Thread] = []
        self._starting = threading.Lock()

    def submit(self, fn: Callable[..., _T], /, *args: Any, **kwargs: Any) -> Future[_T]:
        """Run the call on one of the threads, in order of submission.

        Cancelled at once where too many wait already.
        """
        if self._closed:
            raise RuntimeError("the application has ended: no new IO")
        future: Future[_T] = Future()
        if self._tasks.qsize() >= _WAITING:
            self._drop(future, fn)
            return future
        self._start_another()
        self._tasks.put(lambda: _fulfil(future, fn, args, kwargs))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more; the emitter uses `finish`."""
        self.finish(5.0 if wait else 0.0)

    def finish(self, seconds: float) -> None:
        """Take no more, and wait at most that long for what was submitted."""
        until = time.monotonic() + seconds
        self._closed = True
        for _ in self._threads:
            self._tasks.put(None)
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))

    def _drop(self, future: Future[Any], fn: Callable[..., Any]) -> None:
        future.cancel()
        future.set_running_or_notify_cancel()
        if not self._dropped:
            name = getattr(fn, "__qualname__", type(fn).__name__)
            _LOG.warning(
                "strandline: %d tasks of a listener's IO wait: more are dropped, the first is %s",
                _WAITING,
                name,
            )
        self._dropped = True

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
