"""The second bounded queue.

Takes events without ever blocking, and sends them from a thread of its own.

Vital events (a committed micro-batch, the end of a run) are never dropped before they are on disk;
others are, oldest first, and are counted. While the backend is away the circuit is open. Vital
events go to the spool at once, and one attempt after a growing pause finds out whether the backend
is back. Where only a part of it is away, or a single event is never taken, the rest goes on. A
network's disk may hang: the thread that writes to it holds no lock meanwhile.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path

from strandline_spark.delivery.circuit_breaker import Circuit
from strandline_spark.delivery.losses import Losses
from strandline_spark.delivery.safe_batches import safe_of, without
from strandline_spark.delivery.spool import Spool
from strandline_spark.delivery.spool_replay import Replay
from strandline_spark.delivery.transport import Delivery, Message, Transport
from strandline_spark.priority import give_way

_BATCH = 100
_LINGER_SECONDS = 0.5  # how long an event may wait for company
_LOOK_SECONDS = 30.0
_MOMENT_SECONDS = 0.1
_DISK_SECONDS = (
    1.0  # how long a disk may take for what finds no room in memory, or is left at the end
)
_LOG = logging.getLogger("strandline")


class Outbox:
    """Bounded in number and bytes.

    `make_transport` runs on the outbox's thread, because connecting may take long.
    """

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
        self._transport: Transport | None = None
        self._spool = spool
        self._capacity = capacity
        self._capacity_bytes = capacity_bytes
        self._attempt_seconds = attempt_seconds
        self._safe = safe
        self._waiting: deque[Message] = deque()
        self._bytes = 0
        self._sending: list[Message] = []
        self._overflow: deque[Message] = (
            deque()
        )  # vital events without room, until they are on disk
        self._noting: deque[Message] = (
            deque()
        )  # messages that are safe and are still to be noted as such
        self._shelf: threading.Thread | None = None  # it writes both
        self._disk_is_quick = True
        self._disk = (
            threading.Lock()
        )  # one thread at a time uses the spool; never taken under `_changed`
        self._changed = threading.Condition()
        self._closing = False
        self._circuit = Circuit(first_pause)
        self._replays = Circuit(
            first_pause
        )  # open while what the spool holds does not go, or not to all parts
        self._replay: Replay | None = None
        self._left: set[Path] = set()  # spool files of which nothing went: others come first
        self._partly = False  # whether a part of the backend lacks the newest events
        self._gaps: set[str] = (
            set()
        )  # queries of which a micro-batch was given up: no later one may count as safe
        self._last_warning = ""
        self._look_again = 0.0
        self._thread = threading.Thread(target=self._run, name="strandline-outbox", daemon=True)
        self._thread.start()

    def put(self, message: Message) -> None:
        """Take the event. Never blocks on the network, never raises.

        Waking the sending thread costs the caller as much as making the event, and sending it costs
        the job's next query. So only what commits a micro-batch wakes it; everything else waits a
        moment for others.
        """
        with self._changed:
            if message.heartbeat and self._circuit.is_open(time.monotonic()):
                return
            if not self._closing:
                self._take(message)
                return
        self._give_up(self._shelve([message]))  # the next driver reports whoever is late
        with self._disk:
            self._spool.close()

    def _take(self, message: Message) -> None:
        while self._waiting and self._is_full(message):
            self._make_room()
        if self._is_full(message):
            self._move_to_disk(message)
        else:
            self._waiting.append(message)
            self._bytes += len(message.body)
        if message.micro_batch is not None or len(self._waiting) >= _BATCH:
            self._changed.notify_all()

    def waiting(self) -> list[Message]:
        """Return the events in memory that are not being sent."""
        with self._changed:
            return list(self._waiting)

    def flush(self, seconds: float) -> bool:
        """Wait until all is sent or on disk; False when the time is over first."""
        with self._changed:
            self._changed.notify_all()
            return self._changed.wait_for(
                lambda: not any((self._waiting, self._sending, self._overflow, self._noting)),
                seconds,
            )

    def close(self, seconds: float) -> None:
        """Send what can be sent within the time; what is left goes to disk, for the next driver.

        A backend that failed last gets a moment, one that failed in part half the time; no attempt
        that hangs is awaited.
        """
        until = time.monotonic() + seconds
        whole = self.flush(self._worth_waiting(seconds))
        with self._changed:
            self._closing = True
            left = [*self._overflow, *self._sending, *self._waiting]
            self._sending = []
            self._waiting.clear()
            self._overflow.clear()
            self._changed.notify_all()
        last = threading.Thread(
            target=self._keep, args=(left,), name="strandline-last", daemon=True
        )
        last.start()
        last.join(max(_DISK_SECONDS, until - time.monotonic()))
        idle = whole and not self._circuit.failing
        self._thread.join(
            max(_MOMENT_SECONDS, until - time.monotonic()) if idle else _MOMENT_SECONDS
        )

    def _keep(self, messages: Sequence[Message]) -> None:
        """Put on disk what is left at the end, for the next driver."""
        self._give_up(self._shelve(messages))
        with self._disk:
            while self._noting:
                self._safe(self._noting.popleft())
            self._spool.close()

    def _worth_waiting(self, seconds: float) -> float:
        if self._circuit.is_open(time.monotonic()):
            return 0.0
        if self._circuit.failing:
            return min(seconds, _MOMENT_SECONDS)
        return seconds / 2 if self._replays.failing else seconds

    def abandon(self) -> None:
        """Forget the parent's events and lock in a forked child.

        The thread is the parent's, and so are the events and the lock of the spool.
        """
        self._closing = True
        self._waiting.clear()
        if self._replay is not None:
            self._replay.file.release()
        self._spool.abandon()

    def _is_full(self, message: Message) -> bool:
        return (
            len(self._waiting) >= self._capacity
            or self._bytes + len(message.body) > self._capacity_bytes
        )

    def _make_room(self) -> None:
        """Drop the oldest event that is not vital, or put the oldest vital one on disk."""
        victim = next((m for m in self._waiting if not m.vital), self._waiting[0])
        self._waiting.remove(victim)
        self._bytes -= len(victim.body)
        if victim.vital:
            self._move_to_disk(victim)
        else:
            self._give_up([victim])

    def _move_to_disk(self, message: Message) -> None:
        patience = _DISK_SECONDS if self._disk_is_quick else 0.0
        if not self._changed.wait_for(
            lambda: self._closing or len(self._overflow) < self._capacity, patience
        ):
            self._disk_is_quick = False  # the next one does not wait
            self._give_up([message])
            return
        self._overflow.append(message)
        self._call_shelf()

    def _call_shelf(self) -> None:
        if self._shelf is None:
            self._shelf = threading.Thread(target=self._write, name="strandline-spool", daemon=True)
            self._shelf.start()
        self._changed.notify_all()

    def _write(self) -> None:
        give_way()
        while not self._closing:
            with self._changed:
                self._changed.wait_for(lambda: self._overflow or self._noting or self._closing)
                batch, notes = list(self._overflow), list(self._noting)
            left = self._shelve(batch)
            with self._disk:
                for message in notes:
                    self._safe(message)
            with self._changed:
                self._overflow = without(self._overflow, batch)
                self._noting = without(self._noting, notes)
                self._disk_is_quick = True
                if not self._closing:  # else `close` has them
                    self._give_up(left)
                self._changed.notify_all()

    def _shelve(self, messages: Sequence[Message], *, anew: bool = False) -> Sequence[Message]:
        """Put them on disk; return those that it does not take. Never called under `_changed`."""
        if not messages:
            return ()
        with self._disk:
            spooled = self._spool.append(messages, anew=anew)
        with self._changed:
            safe = self._safe_of(messages[:spooled], messages)
        self._note_safe(safe)
        return messages[spooled:]

    def _give_up(self, messages: Sequence[Message]) -> None:
        self.losses.dropped += len(messages)
        self._gaps.update(
            message.micro_batch[0] for message in messages if message.micro_batch is not None
        )

    def _safe_of(self, messages: Sequence[Message], batch: Sequence[Message]) -> list[Message]:
        """Those that count as safe. `batch`: the messages that they are among."""
        own, safe = {id(message) for message in batch}, {id(message) for message in messages}
        waiting = [m for m in (*self._waiting, *self._overflow) if id(m) not in own]
        return safe_of(messages, [*waiting, *(m for m in batch if id(m) not in safe)], self._gaps)

    def _note_safe(self, messages: Sequence[Message]) -> None:
        """Has it noted; micro-batches only, for nobody asks about others."""
        batches = [message for message in messages if message.micro_batch is not None]
        if batches:
            with self._changed:
                self._noting.extend(batches)
                self._call_shelf()

    def _run(self) -> None:
        give_way()
        while not self._closing:
            try:
                self._work()
            except (
                Exception
            ) as error:  # a wrong conf, or a fault of ours: it must not end the thread
                self._failed(f"{type(error).__name__}: {error}")
        with self._disk:
            if self._replay is not None:
                self._replay.file.release()
            self._spool.close()
        if self._transport is not None:
            self._transport.close()

    def _work(self) -> None:
        now = time.monotonic()
        if self._circuit.is_open(now):
            self._shelve_vital()
            self._pause(min(1.0, self._circuit.wait(now)))
            return
        transport = self._transport = self._transport or self._make_transport()
        replay = self._to_replay(now)
        if batch := self._next_batch(patient=replay is None):
            self._settle(batch, transport.send(batch, self._attempt_seconds))
        if replay is not None:  # also if that failed: it may have been for the sake of one event
            self._send_again(transport, replay)

    def _next_batch(self, *, patient: bool) -> list[Message]:
        """Move the oldest events from waiting to sending.

        Who is patient waits a moment for some.
        """
        with self._changed:
            if patient and not self._waiting and not self._closing:
                self._changed.wait(_LINGER_SECONDS)
            while self._waiting and len(self._sending) < _BATCH:
                message = self._waiting.popleft()
                self._bytes -= len(message.body)
                self._sending.append(message)
            return list(self._sending)

    def _settle(self, batch: Sequence[Message], delivery: Delivery) -> None:
        """Put on disk, or back, what did not go, and open or close the circuit."""
        self._note(batch, delivery, self._circuit)
        self._partly = delivery.partly
        lost = {id(message) for message in (*delivery.unsent, *delivery.refused)}
        if self._closing:  # `close` puts on disk what was being sent
            return
        back = self._shelve_unsent(delivery)
        sent = [message for message in batch if id(message) not in lost]
        with self._changed:
            safe = self._safe_of(sent, [*sent, *back])
        self._note_safe(safe)
        with self._changed:
            if self._closing:
                return
            self._sending = []
            self._put_back(back, first=len(delivery.unsent) == len(batch) and not delivery.partly)
            self._changed.notify_all()
            if back and delivery.partly:  # the disk does not take them either
                self._changed.wait_for(lambda: self._closing, _LINGER_SECONDS)

    def _shelve_unsent(self, delivery: Delivery) -> list[Message]:
        """Put on disk what must last, or would be in the way of what comes next.

        The rest is to be sent again.
        """
        shelved = [m for m in delivery.unsent if m.vital or (delivery.partly and not m.heartbeat)]
        lasting = {id(message) for message in self._shelve(shelved)}
        return [m for m in delivery.unsent if id(m) in lasting or not (m.vital or delivery.partly)]

    def _put_back(self, messages: Sequence[Message], *, first: bool) -> None:
        """Move the first waiting items behind the others of the same spool.

        It may be the one that never goes.
        """
        if first:
            self._waiting.extendleft(reversed([*messages[1:], *messages[:1]]))
        else:
            self._waiting.extend(messages)
        self._bytes += sum(len(message.body) for message in messages)

    def _note(self, batch: Sequence[Message], delivery: Delivery, circuit: Circuit) -> None:
        """Note an attempt: it failed if nothing of it went."""
        now = time.monotonic()
        if not delivery.unsent:
            if circuit is self._replays or circuit.failing or self._partly:
                self._replays.succeeded()
            self._circuit.succeeded()
        elif delivery.partly:
            if circuit is self._circuit:
                circuit.succeeded()
            if not self._replays.is_open(now):
                self._replays.failed(now)
        elif len(delivery.unsent) < len(batch):
            circuit.succeeded()
        else:
            circuit.failed(now)
        self._say(delivery.reason)
        self.losses.refused += len(delivery.refused)

    def _failed(self, reason: str) -> None:
        self._circuit.failed(time.monotonic())
        self._say(reason)
        with self._changed:
            if not self._closing:
                self._put_back(self._sending, first=True)
                self._sending = []

    def _shelve_vital(self) -> None:
        """While the backend is away a killed driver must lose no vital event.

        They go to disk at once.
        """
        with self._changed:
            vital = [message for message in self._waiting if message.vital]
        left = {id(message) for message in self._shelve(vital)}
        gone = [message for message in vital if id(message) not in left]
        with self._changed:
            if gone and not self._closing:
                self._waiting = without(self._waiting, gone)
                self._bytes = sum(len(message.body) for message in self._waiting)
                self._changed.notify_all()

    def _to_replay(self, now: float) -> Replay | None:
        """A spool file whose turn it is.

        At once if this driver wrote it, every half minute if others may have.
        """
        if self._replays.is_open(now) or self._closing or not self._disk.acquire(blocking=False):
            return None  # also while the disk is busy, or hangs
        try:
            if self._replay is None and (self._spool.waits() or now >= self._look_again):
                file_found = self._spool.oldest(self._left)
                self._replay = Replay(file_found) if file_found is not None else None
                self._look_again = (
                    now + _LOOK_SECONDS if file_found is None and not self._left else 0.0
                )
                if file_found is None:
                    self._left.clear()  # their turn comes again
        finally:
            self._disk.release()
        return self._replay

    def _send_again(self, transport: Transport, replay: Replay) -> None:
        """Send the next events of a spool file.

        What never goes is written anew, so that the file can be deleted.
        """
        try:
            batch, damaged = replay.next_batch(_BATCH)
            delivery = transport.send(batch, self._attempt_seconds) if batch else Delivery()
        except Exception as error:  # a file that cannot be read, say: the others may be
            self._leave(replay)
            self._replays.failed(time.monotonic())
            self._say(f"{type(error).__name__}: {error}")
            return
        self.losses.damaged += damaged
        if batch:
            self._note(batch, delivery, self._replays)
        replay.tried(batch, delivery)
        if replay.stuck and replay.went and not self._closing:
            replay.left = list(self._shelve(replay.left, anew=True))
        if replay.at_end and not replay.left:
            with self._disk:
                replay.file.delete()
            self._replay = None
        elif replay.stuck and not replay.went:
            self._leave(replay)

    def _leave(self, replay: Replay) -> None:
        """Nothing of the file goes: the others have their turn."""
        with self._disk:
            self._left.add(replay.file.path)
            replay.file.release()
            self._replay = None

    def _pause(self, seconds: float) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._closing, seconds)

    def _say(self, reason: str) -> None:
        """One warning per new reason, not per event."""
        if reason and reason != self._last_warning:
            _LOG.warning("strandline: events wait or are refused: %s", reason)
        self._last_warning = reason
