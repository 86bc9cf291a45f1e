"""The bounded queue inside the JVM that Spark's listener bus fills and one Python thread empties.

`java.beans.EventHandler` makes the listeners inside the JVM, so that Spark never calls back into
Python; a full queue drops the event and counts it. Most of what Spark tells during a query is of no
use here; classes of events that turned out to be `dull` do not enter the queue again. Iceberg's
registry of commits feeds the same queue.
"""

from __future__ import annotations

import contextlib
import io
import logging
import socket
from functools import cached_property
from typing import Any

from strandline_spark.jvm.class_names import LISTENER, SPARK_CONTEXT
from strandline_spark.jvm.client import Jvm
from strandline_spark.jvm.iceberg_snapshot import Registry
from strandline_spark.jvm.method_handles import Handle, Handles
from strandline_spark.swallowed import swallowed

_LOG = logging.getLogger("strandline")
_SET = "java.util.Set"
_METHODS = ("onOtherEvent", "onApplicationEnd")
WAKE = "strandline:wake"
_BUFFER = 1 << 16  # a plan of 1,000 columns is two megabytes


class EventQueue:
    """The queue of one emitter."""

    def __init__(self, gateway: Any, capacity: int) -> None:
        self.gateway = gateway
        self.faults: list[str] = []  # what does not work in this JVM, and what is done instead
        java = gateway.jvm.java
        self.queue = java.util.concurrent.LinkedBlockingQueue(capacity)
        self._offered = java.util.concurrent.Semaphore(
            0
        )  # counts by release(); Py4J would copy a number
        self._dull = java.util.concurrent.ConcurrentHashMap.newKeySet()
        self._polled = 0
        self._listeners: list[Any] = []

    def listen(self, spark_context: Any) -> None:
        """Register with the listener bus of a context on a queue of its own, and with Iceberg.

        The context is the Scala object.
        """
        for method in _METHODS:
            listener = _listener(self.gateway, *self._offering, method)
            _register(spark_context, listener)
            self._listeners.append(listener)
        self.registry.register()

    def is_dull(self, event: Any) -> None:
        """Events of this one's class are not wanted again."""
        self._dull.add(event.getClass())

    @cached_property
    def registry(self) -> Registry:
        """Iceberg's registry of commits."""
        return Registry(self.gateway.jvm, *self._offering)

    @cached_property
    def _answers(self) -> Any:
        from strandline_spark.jvm.event_answers import Answers

        return Answers(Jvm(self.gateway.jvm), self.queue)

    @cached_property
    def _handles(self) -> Handles:
        return Handles(Jvm(self.gateway.jvm))

    @cached_property
    def _offering(self) -> tuple[Any, str]:
        """The queue for events, and its method.

        A counter before the queue, or else the queue alone.

        The counter is a collection whose comparator is called once for an element that is added.
        That is so in every Java that was seen, but no Java promises it, so it is tried first.
        """
        try:
            counting = self._counting()
            if self._counts_once(counting):
                return counting, "add"
            reason = "its comparator is not called once"
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
        self.faults.append("dropped events are not counted")
        _LOG.warning(
            "strandline: this JVM cannot count the events that find the queue full: %s", reason
        )
        return self.queue, "offer"

    def _counting(self) -> Any:
        """Return a queue that counts each added event and offers it on, unless it is dull."""
        handles = self._handles
        self._dull.add(self.gateway.jvm.java.lang.Class.forName("java.lang.String"))
        dull = handles.then(
            handles.path("java.lang.Object", "getClass"),
            handles.given_to(self._dull, _SET, "contains"),
        )
        offer = handles.given_to(self.queue, "java.util.Queue", "offer")
        return handles.fed(handles.unless(dull, handles.after(self._offered, "release", offer)))

    def _counts_once(self, counting: Any) -> bool:
        counting.add(self.gateway.jvm.java.lang.Object())
        counts = int(self._offered.drainPermits()), int(self.queue.size())
        self.queue.clear()
        return counts == (1, 1)

    def leave(self, spark_context: Any) -> None:
        """Take the listeners away from the bus and from Iceberg."""
        listeners, self._listeners = self._listeners, []
        for listener in listeners:
            spark_context.removeSparkListener(listener)
        self.registry.leave()

    def undoing(self, spark_context: Any) -> list[Handle]:
        """Return the JVM's undo without this process: the same, and to let go of what waits."""
        handles = self._handles
        kind = Jvm(self.gateway.jvm).class_named(LISTENER)
        removals = [
            handles.asking(spark_context, SPARK_CONTEXT, "removeSparkListener", (kind, listener))
            for listener in self._listeners
        ]
        emptied = handles.asking(self.queue, "java.util.Collection", "clear")
        return [
            *removals,
            *self.registry.removals(handles),
            emptied,
            self._answers.forgetting(handles),
        ]

    def poll(self, milliseconds: int) -> Any:
        """The next event, or None after that time.

        Blocks inside the JVM, with Python's lock free.
        """
        event = self._answers.next(milliseconds)
        if event is not None and not isinstance(
            event, str
        ):  # a comparison would ask the JVM what the event is
            self._polled += 1
        return event

    def wake(self) -> None:
        """End a waiting `poll`."""
        self.queue.offer(WAKE)

    def dropped(self) -> int:
        """Return how many events found the queue full."""
        return (
            0
            if self.faults
            else max(
                0, int(self._offered.availablePermits()) - self._polled - int(self.queue.size())
            )
        )

    def all_came(self) -> bool:
        """Return whether no commit of this JVM can have been missed until now."""
        return not self.faults and not self.registry.late and self.dropped() == 0


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


def _listener(gateway: Any, collection: Any, action: str, method: str) -> Any:
    """A listener whose `method` gives the event to the collection."""
    interface = gateway.jvm.java.lang.Class.forName(
        LISTENER, True, gateway.jvm.java.lang.Thread.currentThread().getContextClassLoader()
    )
    return gateway.jvm.java.beans.EventHandler.create(interface, collection, action, "", method)


def _register(spark_context: Any, listener: Any) -> None:
    try:
        spark_context.listenerBus().addToQueue(listener, "strandline")
    # The bus is private to Spark: where it is gone, the public way shares a queue with others.
    except Exception as error:
        swallowed("Spark's events wait behind other listeners'", error)
        spark_context.addSparkListener(listener)
