"""The bounded queue inside the JVM that Spark's listener bus fills and one Python thread empties.

The probe is the listener, so that Spark never calls back into Python; a full queue drops the event
and counts it. Only events enter it that are asked anything (`notices`). Iceberg's registry of
commits feeds the same queue.
"""

from __future__ import annotations

import contextlib
import io
import socket
from functools import cached_property
from typing import Any

from strandline_spark.jvm.iceberg_snapshot import Registry
from strandline_spark.jvm.notices import QUESTIONS, Notice, notice_of
from strandline_spark.jvm.probe import new_probe, questions_as_lines
from strandline_spark.swallowed import swallowed

_BUFFER = 1 << 16  # a plan of 1,000 columns is two megabytes


class EventQueue:
    """The queue of one emitter."""

    def __init__(self, gateway: Any, capacity: int) -> None:
        self.gateway = gateway
        self.probe = new_probe(gateway._gateway_client)
        self.probe.learn(questions_as_lines(QUESTIONS))
        self.probe.open(capacity)
        self._taken = 0

    def listen(self, spark_context: Any) -> None:
        """Register with the listener bus of a context on a queue of its own, and with Iceberg.

        The context is the Scala object.
        """
        try:
            spark_context.listenerBus().addToQueue(self.probe, "strandline")
        # The bus is private to Spark: where it is gone, the public way shares a queue with others.
        except Exception as error:
            swallowed("Spark's events wait behind other listeners'", error)
            spark_context.addSparkListener(self.probe)
        self.registry.begin()

    @cached_property
    def registry(self) -> Registry:
        """Iceberg's registry of commits."""
        return Registry(self.gateway.jvm, self.probe)

    def leave(self, spark_context: Any) -> None:
        """Take the listener away from the bus and from Iceberg."""
        self.probe.leave(spark_context)

    def poll(self, milliseconds: int) -> Notice | None:
        """The next notice, or None after that time.

        Blocks inside the JVM, with Python's lock free.
        """
        text = self.probe.take(milliseconds)
        if text is None:
            return None
        self._taken += 1
        taken = self._taken

        def event() -> Any:
            if taken != self._taken:
                raise LookupError("an event of Spark is asked for after the next had come")
            return self.probe.newest()

        return notice_of(text, event)

    def wake(self) -> None:
        """End a waiting `poll`."""
        self.probe.wake()

    def dropped(self) -> int:
        """Return how many events found the queue full."""
        return int(self.probe.dropped())

    def all_came(self) -> bool:
        """Return whether no commit of this JVM can have been missed until now."""
        return not self.registry.late and self.dropped() == 0


def acknowledge_quickly(gateway: Any) -> None:
    """Lets this thread's connection to the JVM acknowledge at once.

    An answer over 8 KB waits 44 ms otherwise.

    Linux only, and only where Py4J pins a connection to a thread; elsewhere nothing changes.
    """
    with contextlib.suppress(Exception):
        # a thread that has asked nothing yet has no connection
        gateway.jvm.java.lang.System.nanoTime()
        connection = gateway._gateway_client.get_thread_connection()
        if connection is not None and hasattr(socket, "TCP_QUICKACK"):
            connection.stream = io.BufferedReader(_QuickSocket(connection.socket), _BUFFER)


class _QuickSocket(io.RawIOBase):
    """A socket's bytes; tells the kernel before each read not to delay the acknowledgement."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        with contextlib.suppress(OSError):
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
        return self._socket.recv_into(buffer)
