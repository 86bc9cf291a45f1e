"""The one way out for events.

Builds, redacts, bounds and queues them, and keeps the list of runs that are alive.

Safe from several threads (the emitter's and the heartbeat's). Whatever goes wrong in making an
event is counted and logged, and hurts nobody.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from strandline_spark.conf import Conf
from strandline_spark.delivery.losses import Losses
from strandline_spark.delivery.transport import Message
from strandline_spark.openlineage.events import TERMINAL, EventContent, Events, RunOf, key_of
from strandline_spark.openlineage.facets import StrandlineBarrierRunFacet, StrandlineEmitterRunFacet
from strandline_spark.openlineage.redaction import redacted
from strandline_spark.openlineage.to_json import as_json
from strandline_spark.openlineage.trimming import encoded
from strandline_spark.swallowed import swallowed


class Box(Protocol):
    """The destination of finished events: the outbox, or a list in tests."""

    losses: Losses

    def put(self, message: Message) -> None:
        """Take an event without blocking."""
        ...


class Watcher(Protocol):
    """Whoever wants to see what is announced: FLIP-314 listeners."""

    def announced(self, state: str, run: RunOf, content: EventContent) -> None:
        """Handle an event that is no heartbeat. Must not block."""
        ...


class Announcer:
    """Announces events of runs, and heartbeats for those that are alive."""

    def __init__(
        self, conf: Conf, events: Events, box: Box, watcher: Watcher | None = None
    ) -> None:
        self._conf = conf
        self._events = events
        self._box = box
        self._watcher = watcher
        self._alive: dict[str, tuple[RunOf, float]] = {}
        self._lock = threading.Lock()
        self._confessed: tuple[int, tuple[str, ...], Mapping[str, int]] = 0, (), {}
        self.missed = 0  # executions that could not be reported, by a fault of ours
        self.overflowed = 0  # events of Spark that found the JVM's queue full
        self.unavailable: tuple[str, ...] = ()  # what cannot be known in this JVM
        self.swallowed: Callable[[], Mapping[str, int]] = (
            dict  # errors that the emitter went on after, by their kind
        )

    def say(
        self, state: str, run: RunOf, at: float, content: EventContent = EventContent()
    ) -> None:
        """Announces one event of `run`; `at` is milliseconds since 1970."""
        try:
            self._put(state, run, at, content)
            if self._watcher is not None and not content.heartbeat:
                self._watcher.announced(state, run, content)
        except Exception as error:
            self.missed += 1
            swallowed("an event could not be made", error)

    def beat(self, now: float) -> None:
        """Send RUNNING for every open run that was silent for a quarter of its heartbeat timeout.

        `now` is monotonic seconds.

        Asked every twelfth of it, none is silent for longer than a third of it.
        """
        with self._lock:
            silent = [
                run
                for run, last_event_at in self._alive.values()
                if now - last_event_at >= self._conf.heartbeat_seconds / 4
            ]
        for run in silent:
            self.say("RUNNING", run, time.time() * 1000, EventContent(heartbeat=True))

    def alive(self) -> list[RunOf]:
        """The runs that have begun and not ended."""
        with self._lock:
            return [run for run, _ in self._alive.values()]

    def let_go(self, run: RunOf) -> None:
        """Let go of a run that lost its end: its heartbeat timeout ends it."""
        with self._lock:
            self._alive.pop(run.run_id, None)

    def _put(self, state: str, run: RunOf, at: float, content: EventContent) -> None:
        event = self._events.event(state, run, at, content)
        confession = (
            None if content.heartbeat else self._confession()
        )  # an outbox throws heartbeats away
        if confession is not None:
            event["run"]["facets"]["strandline_emitter"] = confession
        barrier = content.barrier
        with self._lock:
            if content.heartbeat and run.run_id not in self._alive:
                return  # it ended while this heartbeat was made
            if state in TERMINAL:
                self._alive.pop(run.run_id, None)
            else:
                self._alive[run.run_id] = (run, time.monotonic())
        self._box.put(
            Message(
                key=key_of(event),
                body=encoded(redacted(event), self._conf.event_bytes),
                vital=state in TERMINAL or _micro_batch(barrier) is not None,
                micro_batch=_micro_batch(barrier),
                heartbeat=content.heartbeat,
            )
        )

    def _confession(self) -> Any:
        """Return the losses and unknowns, if they have grown since the last report."""
        losses = self._box.losses
        total = losses.dropped + losses.refused + losses.damaged + self.missed + self.overflowed
        errors = self.swallowed()
        if (total, self.unavailable, errors) == self._confessed:
            return None
        self._confessed = total, self.unavailable, errors
        return as_json(
            StrandlineEmitterRunFacet(
                droppedEvents=losses.dropped,
                rejectedEvents=losses.refused,
                damagedEvents=losses.damaged,
                missedExecutions=self.missed + self.overflowed,
                unavailable=list(self.unavailable) or None,
                swallowedErrors=dict(errors) or None,
            )
        )


def _micro_batch(barrier: StrandlineBarrierRunFacet | None) -> tuple[str, int] | None:
    """The query and micro-batch that an event tells of, if it does."""
    if barrier is None or barrier.queryId is None or barrier.batchId is None:
        return None
    return barrier.queryId, barrier.batchId
