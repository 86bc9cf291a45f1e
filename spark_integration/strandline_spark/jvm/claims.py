"""One emitter a SparkContext: a claim inside the JVM, which several Python processes may share.

Notebook services, Livy and kernels that attach to a running gateway have one JVM and one
SparkContext for several interpreters. The claim is a system property of the JVM, so exactly one
process gets it. It lasts as long as its process renews it. After `SECONDS` without a renewal (the
process was killed, or hangs) the JVM itself undoes what the process has registered there, empties
its queue and gives the claim back.
"""

from __future__ import annotations

import uuid
from contextlib import suppress
from typing import Any

from strandline_spark.jvm.probe import Probe, new_probe

SECONDS = 30.0
_PREFIX = "strandline.emitter."  # of the property; the application's id follows
# of the property with the time at which a process last waited for the claim
_WAITING = "strandline.standby."


class Claim:
    """This process's claim on the events of one application. Used by one thread at a time."""

    def __init__(self, gateway: Any, app_id: str) -> None:
        self._key = _PREFIX + app_id
        self._waiting = _WAITING + app_id
        self._client = gateway._gateway_client
        self._clock = gateway.jvm.java.lang.System.currentTimeMillis
        self._id = uuid.uuid4().hex
        self._properties = gateway.jvm.java.lang.System.getProperties()
        self._probe: Probe = None
        self._given_back = False

    def take(self) -> bool:
        """Claim the application, if no other process has."""
        if self._properties.get(self._key) is not None:
            return False
        if self._probe is None:
            self._probe = new_probe(self._client)
        if not self._probe.claim(self._key, self._id, int(SECONDS * 1000)):
            return False
        self._given_back = False
        return True

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

    def undo(self, listening: Probe, spark_context: Any) -> None:
        """Have the JVM take a listener away at the end of the lease, and let go of its queue."""
        self._probe.undo(listening, spark_context)

    def renew(self) -> bool:
        """Let the lease begin again; False where it is over though nobody gave it back."""
        return self._given_back or bool(self._probe.renew())

    def give_back(self) -> None:
        """Let the next process have it."""
        self._given_back = True
        with suppress(Exception):  # the JVM may be gone
            self._probe.giveBack()
