"""The emitter's thread and its end, without Spark: a lost JVM, a forked child, a stuck bus."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JError, Py4JJavaError

from fixtures.emitter.builders import conf
from strandline_spark import activation
from strandline_spark.jvm.notices import Wake
from strandline_spark.runs.emitter import Emitter
from strandline_spark.runs.unreported import UnreportedStatements


def emitter(poll: Callable[[int], Any] = lambda milliseconds: None) -> Emitter:
    """One that is not started; `poll` gives the next event of Spark."""
    queue: Any = SimpleNamespace(poll=poll)
    return Emitter(conf(), queue, None, "1")


def gone(milliseconds: int) -> Any:
    """Raise Py4J's error for a connection that was reset."""
    raise Py4JError("An error occurred while calling o12.poll")


@pytest.mark.parametrize(
    ("ended_at", "final"),
    [
        (None, ("FAIL", "the JVM is gone: An error occurred while calling o12.poll")),
        (7.0, ("COMPLETE", None)),
    ],
    ids=["before the application's end", "after it"],
)
def test_lost_jvm_fails_the_application(
    ended_at: float | None, final: tuple[str, str | None]
) -> None:
    told: list[tuple[str, str | None]] = []
    parts: Any = SimpleNamespace(
        watch=SimpleNamespace(ended_at=ended_at),
        finish=lambda state, error, lives_on=False: told.append((state, error)),
    )

    emitter(gone)._loop(parts)

    assert told == [final]


def test_program_end_is_reported_with_its_reason() -> None:
    told: list[tuple[str, str | None]] = []
    parts: Any = SimpleNamespace(
        watch=SimpleNamespace(ended_at=7.0),
        finish=lambda state, error, lives_on=False: told.append((state, error)),
    )
    ended = emitter(gone)  # as the JVM is once its application has ended

    ended.stop(0, "FAIL", "ValueError: boom")
    ended._loop(parts)

    assert told == [("FAIL", "ValueError: boom")]


@pytest.mark.parametrize(("failures", "final"), [(3, "COMPLETE"), (30, "FAIL")])
def test_occasional_jvm_failures_do_not_end_the_application(
    failures: int, final: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("strandline_spark.runs.emitter._MOMENT_SECONDS", 0)
    told: list[str] = []
    left = [True] * failures
    watch: Any = SimpleNamespace(
        ended_at=None, take=lambda event: setattr(watch, "ended_at", 7.0), idle=lambda now: None
    )
    parts: Any = SimpleNamespace(
        watch=watch,
        announcer=SimpleNamespace(overflowed=0, missed=0),
        finish=lambda state, error, lives_on=False: told.append(state),
    )

    emitter(partial(failing, left))._loop(parts)

    assert told == [final]


def failing(left: list[bool], milliseconds: int) -> Any:
    """Raise Py4J's error for a failure inside the JVM, as often as there are any left.

    Then one event.
    """
    if left:
        left.pop()
        jvm = SimpleNamespace(send_command=lambda command: "ysjava.lang.OutOfMemoryError")
        raise Py4JJavaError(
            "An error occurred", SimpleNamespace(_target_id="o1", _gateway_client=jvm)
        )
    if milliseconds == 200:
        return None
    return object()


def test_unreported_statement_is_taken_after_the_commits_told_before_it() -> None:
    events = iter([SimpleNamespace(what="commit"), Wake(), None])
    taken: list[Any] = []
    watch: Any = SimpleNamespace(
        ended_at=None,
        take=lambda event: taken.append(event.what),
        unreported=taken.append,
        idle=lambda now: None,
    )
    parts: Any = SimpleNamespace(watch=watch, announcer=SimpleNamespace(overflowed=0, missed=0))
    ours = emitter(lambda milliseconds: next(events))
    ours._queue.dropped = lambda: 0  # type: ignore[method-assign]
    ours._unreported = UnreportedStatements()
    ours._unreported._waiting.append("called")  # type: ignore[arg-type]
    for _ in range(3):
        ours._step(parts, 0)
    ours._unreported.leave()

    assert taken == ["commit", "called"]


@pytest.mark.filterwarnings(
    "ignore:This process:DeprecationWarning"
)  # forking beside threads is what is tested
def test_forked_child_does_not_wait_for_locks_of_parent_threads() -> None:
    ours = emitter()
    with ours._over._cond:  # type: ignore[attr-defined]
        child = os.fork()
        if child == 0:
            signal.alarm(10)
            ours.abandon()
            os._exit(0 if ours.wait(0) else 1)

    assert os.waitpid(child, 0)[1] == 0


def refused(context: Any) -> None:
    """Raise Py4J's error for a bus that is stopped."""
    raise Py4JError("An error occurred while calling o12.removeSparkListener")


def test_emitter_stops_even_if_it_cannot_leave_the_bus() -> None:
    queue: Any = SimpleNamespace(poll=lambda milliseconds: None, leave=refused, wake=lambda: None)
    running = Emitter(conf(), queue, None, "1")
    running._over.set()
    activation._emitters["app-1"] = running

    activation.disable(
        SimpleNamespace(sparkContext=SimpleNamespace(applicationId="app-1", _jsc=object()))
    )

    assert running._stopping
    assert "app-1" not in activation._emitters


class Busy:
    """A queue of as many events, each of which takes long to tell, in a JVM that has no bus."""

    def __init__(self, events: int, seconds: float) -> None:
        self.gateway = None
        self.left = events
        self._seconds = seconds

    def poll(self, milliseconds: int) -> Any:
        """The next event."""
        time.sleep(self._seconds)
        self.left -= 1
        return object() if self.left >= 0 else None

    def wake(self) -> None:
        """Nobody sleeps."""

    def credit(self) -> None:
        """Nobody counts."""

    def dropped(self) -> int:
        """No event was."""
        return 0


def taken(done: list[Any], event: object) -> bool:
    """Return true if a watch takes an event."""
    done.append("taken")
    return True


def noted(done: list[Any], wait: Callable[[float], bool], seconds: float) -> bool:
    """A wait of the driver's, noted by how long it may take."""
    done.append("long" if seconds > 1 else "short")
    return wait(seconds)


def ending(queue: Busy, monkeypatch: pytest.MonkeyPatch, seconds: float = 0.3) -> list[Any]:
    """Return the events that an emitter takes from that queue after the program's end.

    It has so many seconds for it.
    """
    done: list[Any] = []
    parts: Any = SimpleNamespace(
        watch=SimpleNamespace(ended_at=None, take=partial(taken, done), idle=lambda now: None),
        announcer=SimpleNamespace(overflowed=0, missed=0, beat=lambda now: None),
        finish=lambda state, error, lives_on=False: done.append(state),
        close=lambda seconds: done.append("closed"),
    )
    monkeypatch.setattr("strandline_spark.runs.wiring.assembled", lambda *given: parts)
    jvm: Any = queue
    ours = Emitter(conf(), jvm, None, "1")
    ours.start()
    while ours._parts is None:
        time.sleep(0.01)
    monkeypatch.setattr(ours._over, "wait", partial(noted, done, ours._over.wait))
    ours.stop(seconds)
    return done


def test_late_emitter_sends_every_event_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    late = ending(
        Busy(8, 0.3), monkeypatch, 2
    )  # an event may take seven times as long on a busy machine
    done = [one for one in late if one not in ("long", "short")]

    assert done == ["taken"] * 8 + ["COMPLETE", "closed"]


def test_shutdown_does_not_wait_for_a_hanging_emitter(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "long" not in ending(Busy(1, 30), monkeypatch)


def test_heartbeats_continue_while_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    beats: list[float] = []
    again = threading.Event()

    def beat(now: float) -> None:
        beats.append(now)
        if len(beats) == 3:
            again.set()

    parts: Any = SimpleNamespace(
        watch=SimpleNamespace(ended_at=None, idle=lambda now: None),
        announcer=SimpleNamespace(overflowed=0, missed=0, beat=beat),
        finish=lambda state, error, lives_on=False: None,
        close=lambda seconds: None,
    )
    monkeypatch.setattr("strandline_spark.runs.wiring.assembled", lambda *given: parts)
    quiet: Any = Busy(0, 0.01)
    ours = Emitter(conf(heartbeat_seconds="0.6"), quiet, None, "1")
    ours.start()

    assert again.wait(30)
    ours.stop(1)
