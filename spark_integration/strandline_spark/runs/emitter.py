"""The emitter of one SparkContext.

One thread takes Spark's events from the JVM's queue and has them announced.

Nothing of it runs on Spark's threads, nothing of it raises into the user's code, and its end is
bounded in time. What is slow to import (OpenLineage's classes, a third of a second) is imported on
that thread.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError

from strandline_spark.conf import Conf
from strandline_spark.jvm import claims
from strandline_spark.jvm.event_queue import EventQueue, acknowledge_quickly
from strandline_spark.jvm.notices import Notice, Wake
from strandline_spark.jvm.unlogged import unlogged
from strandline_spark.priority import give_way
from strandline_spark.runs.exits import note_exits
from strandline_spark.runs.unreported import UnreportedStatements
from strandline_spark.swallowed import swallowed

if TYPE_CHECKING:
    from strandline_spark.jvm.claims import Claim
    from strandline_spark.runs.wiring import ApplicationParts

_LOG = logging.getLogger("strandline")
_BEHIND_SECONDS = (
    10.0  # how long the last events may take to be reported, while they are: a busy machine is slow
)
_TURN_SECONDS = 5.0  # within which one that gets on has taken another event
_WAIT = 1000  # milliseconds for which the next event is waited for, mostly
_TRIES = 20
_MOMENT_SECONDS = 0.1
_HANG_SECONDS = (
    300.0  # how long one event may take to be reported before the JVM is not asked to wait any more
)
# how long the last events may take from Spark's bus into the queue; an empty bus takes none
_BUS_MILLISECONDS = 1500


class Emitter:
    """Watches one SparkContext (the Scala object) from its start to its end."""

    def __init__(
        self,
        conf: Conf,
        queue: EventQueue,
        spark_context: Any,
        run_id: str,
        claim: Claim | None = None,
    ) -> None:
        self._conf = conf
        self._queue = queue
        self._claim = claim
        self._taken_over = False  # another process has the application's events
        self._renewed = self._stepped = time.monotonic()
        self._spark_context = spark_context
        self._run_id = run_id
        self._parts: ApplicationParts | None = None
        self._unreported: UnreportedStatements | None = None
        self._stopping = False
        self._taken = 0  # events of Spark
        self._in_vain = 0  # attempts to take one, one after the other
        self._final: tuple[str, str | None] = (
            "COMPLETE",
            None,
        )  # the application's last state, and why
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="strandline-emitter", daemon=True)
        self._heart = threading.Thread(target=self._beat, name="strandline-heartbeat", daemon=True)

    def start(self) -> None:
        """Begins to watch; the application is announced from the emitter's thread."""
        import concurrent.futures.thread  # noqa: F401 - what OpenLineage imports cannot be imported as Python ends

        note_exits()
        self._unreported = UnreportedStatements(self._wake)
        self._thread.start()
        self._heart.start()

    def wait(self, seconds: float) -> bool:
        """Wait until the context has ended and all of it is announced."""
        return self._over.wait(seconds)

    def stop(self, seconds: float, final: str = "COMPLETE", error: str | None = None) -> None:
        """Take what is in the queue, end the application as `final`, and send it all.

        Give up after `seconds`. An emitter that is behind, but gets on, may take longer: what is
        not reported yet is in memory only. Where the context ended before (spark.stop() in a
        `finally`), a FAIL still follows: FAIL beats COMPLETE.
        """
        until = time.monotonic() + seconds
        limit = until + _BEHIND_SECONDS
        ended_before, taken = self._over.is_set(), self._taken
        self._final = final, error
        if not ended_before:
            self._empty_bus(limit)
        self._stopping = True
        self._wake()
        if self._over.wait(max(0.0, until - time.monotonic())) or self._catches_up(taken, limit):
            until = max(until, time.monotonic() + seconds / 2)  # the sending has its time too
        if self._parts is not None:
            if ended_before and final == "FAIL":
                self._parts.end_application("FAIL", time.time() * 1000, error)
            self._parts.close(max(0.1, until - time.monotonic()))

    def _wake(self) -> None:
        with contextlib.suppress(Exception):
            self._queue.wake()

    def _empty_bus(self, limit: float) -> None:
        """Wait until Spark's last events are in the queue, as long as some still come."""
        before = -1
        while before < self._taken and time.monotonic() < limit:
            before = self._taken
            with contextlib.suppress(Exception):  # a busy or a closed bus
                self._spark_context.listenerBus().waitUntilEmpty(_BUS_MILLISECONDS)
                return

    def _catches_up(self, before: int, limit: float) -> bool:
        """Wait for an emitter that is behind as long as it gets on; False if it does not.

        Its own start has one turn.
        """
        goes_on = before < self._taken or self._parts is None
        while goes_on and (left := limit - time.monotonic()) > 0:
            before = self._taken
            if self._over.wait(min(left, _TURN_SECONDS)):
                return True
            goes_on = before < self._taken
        return False

    def leave(self) -> None:
        """Take the listeners away and give the claim on the application back.

        No more events come.
        """
        if self._unreported is not None:
            self._unreported.leave()
        with contextlib.suppress(Exception):  # the context, or the JVM, may be gone
            self._queue.leave(self._spark_context)
        if self._claim is not None:
            self._claim.give_back()

    def abandon(self) -> None:
        """In a forked child: the threads are the parent's, and so are its events."""
        self._over = threading.Event()  # one of those threads may have held the lock of the other
        self._over.set()
        if self._parts is not None:
            self._parts.abandon()

    def _run(self) -> None:
        give_way()
        # first: the imports take a second, and more on a busy machine
        self._prepare_for_the_worst()
        try:
            from strandline_spark.runs.wiring import assembled

            self._parts = parts = assembled(self._conf, self._queue, self._run_id)
            acknowledge_quickly(self._queue.gateway)
            with unlogged():
                self._loop(parts)
        except Exception:
            _LOG.warning("strandline: the emitter ended", exc_info=True)
        finally:
            self.leave()
            self._over.set()

    def _prepare_for_the_worst(self) -> None:
        """Have the JVM undo everything if this process is killed, or hangs."""
        if self._claim is None:
            return
        try:
            self._claim.undo(self._queue.probe, self._spark_context)
        except Exception as error:  # the JVM is gone
            _LOG.info(
                "strandline: if this process is killed, its queue stays in the JVM: %s", error
            )

    def _loop(self, parts: ApplicationParts) -> None:
        try:
            while (
                parts.watch.ended_at is None and not self._taken_over and self._step(parts, _WAIT)
            ):
                pass
            while not self._taken_over and self._step(
                parts, 200
            ):  # ends of streaming queries may follow the application's end shortly
                pass
        except (
            Py4JError,
            OSError,
        ) as error:  # a connection that was reset is no Py4JNetworkError to Py4J
            if parts.watch.ended_at is None:
                parts.finish("FAIL", f"the JVM is gone: {error}")
                return
        if self._taken_over:  # what is still open is the other's to end
            parts.end_application(
                "ABORT", time.time() * 1000, "another process of this JVM has taken it over"
            )
            return
        parts.finish(*self._final, lives_on=parts.watch.ended_at is None and self._is_awaited())

    def _is_awaited(self) -> bool:
        """Return whether another process of this JVM tells of its streaming queries from now on."""
        try:
            return self._claim is not None and self._claim.awaited()
        except Exception as error:  # the JVM is gone, and its queries with it
            swallowed("whether another process goes on is not known", error)
            return False

    def _step(self, parts: ApplicationParts, milliseconds: int) -> bool:
        """Take one element; False when there was none and none is to be waited for."""
        self._stepped = time.monotonic()
        try:
            event = self._queue.poll(0 if self._stopping else milliseconds)
            self._in_vain = 0
        except Py4JJavaError:  # a JVM that is short of memory, say: it is not gone
            self._in_vain += 1
            if self._in_vain == _TRIES:
                raise
            time.sleep(_MOMENT_SECONDS)
            return True
        self._taken += event is not None
        self._take(parts, event)
        return event is not None or not (self._stopping or parts.watch.ended_at is not None)

    def _take(self, parts: ApplicationParts, event: Notice | None) -> None:
        try:
            if event is not None and not isinstance(event, Wake):
                parts.watch.take(event)
            elif self._unreported is not None:  # all that was told before them is taken
                while (statement := self._unreported.take()) is not None:
                    parts.watch.unreported(statement)
            parts.watch.idle(time.time() * 1000)
            if event is None:
                parts.announcer.overflowed = self._queue.dropped()
        except Py4JNetworkError:
            raise
        # A fault of ours, or a plan that nobody foresaw: the next event is not worse for it.
        except Exception as error:
            parts.announcer.missed += 1
            swallowed("an event of Spark could not be taken", error)

    def _beat(self) -> None:
        give_way()
        while not self._over.wait(min(1.0, self._conf.heartbeat_seconds / 12)):
            if self._parts is not None:
                self._parts.announcer.beat(time.monotonic())
            self._hold(time.monotonic())

    def _hold(self, now: float) -> None:
        """Renew the claim while the emitter's thread gets on.

        Where it was silent for too long, it is claimed anew.
        """
        if (
            self._claim is None
            or now - self._renewed < claims.SECONDS / 3
            or now - self._stepped > _HANG_SECONDS
        ):
            return
        try:
            if not self._claim.renew():
                self._claim_again(self._claim)
            self._renewed = now
        except Exception as error:  # the JVM is busy, or gone: the emitter's thread finds out
            swallowed("the claim on the application is not renewed yet", error)

    def _claim_again(self, claim: Claim) -> None:
        if claim.take():
            _LOG.warning(
                "strandline: silent for %.0f s: what Spark did since then is not reported",
                claims.SECONDS,
            )
            self._queue.listen(self._spark_context)
            claim.undo(self._queue.probe, self._spark_context)
        else:
            _LOG.warning(
                "strandline: another process of this JVM tells of this application from now on"
            )
            self._taken_over = True
