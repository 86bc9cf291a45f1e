"""The bounded queue inside the JVM that Spark's listener bus fills and one Python thread empties.

`java.beans.EventHandler` makes the listeners inside the JVM, so that Spark never calls back into Python; a full queue
drops the event and counts it. Most of what Spark tells during a query is of
no use here; classes of events that turned out to be `dull` do not enter the queue again.
"""

from __future__ import annotations

import contextlib
import io
import socket
from functools import cached_property
from typing import Any

from strandline_spark.handles import Handles
from strandline_spark.jvm import Jvm

_LISTENER = "org.apache.spark.scheduler.SparkListenerInterface"
_SET = "java.util.Set"
_METHODS = ("onOtherEvent", "onApplicationEnd")
WAKE = "strandline:wake"
WAIT = 1000  # milliseconds for which the next event is waited for, mostly
_BUFFER = 1 << 16  # a plan of 1,000 columns is two megabytes


class EventQueue:
    """One queue of one JVM. It can outlive a SparkContext: Iceberg's registry keeps what was registered for good."""

    def __init__(self, gateway: Any, capacity: int) -> None:
        self.gateway = gateway
        java = gateway.jvm.java
        self.queue = java.util.concurrent.LinkedBlockingQueue(capacity)
        self._offered = java.util.concurrent.Semaphore(0)  # counts by release(); Py4J would copy a number
        self._dull = java.util.concurrent.ConcurrentHashMap.newKeySet()
        self._polled = 0
        self._listeners: list[Any] = []

    def listen(self, spark_context: Any) -> None:
        """Registers with the listener bus of a context (the Scala object) on a queue of its own."""
        for method in _METHODS:
            listener = _listener(self.gateway, self._offering, method)
            _register(spark_context, listener)
            self._listeners.append(listener)

    def is_dull(self, event: Any) -> None:
        """Events of this one's class are not wanted again."""
        self._dull.add(event.getClass())

    @cached_property
    def _answers(self) -> Any:
        from strandline_spark.answered import Answers

        return Answers(Jvm(self.gateway.jvm), self.queue)

    @cached_property
    def _offering(self) -> Any:
        """What counts an event that is added to it and offers it to the queue, unless it is dull."""
        jvm = Jvm(self.gateway.jvm)
        handles = Handles(jvm)
        self._dull.add(jvm.class_named("java.lang.String"))
        dull = handles.then(
            handles.path("java.lang.Object", "getClass"), handles.given_to(self._dull, _SET, "contains")
        )
        offer = handles.given_to(self.queue, "java.util.Queue", "offer")
        return handles.fed(handles.unless(dull, handles.after(self._offered, "release", offer)))

    def leave(self, spark_context: Any) -> None:
        """Takes the listeners away from the bus."""
        for listener in self._listeners:
            spark_context.removeSparkListener(listener)
        self._listeners.clear()

    def poll(self, milliseconds: int) -> Any:
        """The next event, or None after that time. Blocks inside the JVM, with Python's lock free."""
        event = self._answers.next(milliseconds)
        if event is not None and not isinstance(event, str):  # a comparison would ask the JVM what the event is
            self._polled += 1
        return event

    def wake(self) -> None:
        """Ends a waiting `poll`."""
        self.queue.offer(WAKE)

    def dropped(self) -> int:
        """How many of Spark's events found the queue full. Exact only while the queue is empty."""
        return max(0, int(self._offered.availablePermits()) - self._polled - int(self.queue.size()))

    def credit(self) -> None:
        """An event came that Spark's bus did not count (a commit told by the table format's own registry)."""
        self._polled -= 1


def acknowledge_quickly(gateway: Any) -> None:
    """Lets this thread's connection to the JVM acknowledge at once: an answer over 8 KB waits 44 ms otherwise.

    Linux only, and only where Py4J pins a connection to a thread; elsewhere nothing changes.
    """
    with contextlib.suppress(Exception):
        gateway.jvm.java.lang.System.nanoTime()  # a thread that has asked nothing yet has no connection
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


def _listener(gateway: Any, collection: Any, method: str) -> Any:
    """A listener whose `method` adds the event to the collection."""
    interface = gateway.jvm.java.lang.Class.forName(
        _LISTENER, True, gateway.jvm.java.lang.Thread.currentThread().getContextClassLoader()
    )
    return gateway.jvm.java.beans.EventHandler.create(interface, collection, "add", "", method)


def _register(spark_context: Any, listener: Any) -> None:
    try:
        spark_context.listenerBus().addToQueue(listener, "strandline")
    except Exception:  # the bus is private to Spark: where it is gone, the public way shares a queue with others
        spark_context.addSparkListener(listener)
