"""Work that another thread may stop: the statements that it runs, and its own long loops."""

import threading
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from strandline.errors import StoppedError


class Work:
    """The work of one thread, with the database connections that it has borrowed from a pool.

    `interrupt` ends the statement that a connection of the driver is running. `seconds` is the time
    that the work may take.
    """

    def __init__(self, interrupt: Callable[[Any], None], seconds: int) -> None:
        self.seconds = seconds
        self._interrupt = interrupt
        # Held while a connection is interrupted: nobody else can have borrowed it by then.
        self._lock = threading.Lock()
        self._connections: list[Any] = []
        self.stopped_because: str | None = None

    def borrow(self, connection: Any) -> None:
        """Note a connection that this work has taken from the pool."""
        with self._lock:
            self._connections.append(connection)

    def give_back(self, connection: Any) -> None:
        """Forget a connection that goes back to the pool."""
        with self._lock:
            if connection in self._connections:
                self._connections.remove(connection)

    def stop(self, reason: str) -> None:
        """Let the work end with a StoppedError; call it again until the work has ended.

        A statement that begins just now may miss the first interruption.
        """
        with self._lock:
            self.stopped_because = self.stopped_because or reason
            for connection in self._connections:
                self._interrupt(connection)


CURRENT: ContextVar[Work | None] = ContextVar("work", default=None)
"""The work of this thread, where it can be stopped."""


def go_on() -> None:
    """Raise StoppedError if the work of this thread is to end; for loops that may take long."""
    work = CURRENT.get()
    if work is not None and work.stopped_because is not None:
        raise StoppedError(work.stopped_because)
