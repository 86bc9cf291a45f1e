"""Group commit: one thread writes all waiting requests at once and answers after the commit.

So a 2xx means stored, and many senders share the cost of one commit. Senders that were just
answered mostly send again at once, so the next group waits for them briefly. Only the thread uses
the database. The queue is bounded; a sender that finds it full is asked to try again.
"""

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlalchemy.exc import DBAPIError
from structlog.typing import FilteringBoundLogger

from strandline.errors import InvalidEventError, OverloadError, StrandlineError
from strandline.logs import Sparing
from strandline.metrics import Metrics
from strandline.store.ingest.take import Outcome, Record
from strandline.store.sql.db_errors import is_damage, is_of_records, reason_of

Answer = list[Outcome] | StrandlineError


class UnstorableError(Exception):
    """A commit in the writing process failed; the text is the type of the error logged there."""


def complaining(log: FilteringBoundLogger) -> Sparing:
    """Return a function that logs why the database does not take events."""
    return Sparing(lambda reason: log.error("the database does not take events", reason=reason))


def faulty(error: Exception, complain: Callable[[str], None]) -> OverloadError | None:
    """Return the answer to senders if the database or memory is at fault, else None.

    The reason is logged.
    """
    if isinstance(error, MemoryError):
        complain("there is no memory left")
        return OverloadError("there is no memory left to take events", retry_after=5)
    if not isinstance(error, DBAPIError) or is_of_records(error):
        return None
    complain(reason_of(error))
    if is_damage(error):
        return OverloadError(f"the database is damaged: {reason_of(error)}", retry_after=5)
    return OverloadError("the database does not take events", retry_after=5)


def patience_after(seconds: float) -> float:
    """Return how long a group waits for senders just answered, after a commit of so many seconds.

    Much of a small transaction's cost does not depend on its size, so one large group is cheaper
    than two. A sender that does not send again costs the others a quarter of a commit, once.
    """
    return min(0.02, seconds / 4)


@dataclass(frozen=True, eq=False)
class Offer:
    """The events of one request, and the future of its answer."""

    records: Sequence[Record]
    waiting: asyncio.Future[list[Outcome]]


class Writer:
    """The writing thread and its queue.

    `commit` writes records in one transaction and returns once it is durable.
    """

    def __init__(
        self,
        commit: Callable[[Sequence[Record]], list[Outcome]],
        *,
        max_waiting: int,
        batch_records: int,
        metrics: Metrics,
        log: FilteringBoundLogger,
        patience: Callable[[float], float] = patience_after,
    ) -> None:
        self._commit = commit
        self._patience_after = patience
        self._max_waiting = max_waiting
        self._batch_records = batch_records
        self._metrics = metrics
        self._log = log
        self._complain = complaining(log)
        self._offers: deque[Offer] = deque()
        metrics.waiting.set_function(lambda: len(self._offers))
        self._records = 0  # of all offers
        self._wanted = 1  # offers; the thread sleeps until there are so many
        self._expected = 1  # offers in the next group, if everybody who was answered sends again
        self._patience = 0.0
        self._news = threading.Condition()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="writer", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Write what waits, then end the thread."""
        with self._news:
            self._stopping = True
            self._news.notify()
        if self._thread.is_alive():
            self._thread.join()

    async def write(self, records: Sequence[Record]) -> list[Outcome]:
        """Store the records together with other waiting ones.

        Raises:
            OverloadError: the queue is full.
        """
        offer = Offer(records, asyncio.get_running_loop().create_future())
        with self._news:
            if len(self._offers) >= self._max_waiting or self._stopping:
                raise OverloadError(f"{len(self._offers)} requests wait already")
            self._offers.append(offer)
            self._records += len(records)
            if self._has(self._wanted):
                self._news.notify()
        return await offer.waiting

    @property
    def waiting(self) -> int:
        """The number of waiting requests."""
        return len(self._offers)

    def _run(self) -> None:
        while group := self._next_group():
            answers = self._answers(group)
            for loop in {offer.waiting.get_loop() for offer in group}:
                loop.call_soon_threadsafe(_resolve, group, answers, loop)

    def _next_group(self) -> list[Offer]:
        with self._news:
            self._wait_for(1, None)
            self._wait_for(self._expected, self._patience)
            group: list[Offer] = []
            size = 0
            while self._offers and (
                not group or size + len(self._offers[0].records) <= self._batch_records
            ):
                group.append(self._offers.popleft())
                size += len(group[-1].records)
            self._records -= size
            return group

    def _wait_for(self, offers: int, seconds: float | None) -> None:
        """Sleep until so many offers wait or a transaction is full, at most so many seconds."""
        self._wanted = offers
        self._news.wait_for(lambda: self._has(offers) or self._stopping, seconds)

    def _has(self, offers: int) -> bool:
        return len(self._offers) >= offers or self._records >= self._batch_records

    def _answers(self, group: Sequence[Offer]) -> list[Answer]:
        started = time.monotonic()
        answers = self._committed(group)
        self._patience = self._patience_after(time.monotonic() - started)
        self._expected = len(group) + len(self._offers)
        return answers

    def _committed(self, group: Sequence[Offer]) -> list[Answer]:
        started = time.monotonic()
        try:
            outcomes = self._commit([record for offer in group for record in offer.records])
            kinds = [outcome.kind for outcome in outcomes if outcome.kind != "refused"]
            if kinds:
                self._metrics.committed("http", kinds, time.monotonic() - started)
            each = iter(outcomes)
            return [[next(each) for _ in offer.records] for offer in group]
        except StrandlineError as error:
            return [error] * len(group)
        except Exception as error:  # noqa: BLE001 - whatever it is, it must not end the thread that all wait for
            return self._not_committed(group, error)

    def _not_committed(self, group: Sequence[Offer], error: Exception) -> list[Answer]:
        """Answer for a group that could not be stored; try each of several offers by itself."""
        if (fault := faulty(error, self._complain)) is not None:
            return [fault] * len(group)
        if len(group) > 1:  # one of them spoils it for all
            return [answer for offer in group for answer in self._committed([offer])]
        if isinstance(error, UnstorableError):
            return [InvalidEventError(f"it cannot be stored: {error}")]
        self._log.error("an event cannot be stored", exc_info=error)
        return [InvalidEventError(f"it cannot be stored: {type(error).__name__}")]


def _resolve(
    group: Sequence[Offer], answers: Sequence[Answer], loop: asyncio.AbstractEventLoop
) -> None:
    for offer, answer in zip(group, answers, strict=True):
        if offer.waiting.get_loop() is not loop or offer.waiting.done():
            continue
        if isinstance(answer, StrandlineError):
            offer.waiting.set_exception(answer)
        else:
            offer.waiting.set_result(answer)
