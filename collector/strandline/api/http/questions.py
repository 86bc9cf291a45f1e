"""Threads for questions, so that costly ones take nothing from readiness, intake and each other.

A few questions run at once, and of one client fewer. Others wait for their turn, up to a bound. A
question ends when its time is over, when its client has gone, or when the server stops. While the
memory is short, none begins beside another, and the newest is stopped; the only one is stopped when
it fills the memory.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from typing import TypeVar

from anyio import CapacityLimiter, to_thread
from starlette.requests import Request

from strandline.core.stopping import CURRENT, Work
from strandline.errors import OverloadError, StoppedError
from strandline.store.sql.engine import interrupt

RUNNING, RUNNING_OF_CLIENT = 4, 2  # each more adds to the time that all others wait for the GIL
WAITING, WAITING_OF_CLIENT = 100, 50
LOOK_SECONDS = 0.25
END_SECONDS = 1  # that the end of a server waits for questions that are being stopped
SHORT = 0.8  # of the memory that a server may take: from there on the newest question is stopped
FULL = 0.9  # from there on the only one, too, if it took this part of the memory itself
TAKEN = 0.05
STOPPERS = 4  # threads that interrupt: on PostgreSQL that is a request to the server

Answer = TypeVar("Answer")


class Question:
    """A question that waits for its turn, or runs."""

    def __init__(self, request: Request, client: str, seconds: int) -> None:
        self.request = request
        self.client = client
        self.until = time.monotonic() + seconds
        self.turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.work = Work(interrupt, seconds)
        self.used_before: float | None = None  # the part of the memory at the first look at it

    def run(self, ask: Callable[[], Answer]) -> Answer:
        """Ask in this thread; an error of an interrupted driver becomes a StoppedError."""
        token = CURRENT.set(self.work)
        try:
            return ask()
        except Exception as error:
            reason = self.work.stopped_because
            if reason is None or isinstance(error, StoppedError):
                raise
            raise StoppedError(reason) from error
        finally:
            CURRENT.reset(token)


class Questions:
    """The questions of one server; each may run for so many seconds, and wait as long before.

    `memory_used` returns the part of the server's memory that is used; it is called in a thread.
    """

    def __init__(self, seconds: int, memory_used: Callable[[], float] = lambda: 0.0) -> None:
        self._seconds = seconds
        self._memory_used = memory_used
        self._is_short = False
        self._is_stopping = False
        self._threads = CapacityLimiter(RUNNING)
        self._stoppers = CapacityLimiter(STOPPERS)
        self._waiting: list[Question] = []
        self._running: list[Question] = []
        self._supervisor: asyncio.Task[None] | None = None

    @property
    def counts(self) -> tuple[int, int]:
        """The numbers of running and of waiting questions."""
        return len(self._running), len(self._waiting)

    def start(self) -> None:
        """Begin to look after the questions."""
        self._supervisor = asyncio.create_task(self._supervise())

    async def stop_all(self, seconds: float) -> None:
        """Stop every question that has not ended after so many seconds."""
        await asyncio.sleep(seconds)
        self._is_stopping = True

    async def end(self) -> None:
        """Stop every question, and then looking after them."""
        self._is_stopping = True
        until = time.monotonic() + END_SECONDS
        while self._running and time.monotonic() < until:
            await asyncio.sleep(LOOK_SECONDS / 5)
        if self._supervisor is not None:
            self._supervisor.cancel()

    async def answer(self, request: Request, client: str, ask: Callable[[], Answer]) -> Answer:
        """Call `ask` in a thread when it is the question's turn.

        Raise OverloadError if too many wait, and StoppedError if the question was stopped.
        """
        self._refuse_too_many(client)
        question = Question(request, client, self._seconds)
        self._waiting.append(question)
        self._give_turns()
        try:
            await question.turn
            # A server that ends cancels it; it does not wait for the thread then.
            return await to_thread.run_sync(
                question.run, ask, abandon_on_cancel=True, limiter=self._threads
            )
        finally:
            if question in self._waiting:
                self._waiting.remove(question)
            if question in self._running:
                self._running.remove(question)
            self._give_turns()

    def _refuse_too_many(self, client: str) -> None:
        if len(self._waiting) >= WAITING:
            raise OverloadError(f"{WAITING} questions wait already; ask again later")
        waiting_of_client = sum(question.client == client for question in self._waiting)
        if waiting_of_client >= WAITING_OF_CLIENT:
            raise OverloadError(
                f"{WAITING_OF_CLIENT} questions of this client wait already; ask again later"
            )

    def _give_turns(self) -> None:
        """Let those that wait longest run, where there is a thread for their client."""
        running = Counter(question.client for question in self._running)
        for question in list(self._waiting):
            if len(self._running) >= RUNNING or (self._is_short and self._running):
                return
            if running[question.client] >= RUNNING_OF_CLIENT:
                continue
            running[question.client] += 1
            self._waiting.remove(question)
            self._running.append(question)
            question.until = time.monotonic() + self._seconds
            if not question.turn.done():
                question.turn.set_result(None)

    async def _supervise(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            if self._running:
                await self._bound_memory()
            await asyncio.gather(*map(self._look_at, [*self._running, *self._waiting]))

    async def _bound_memory(self) -> None:
        """Stop the newest question while the memory is short, one at a time.

        The only one is stopped when it fills the memory. What was used before may be the server's
        for good; a question that adds little to it does no harm.
        """
        used = await to_thread.run_sync(self._memory_used, limiter=self._stoppers)
        for question in self._running:
            if question.used_before is None:
                question.used_before = used
        self._is_short = used > SHORT
        if not self._is_short:
            self._give_turns()
            return
        running = list(self._running)
        if any(question.work.stopped_because for question in running):
            return
        if len(running) > 1:
            reason = "the memory of the server is short; ask again later, or for less"
        elif running and used > FULL and used > (running[0].used_before or 0) + TAKEN:
            reason = (
                "the question needs more memory than the server has left: ask for less (depth, "
                "limit, one column), or give it more with STRANDLINE_MEMORY_BYTES"
            )
        else:
            return
        await to_thread.run_sync(running[-1].work.stop, reason, limiter=self._stoppers)

    async def _look_at(self, question: Question) -> None:
        reason = question.work.stopped_because or await self._reason_to_stop(question)
        if reason is None:
            return
        if question.turn.done():
            await to_thread.run_sync(question.work.stop, reason, limiter=self._stoppers)
        else:
            question.turn.set_exception(StoppedError(reason))

    async def _reason_to_stop(self, question: Question) -> str | None:
        if self._is_stopping:
            return "the server is stopping; ask again when it is back"
        if await question.request.is_disconnected():
            return "the client has gone"
        if time.monotonic() <= question.until:
            return None
        if question in self._waiting:
            return f"no other question ended within {self._seconds} s; ask again later"
        return (
            f"the question took longer than {self._seconds} s: ask for less (depth, limit, one "
            "column), or let questions take longer with STRANDLINE_QUESTION_SECONDS"
        )
