"""Tells FLIP-314 listeners what is announced, each on a thread and from a bounded queue of its own.

A listener that throws is logged; one that hangs, be it while it is made, fills its queue, misses
what follows, and is left behind at the end. Each has an executor of its own for its IO, which
finishes what it was given before the application's end, if time is left.
"""

from __future__ import annotations

import importlib
import logging
import queue
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from strandline_spark.listeners.graphs import graph_of
from strandline_spark.listeners.io_executor import IoExecutor
from strandline_spark.model.flip314 import (
    CommitListener,
    Context,
    ExecutionMode,
    JobCreatedEvent,
    JobExecutionStatusEvent,
    JobStatus,
)
from strandline_spark.openlineage.events import TERMINAL, EventContent, RunOf
from strandline_spark.swallowed import swallowed

_LOG = logging.getLogger("strandline")
_WAITING = 1000
_STATUS = {"COMPLETE": JobStatus.FINISHED, "FAIL": JobStatus.FAILED, "ABORT": JobStatus.CANCELED}
_Task = Callable[[Any], None]  # given the listener


class Notices:
    """The listeners of one application."""

    def __init__(self, factories: tuple[str, ...], configuration: Mapping[str, str]) -> None:
        self._threads = [_ListenerThread(name, configuration) for name in factories]
        self._status: dict[str, JobStatus] = {}

    def announced(self, state: str, run: RunOf, content: EventContent) -> None:
        """Pass on an announced event of a job (not of the application) as one of FLIP-314's."""
        if run.kind == "APPLICATION" or not self._threads:
            return
        if state == "START":
            self._created(run, content)
        elif state in TERMINAL:
            self._change(run, _STATUS[state], content.error)
            self._status.pop(run.run_id, None)

    def committed(self, identifier: str, snapshot_id: str, commit_kind: str) -> None:
        """Pass on a committed snapshot."""
        self._tell(lambda listener: _tell_of_commit(listener, identifier, snapshot_id, commit_kind))

    def close(self, seconds: float) -> None:
        """Lets listeners and their IO finish; what is not finished in time is left behind."""
        until = time.monotonic() + seconds
        for thread in self._threads:
            thread.ask_to_finish()
        for thread in self._threads:  # one that hangs must not take the others' time
            thread.finish(max(0.0, until - time.monotonic()))

    def _created(self, run: RunOf, content: EventContent) -> None:
        streaming = run.kind == "STREAMING"
        mode = ExecutionMode.STREAMING if streaming else ExecutionMode.BATCH
        self._status[run.run_id] = JobStatus.CREATED
        created = JobCreatedEvent(
            run.run_id, run.job, graph_of(content.statements, streaming), mode
        )
        self._tell(lambda listener: listener.on_event(created))
        self._change(run, JobStatus.RUNNING, None)

    def _change(self, run: RunOf, status: JobStatus, error: str | None) -> None:
        old = self._status.get(run.run_id, JobStatus.RUNNING)
        self._status[run.run_id] = status
        changed = JobExecutionStatusEvent(old, status, error, run.run_id, run.job)
        self._tell(lambda listener: listener.on_event(changed))

    def _tell(self, task: _Task) -> None:
        for thread in self._threads:
            thread.tell(task)


class _ListenerThread:
    """One listener and its queue. The listener is made here, too: what it connects to may hang."""

    def __init__(self, name: str, configuration: Mapping[str, str]) -> None:
        self._name = name
        self._executor = IoExecutor(threads=2)
        self._context = Context(configuration, self._executor)
        self._missed = 0
        self._tasks: queue.SimpleQueue[_Task | None] = (
            queue.SimpleQueue()
        )  # its end finds room, however full it is
        self._thread = threading.Thread(
            target=self._run, name=f"strandline-listener-{name}", daemon=True
        )
        self._thread.start()

    def tell(self, task: _Task) -> None:
        """Queues one call."""
        if self._tasks.qsize() < _WAITING:
            self._tasks.put(task)
            return
        if not self._missed:
            _LOG.warning("strandline: listener %s does not keep up: it misses events", self._name)
        self._missed += 1

    def ask_to_finish(self) -> None:
        """Take nothing more after the queued items."""
        self._tasks.put(None)

    def finish(self, seconds: float) -> None:
        """Wait for what is queued, and for the listener's IO."""
        until = time.monotonic() + seconds
        self._thread.join(seconds)
        self._executor.finish(max(0.0, until - time.monotonic()))

    def _run(self) -> None:
        listener = self._create_listener()
        while (task := self._tasks.get()) is not None:
            try:
                if listener is not None:
                    task(listener)
            except Exception as error:
                swallowed(f"listener {self._name} failed", error)

    def _create_listener(self) -> Any:
        """Return the listener of a factory named module.Class (or module:Class).

        None where it cannot be had.
        """
        try:
            module, _, factory = self._name.replace(":", ".").rpartition(".")
            return getattr(importlib.import_module(module), factory)().create_listener(
                self._context
            )
        except Exception:
            _LOG.warning(
                "strandline: listener factory %s could not be used", self._name, exc_info=True
            )
            return None


def _tell_of_commit(listener: Any, *commit: str) -> None:
    if isinstance(listener, CommitListener):
        listener.notify_commit_complete(*commit)
