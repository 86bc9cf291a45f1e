"""Listener factories that the tests name by conf."""

from __future__ import annotations

import threading
from concurrent.futures import Executor

from strandline_spark.model.flip314 import (
    Context,
    JobCreatedEvent,
    JobExecutionStatusEvent,
    JobStatusChangedListener,
    tell_hook,
)

Event = JobCreatedEvent | JobExecutionStatusEvent
made: list[Noting] = []  # the listeners of the running test


class Noting:
    """Notes what it is told, as a listener, as a commit listener and as a hook."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.events: list[Event] = []
        self.commits: list[tuple[str, str, str]] = []
        self.hooked: list[tuple[str, ...]] = []

    def on_event(self, event: Event) -> None:
        """Notes it."""
        self.events.append(event)
        tell_hook(self, event)

    def notify_commit_complete(self, identifier: str, snapshot_id: str, commit_kind: str) -> None:
        """Notes it."""
        self.commits.append((identifier, snapshot_id, commit_kind))

    def on_created(self, job_id: str) -> None:
        """Notes it."""
        self.hooked.append(("created", job_id))

    def on_finished(self, job_id: str) -> None:
        """Notes it."""
        self.hooked.append(("finished", job_id))

    def on_failed(self, job_id: str, exception: str | None) -> None:
        """Notes it."""
        self.hooked.append(("failed", job_id, str(exception)))

    def on_canceled(self, job_id: str) -> None:
        """Notes it."""
        self.hooked.append(("canceled", job_id))


class NotingFactory:
    """Makes them."""

    def create_listener(self, context: Context) -> JobStatusChangedListener:
        """One more."""
        made.append(Noting(context))
        return made[-1]


class IoFactory:
    """Makes one whose IO waits until the test lets it."""

    go = threading.Event()
    done: list[str] = []  # noqa: RUF012 - shared with the test on purpose
    executor: Executor

    def create_listener(self, context: Context) -> JobStatusChangedListener:
        """It does its IO on the context's executor."""
        IoFactory.executor = context.io_executor
        return self

    def on_event(self, event: Event) -> None:
        """Submits one task."""
        self.executor.submit(self._io, event.job_id)

    def _io(self, job: str) -> None:
        self.go.wait(30)
        self.done.append(job)


class SlowFactory:
    """Makes a noting one when the test lets it."""

    go = threading.Event()

    def create_listener(self, context: Context) -> JobStatusChangedListener:
        """One more, if the test lets it in time."""
        if not self.go.wait(60):
            raise TimeoutError("whoever asks for a listener waits until it is made")
        return NotingFactory().create_listener(context)


class HangingFactory:
    """Makes one that hangs until the test is over."""

    over = threading.Event()

    def create_listener(self, context: Context) -> JobStatusChangedListener:
        """It is the listener, too."""
        return self

    def on_event(self, event: Event) -> None:
        """Hangs."""
        self.over.wait(60)
