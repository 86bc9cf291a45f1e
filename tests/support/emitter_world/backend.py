"""A transport whose backend does as a test wants, and an outbox that sends to it."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

from strandline_spark.delivery.outbox import Outbox
from strandline_spark.delivery.spool import Spool
from strandline_spark.delivery.transport import Delivery, Message, Transport

LIMIT = 10_000_000


class Backend:
    """A transport whose backend can be away, refuse, or hang."""

    def __init__(self) -> None:
        self.away = False
        self.refuses: set[str] = set()
        self.never: set[str] = set()  # at these it fails, whenever they come
        self.most: int | None = None  # how many it takes at once
        self.got: list[str] = []
        self.changed = threading.Condition()
        self.hang: threading.Event | None = None
        self.entered = threading.Event()

    def send(self, messages: Sequence[Message], seconds: float) -> Delivery:
        """Takes all, or none."""
        self.entered.set()
        if self.hang is not None:
            self.hang.wait(30)
        if self.away:
            return Delivery(unsent=tuple(messages), reason="away")
        taken = [m for m in messages if m.key not in self.refuses | self.never][: self.most]
        with self.changed:
            self.got += [m.key for m in taken]
            self.changed.notify_all()
        refused = tuple(m for m in messages if m.key in self.refuses)
        unsent = tuple(m for m in messages if m not in refused and m not in taken)
        return Delivery(unsent, refused, "refused" if refused else "failed" if unsent else "")

    def close(self) -> None:
        """Nothing to close."""

    def wait_for(self, *names: str) -> bool:
        """Waits until all of these have come."""
        keys = {f"run:default/{name}" for name in names}
        with self.changed:
            return self.changed.wait_for(lambda: keys <= set(self.got), 30)


def box(backend: Transport, folder: Path, capacity: int = 1000) -> Outbox:
    """An outbox that tries again soon."""
    return Outbox(lambda: backend, Spool(folder, LIMIT), capacity=capacity, first_pause=0.01)
