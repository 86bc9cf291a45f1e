"""One emitter a SparkContext: a claim inside the JVM, which several Python processes may share.

Notebook services, Livy and kernels that attach to a running gateway have one JVM and one
SparkContext for several interpreters. The claim is a system property of the JVM, so exactly one
process gets it. It lasts as long as its process renews it. After `SECONDS` without a renewal (the
process was killed, or hangs) the JVM itself undoes what the process has registered there, empties
its queue and gives the claim back.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from strandline_spark.jvm.class_names import THREADS
from strandline_spark.jvm.client import Jvm
from strandline_spark.jvm.method_handles import Handle, Handles

SECONDS = 30.0
_PREFIX = "strandline.emitter."  # of the property; the application's id follows
# of the property with the time at which a process last waited for the claim
_WAITING = "strandline.standby."


class Claim:
    """This process's claim on the events of one application. Used by one thread at a time."""

    def __init__(self, gateway: Any, app_id: str) -> None:
        jvm = Jvm(gateway.jvm)
        self._handles = Handles(jvm)
        self._jvm = jvm
        self._key = _PREFIX + app_id
        self._waiting = _WAITING + app_id
        self._clock = gateway.jvm.java.lang.System.currentTimeMillis
        self._id = uuid.uuid4().hex
        self._properties = gateway.jvm.java.lang.System.getProperties()
        self._milliseconds = gateway.jvm.java.util.concurrent.TimeUnit.MILLISECONDS
        self._executor: Any = None
        self._task: Any = None
        self._end: Any = None  # the ScheduledFuture of the lease's end
        self._given_back = False

    def take(self) -> bool:
        """Claim the application, if no other process has."""
        if self._properties.get(self._key) is not None:
            return False
        if self._task is None:
            self._task = self._handles.task([self._removal()])
        # before the claim: one that is never given back would bar every later process
        self._schedule()
        if self._properties.putIfAbsent(self._key, self._id) is None:
            self._given_back = False
            return True
        self._end.cancel(False)
        return False

    def stand_by(self) -> None:
        """Let the process that has the claim know that this one waits for it."""
        self._properties.setProperty(self._waiting, str(self._clock()))

    def stand_by_no_more(self) -> None:
        """Stop waiting; other processes that wait say so again by themselves."""
        with suppress(Exception):  # the JVM may be gone
            self._properties.remove(self._waiting)

    def awaited(self) -> bool:
        """Return true if another process of this JVM has the claim.

        Also if one has waited for it within a lease.
        """
        if self._properties.get(self._key) not in (None, self._id):
            return True
        waited = self._properties.get(self._waiting)
        return waited is not None and self._clock() - int(waited) < SECONDS * 1000

    def undo(self, handles: Sequence[Handle]) -> None:
        """Set the JVM's action at the end of the lease, besides giving the claim back."""
        self._task = self._handles.task([self._removal(), *handles])
        self.renew()

    def renew(self) -> bool:
        """Let the lease begin again; False where it is over though nobody gave it back."""
        if self._given_back:
            return True
        if not self._end.cancel(False):
            return False
        self._schedule()
        return str(self._properties.get(self._key)) == self._id

    def give_back(self) -> None:
        """Let the next process have it."""
        self._given_back = True
        with suppress(Exception):  # the JVM may be gone
            self._properties.remove(self._key, self._id)
            if self._executor is not None:
                self._executor.shutdownNow()

    def _schedule(self) -> None:
        if self._executor is None:
            self._executor = self._jvm.static(THREADS, "newDaemonSingleThreadScheduledExecutor")(
                "strandline-lease"
            )
        self._end = self._executor.schedule(self._task, int(SECONDS * 1000), self._milliseconds)

    def _removal(self) -> Handle:
        kind = self._jvm.class_named("java.lang.Object")
        return self._handles.asking(
            self._properties, "java.util.Properties", "remove", (kind, self._key), (kind, self._id)
        )
