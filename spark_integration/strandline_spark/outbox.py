"""The second bounded queue: takes events without ever blocking, and sends them from a thread of its own.

Vital events (a committed micro-batch, the end of a run) are never dropped before they are on disk; others are, oldest
first, and are counted. While the backend is away the circuit is open: vital events go to the spool at once, and one
attempt after a growing pause finds out whether the backend is back. Where only a part of it is away, the rest goes on.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice

from strandline_spark.background import give_way
from strandline_spark.circuit import Circuit
from strandline_spark.spool import Spool, SpoolFile
from strandline_spark.transports import Delivery, Message, Transport

_BATCH = 100
_LINGER_SECONDS = 0.5  # how long an event waits for company that nothing is lost with if the driver is killed
_LOOK_SECONDS = 30.0
_MOMENT_SECONDS = 0.1
_LOG = logging.getLogger("strandline")


@dataclass(slots=True)
class Losses:
    """What did not get through since the driver started."""

    dropped: int = 0  # given up: memory was full, or neither backend nor disk took it
    refused: int = 0  # the backend said no for good
    damaged: int = 0  # lines of a spool file that were not whole


class Outbox:
    """Bounded in number and bytes. `make_transport` runs on the outbox's thread, because connecting may take long."""

    def __init__(
        self,
        make_transport: Callable[[], Transport],
        spool: Spool,
        *,
        capacity: int = 1000,
        capacity_bytes: int = 32 * 1024 * 1024,
        attempt_seconds: float = 5.0,
        first_pause: float = 0.5,
        safe: Callable[[Message], None] = lambda message: None,
    ) -> None:
        self.losses = Losses()
        self._make_transport = make_transport
        self._spool = spool
        self._capacity = capacity
        self._capacity_bytes = capacity_bytes
        self._attempt_seconds = attempt_seconds
        self._safe = safe
        self._waiting: deque[Message] = deque()
        self._bytes = 0
        self._sending: list[Message] = []
        self._changed = threading.Condition()
        self._closing = False
        self._circuit = Circuit(first_pause)
        self._replays = Circuit(first_pause)  # open while a part of the backend lacks what the spool holds
        self._said = ""
        self._look_again = 0.0
        self._thread = threading.Thread(target=self._run, name="strandline-outbox", daemon=True)
        self._thread.start()

    def put(self, message: Message) -> None:
        """Takes the event. Never blocks on the network, never raises.

        To wake the sending thread costs the caller as much as making the event: one that is not vital waits a moment for
        others.
        """
        with self._changed:
            if message.heartbeat and self._circuit.is_open(time.monotonic()):
                return
            while self._waiting and self._is_full(message):
                self._make_room()
            if self._is_full(message):
                self._shelve([message])
            else:
                self._waiting.append(message)
                self._bytes += len(message.body)
            if message.vital or len(self._waiting) >= _BATCH:
                self._changed.notify_all()

    def waiting(self) -> list[Message]:
        """What is in memory and not being sent."""
        with self._changed:
            return list(self._waiting)

    def flush(self, seconds: float) -> bool:
        """Waits until all is sent or on disk; False when the time is over first."""
        with self._changed:
            self._changed.notify_all()
            return self._changed.wait_for(lambda: not self._waiting and not self._sending, seconds)

    def close(self, seconds: float) -> None:
        """Sends what can be sent within the time; what is left goes to disk, for the next driver.

        A backend that failed last gets a moment only, and an attempt that hangs is not waited for.
        """
        until = time.monotonic() + seconds
        whole = self.flush(self._worth_waiting(seconds))
        with self._changed:
            self._closing = True
            left = [*self._sending, *self._waiting]
            self._sending = []
            self._waiting.clear()
            self._shelve(left)
            self._changed.notify_all()
        idle = whole and not self._circuit.failing
        self._thread.join(max(_MOMENT_SECONDS, until - time.monotonic()) if idle else _MOMENT_SECONDS)
        with self._changed:
            self._spool.close()

    def _worth_waiting(self, seconds: float) -> float:
        if self._circuit.is_open(time.monotonic()):
            return 0.0
        return min(seconds, _MOMENT_SECONDS) if self._circuit.failing else seconds

    def abandon(self) -> None:
        """In a forked child: the thread is the parent's, and so are the events and the lock of the spool."""
        self._closing = True
        self._waiting.clear()
        self._spool.abandon()

    def _is_full(self, message: Message) -> bool:
        return len(self._waiting) >= self._capacity or self._bytes + len(message.body) > self._capacity_bytes

    def _make_room(self) -> None:
        """Drops the oldest event that is not vital, or puts the oldest vital one on disk."""
        victim = next((m for m in self._waiting if not m.vital), None)
        if victim is None:
            victim = self._waiting[0]
            self._shelve([victim])
        else:
            self.losses.dropped += 1
        self._waiting.remove(victim)
        self._bytes -= len(victim.body)

    def _shelve(self, messages: Sequence[Message]) -> None:
        kept = self._spool.append(messages)
        self.losses.dropped += len(messages) - kept
        for message in messages[:kept]:
            self._safe(message)

    def _run(self) -> None:
        give_way()
        transport: Transport | None = None
        while not self._closing:
            try:
                transport = transport or self._make_transport()
                self._work(transport)
            except Exception as error:  # a wrong conf, or a fault of ours: it must not end the thread
                self._failed(f"{type(error).__name__}: {error}")
        if transport is not None:
            transport.close()

    def _work(self, transport: Transport) -> None:
        now = time.monotonic()
        if self._circuit.is_open(now):
            self._shelve_vital()
            self._pause(min(1.0, self._circuit.wait(now)))
        elif (file := self._to_replay(now)) is not None:
            self._replay(transport, file)
        elif batch := self._next_batch():
            self._settle(batch, transport.send(batch, self._attempt_seconds))

    def _next_batch(self) -> list[Message]:
        """Moves the oldest events from waiting to sending; waits a moment for some."""
        with self._changed:
            if not self._waiting and not self._closing:
                self._changed.wait(_LINGER_SECONDS)
            while self._waiting and len(self._sending) < _BATCH:
                message = self._waiting.popleft()
                self._bytes -= len(message.body)
                self._sending.append(message)
            return list(self._sending)

    def _settle(self, batch: Sequence[Message], delivery: Delivery) -> None:
        """Puts back what did not go, vital events on disk, and opens or closes the circuit."""
        self._tell(batch, delivery)
        with self._changed:
            if self._closing:  # `close` has put on disk what was being sent
                return
            self._sending = []
            if delivery.partly:  # nothing of it may stand in the way of what comes next
                self._shelve([message for message in delivery.unsent if not message.heartbeat])
            else:
                self._shelve([message for message in delivery.unsent if message.vital])
                self._put_back([message for message in delivery.unsent if not message.vital])
            self._changed.notify_all()

    def _put_back(self, messages: Sequence[Message]) -> None:
        self._waiting.extendleft(reversed(messages))
        self._bytes += sum(len(message.body) for message in messages)

    def _tell(self, batch: Sequence[Message], delivery: Delivery) -> None:
        now = time.monotonic()
        if delivery.unsent and not delivery.partly:
            self._circuit.failed(now)
        elif not delivery.unsent:
            self._circuit.succeeded()
            self._replays.succeeded()
        elif not self._replays.is_open(now):
            self._replays.failed(now)
        self._say(delivery.reason)
        self.losses.refused += len(delivery.refused)
        lost = {id(message) for message in (*delivery.unsent, *delivery.refused)}
        for message in batch:
            if id(message) not in lost:
                self._safe(message)

    def _failed(self, reason: str) -> None:
        self._circuit.failed(time.monotonic())
        self._say(reason)

    def _shelve_vital(self) -> None:
        """While the backend is away a killed driver must lose no vital event: they go to disk at once."""
        with self._changed:
            vital = [message for message in self._waiting if message.vital]
            if not vital:
                return
            self._shelve(vital)
            self._waiting = deque(message for message in self._waiting if not message.vital)
            self._bytes = sum(len(message.body) for message in self._waiting)
            self._changed.notify_all()

    def _to_replay(self, now: float) -> SpoolFile | None:
        """A spool file whose turn it is: at once if this driver wrote it, every half minute if others may have."""
        with self._changed:
            if self._replays.is_open(now) or (not self._spool.waits() and now < self._look_again):
                return None
            found = self._spool.oldest()
            if found is None:
                self._look_again = now + _LOOK_SECONDS
            return found

    def _replay(self, transport: Transport, file: SpoolFile) -> None:
        """Sends a spool file from its start; of one that goes in part, the rest is written anew before it is deleted."""
        lines = file.messages()
        unsent: list[Message] = []
        sent = 0
        while batch := list(islice(lines, _BATCH)):
            sound = [message for message in batch if message is not None]
            self.losses.damaged += len(batch) - len(sound)
            if unsent or self._closing:
                unsent += sound
                continue
            delivery = transport.send(sound, self._attempt_seconds)
            self._tell(sound, delivery)
            unsent += delivery.unsent
            sent += len(sound) - len(delivery.unsent)
        with self._changed:
            if (sent or not unsent) and self._spool.append(unsent) == len(unsent):
                file.delete()
            else:
                file.release()
                self._look_again = 0.0

    def _pause(self, seconds: float) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._closing, seconds)

    def _say(self, reason: str) -> None:
        """One warning per new reason, not per event."""
        if reason and reason != self._said:
            _LOG.warning("strandline: events wait or are refused: %s", reason)
        self._said = reason
