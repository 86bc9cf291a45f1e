"""One target's turn: claim it, send what is unsent, note what it took, move its cursor.

What a target took is noted in the store after each request. A process that dies in between sends
that request once more and nothing else: exactly once where the target is idempotent, at least once
elsewhere.

A turn may take an hour, while a claim lasts a minute: the clock is asked at each use, and the claim
is made longer after each request.
"""

import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

from sqlalchemy import Connection, Engine

from strandline.errors import OtherDeliveryError, RefusedItemError, UnavailableError
from strandline.exporters import outbox
from strandline.exporters.target import ExportTarget, Item
from strandline.store.sql.engine import read_from

AT_ONCE = 200  # changes of one turn
PROBE = (
    10  # of a target that took nothing the last time: to make messages of more would be for nothing
)
LONGEST_PAUSE = 600.0
DOUBTS = 5  # failures in a row after which it is asked whether one item alone is to blame
REFRESH_SECONDS = 60.0

Clock = Callable[[], float]


class Delivery:
    """The delivery to one target.

    Several processes may have one for the same target: one of them delivers at a time.
    """

    def __init__(self, engine: Engine, target: ExportTarget, holder: str) -> None:
        self._engine = engine
        self._target = target
        self._holder = holder
        self.problem: str | None = None  # why the last turn delivered nothing

    @property
    def target(self) -> ExportTarget:
        """The target."""
        return self._target

    def deliver(self, now: Clock = time.time) -> int:
        """Deliver what waits; how many items were taken.

        Nothing while another process does, or the target is not due.
        """
        self.problem = None
        cursor = self._claim(now)
        if cursor is None:
            return 0
        taken, at = 0, cursor.cursor
        while True:
            with read_from(self._engine) as connection:
                changes = outbox.changes_after(
                    connection, at, self._target.kinds, PROBE if cursor.failures else AT_ONCE
                )
                items = self._target.items(connection, changes, now()) if changes else []
            if not changes:
                return taken
            try:
                taken += self._send(items, cursor.failures, now)
                at = changes[-1].seq
                with self._claimed(now) as connection:
                    outbox.move_on(connection, self._target.name, at)
            except UnavailableError as error:
                self._retry_later(error, cursor.failures, now)
                return taken
            except OtherDeliveryError:
                return taken
            cursor = outbox.ExportCursor(at, 0, 0, "")

    def _claim(self, now: Clock) -> outbox.ExportCursor | None:
        """Claim the cursor and return it.

        None while another process delivers, or while the target is not due.
        """
        name = self._target.name
        with read_from(self._engine) as connection:
            if not outbox.is_due(connection, name, self._target.kinds, self._holder, now()):
                return None
        with self._engine.begin() as connection:
            cursor = outbox.claim(connection, name, self._holder, now())
            if cursor is not None and outbox.has_news(connection):
                outbox.put_in_order(connection)
        return cursor

    @contextmanager
    def _claimed(self, now: Clock) -> Iterator[Connection]:
        """Open a transaction under the claim, and extend the claim.

        Raises OtherDeliveryError if another process has it.
        """
        with self._engine.begin() as connection:
            if not outbox.is_claimed(connection, self._target.name, self._holder, now()):
                raise OtherDeliveryError
            yield connection

    def release(self) -> None:
        """Give up the claim and the connections."""
        self._target.close()
        with self._engine.begin() as connection:
            outbox.release(connection, self._target.name, self._holder)

    def _send(self, items: Sequence[Item], failures: int, now: Clock) -> int:
        """Send what the target has not; how many items that were."""
        doubtful: list[tuple[Item, UnavailableError]] = []
        taken = sum(
            self._send_batch(batch, failures, now, doubtful)
            for batch in self._batches(self._unsent(items, now()))
        )
        if doubtful and not taken:
            raise doubtful[0][1]
        for item, error in doubtful:  # others were taken meanwhile: these alone are to blame
            self._park(item, str(error), failures, now)
        return taken

    def _batches(self, items: Sequence[Item]) -> Iterator[Sequence[Item]]:
        for start in range(0, len(items), self._target.at_once):
            yield items[start : start + self._target.at_once]

    def _send_batch(
        self,
        batch: Sequence[Item],
        failures: int,
        now: Clock,
        doubtful: list[tuple[Item, UnavailableError]],
    ) -> int:
        """Send the batch as a whole; where it is refused, its items one by one."""
        try:
            self._target.send(batch)
        except RefusedItemError as error:
            if len(batch) == 1:
                self._park(batch[0], str(error), 1, now)
                return 0
        except UnavailableError as error:
            if not error.doubtful or failures < DOUBTS:
                raise
            if len(batch) == 1:
                doubtful.append((batch[0], error))
                self._extend_claim(now)
                return 0
        else:
            self._note(batch, now, last=not doubtful)
            return len(batch)
        self._extend_claim(now)
        return sum(self._send_batch([item], failures, now, doubtful) for item in batch)

    def _unsent(self, items: Sequence[Item], now: float) -> list[Item]:
        """Return the items that the target lacks, with what has to go before each.

        Only details may wait.
        """
        with read_from(self._engine) as connection:
            sent = outbox.sent_of(connection, self._target.name, {item.key for item in items})
        unsent: dict[tuple[int, int], Item] = {}
        waiting: list[Item] = []
        for item in items:
            before = sent.get(item.key)
            if before is None:
                unsent[item.key] = item.with_beginning()
            elif bytes(before.shape) != item.shape:
                unsent[item.key] = item
            elif bytes(before.detail) != item.detail and item.slow:
                if now - before.at / outbox.MICRO >= REFRESH_SECONDS:
                    unsent[item.key] = item
                elif not before.stale:
                    waiting.append(item)
        if waiting:
            with self._engine.begin() as connection:
                outbox.note_stale(connection, self._target.name, waiting)
        return list(unsent.values())

    def _note(self, items: Sequence[Item], now: Clock, *, last: bool) -> None:
        """Note what was taken.

        `last`: nothing before it waits, so the cursor may pass what has no newer state.
        """
        with self._claimed(now) as connection:
            outbox.note_sent(connection, self._target.name, items, now())
            if last and items[-1].kind in outbox.PASSING:
                outbox.move_on(connection, self._target.name, items[-1].change.seq)

    def _park(self, item: Item, reason: str, attempts: int, now: Clock) -> None:
        with self._claimed(now) as connection:
            outbox.park(connection, self._target.name, item, reason, attempts, now())

    def _extend_claim(self, now: Clock) -> None:
        """Make the claim last longer after a request of which there is nothing to note."""
        with self._claimed(now):
            pass

    def _retry_later(self, error: UnavailableError, failures: int, now: Clock) -> None:
        """Again later, each time twice as late, and not all processes at one moment."""
        self.problem = str(error)
        pause = min(LONGEST_PAUSE, 2.0 ** (failures + 1)) * (1 + random.random() / 2)
        pause = max(pause, min(error.retry_after or 0.0, LONGEST_PAUSE))
        with suppress(OtherDeliveryError), self._claimed(now) as connection:
            outbox.retry_later(connection, self._target.name, now() + pause, str(error))
