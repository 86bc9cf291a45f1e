"""Exporting while a server or consumer runs.

A thread for each target, and one that keeps the outbox in order.

Any number of processes may export to the same targets; each target is served by one of them at a
time. Without targets nothing is started, and nothing is written for them.
"""

import time
from collections.abc import Callable, Sequence
from functools import partial
from uuid import uuid4

from sqlalchemy import Engine

from strandline.exporters import outbox
from strandline.exporters.delivery import REFRESH_SECONDS, Delivery
from strandline.exporters.target import ExportTarget
from strandline.runtime.periodic import Turns

IDLE_SECONDS = 1.0
TIDY_SECONDS = 10.0
STOP_SECONDS = 10.0


class Exporting:
    """The deliveries to all targets, each in a thread of its own: a dead one delays no other."""

    def __init__(
        self,
        engine: Engine,
        targets: Sequence[ExportTarget],
        complain: Callable[[str], None],
        max_waiting: int = 200_000,
    ) -> None:
        self._engine = engine
        self._targets = tuple(targets)
        self._complain = complain
        self._max_waiting = max_waiting
        holder = uuid4().hex
        self.deliveries = [Delivery(engine, target, holder) for target in self._targets]
        works: list[tuple[str, Callable[[], object], float]] = [("tidy", self.tidy, TIDY_SECONDS)]
        works += [
            (delivery.target.name, partial(self._deliver, delivery), IDLE_SECONDS)
            for delivery in self.deliveries
        ]
        self._turns = [
            Turns(f"export-{name}", work, pause, complain) for name, work, pause in works
        ]

    def register(self, now: float | None = None) -> None:
        """Store the targets, so that ingest notes what each has to be sent."""
        with self._engine.begin() as connection:
            for target in self._targets:
                outbox.register(
                    connection, target.name, target.kinds, time.time() if now is None else now
                )

    def start(self) -> None:
        """Start the threads, if there is any target."""
        if self._targets:
            self.register()
        for turns in self._turns if self._targets else ():
            turns.start()

    def stop(self) -> None:
        """End the threads; what is on its way is finished first."""
        for turns in self._turns:
            turns.stop(STOP_SECONDS)
        for delivery in self.deliveries:
            delivery.release()

    def __enter__(self) -> None:
        self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def tidy(self, now: float | None = None) -> None:
        """Mark what ended by silence, drop what all have, fold what is too much."""
        moment = time.time() if now is None else now
        with self._engine.begin() as connection:
            for target in self._targets:
                outbox.note_heard(connection, target.name, moment)
            outbox.tidy(connection, self._max_waiting, moment, REFRESH_SECONDS)

    def deliver(self, now: float) -> int:
        """A turn of every delivery, one after the other, at a moment; how many items were taken."""
        return sum(delivery.deliver(lambda: now) for delivery in self.deliveries)

    def _deliver(self, delivery: Delivery) -> None:
        delivery.deliver()
        if delivery.problem:
            self._complain(f"{delivery.target.name} is not accepting changes: {delivery.problem}")
