"""The queue inside the JVM: counting, registration and removal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from strandline_spark.jvm.event_queue import EventQueue
from strandline_spark.jvm.iceberg_snapshot import EVENTS
from strandline_spark.jvm.notices import Notice

pytestmark = pytest.mark.spark


@pytest.fixture
def gateway(lake: Any) -> Any:
    """The connection to the JVM."""
    return lake.sparkContext._gateway


@pytest.fixture
def small(lake: Any, gateway: Any) -> Iterator[EventQueue]:
    """A queue of five that listens."""
    queue = EventQueue(gateway, 5)
    queue.listen(lake.sparkContext._jsc.sc())
    yield queue
    queue.leave(lake.sparkContext._jsc.sc())


def drained(queue: EventQueue) -> list[Notice]:
    """Take all that is in it."""
    return list(iter(lambda: queue.poll(0), None))


def listeners_of_iceberg(lake: Any, loader: Any = None) -> int:
    """Return how many listeners the Iceberg of a loader has in all."""
    loader = loader or lake._jvm.java.lang.Thread.currentThread().getContextClassLoader()
    registry = lake._jvm.java.lang.Class.forName(f"{EVENTS}Listeners", True, loader)
    field = registry.getDeclaredField("LISTENERS")
    field.setAccessible(True)
    return sum(int(queue.size()) for queue in field.get(None).values())


def settled(lake: Any) -> None:
    """Spark's bus has delivered everything."""
    lake.sparkContext._jsc.sc().listenerBus().waitUntilEmpty(10_000)


def test_events_dropped_by_a_full_queue_are_counted(lake: Any, small: EventQueue) -> None:
    lake.sql("CREATE TABLE IF NOT EXISTS lake.queue.t (id INT) USING iceberg")
    for number in range(4):
        lake.sql(f"INSERT INTO lake.queue.t VALUES ({number})")
    settled(lake)

    came = drained(small)

    assert len(came) == 5
    assert small.dropped() > 0
    assert not small.all_came()


def test_leaving_removes_the_listeners_from_iceberg(lake: Any, gateway: Any) -> None:
    before = listeners_of_iceberg(lake)
    queue = EventQueue(gateway, 10)
    queue.listen(lake.sparkContext._jsc.sc())
    during = listeners_of_iceberg(lake)
    queue.leave(lake.sparkContext._jsc.sc())

    assert (during, listeners_of_iceberg(lake)) == (before + 3, before)


def test_iceberg_of_another_class_loader_is_registered_when_seen(lake: Any, gateway: Any) -> None:
    jvm = gateway.jvm
    here = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    name = "org.apache.iceberg.events.Listeners"
    place = (
        jvm.java.lang.Class.forName(name, False, here)
        .getProtectionDomain()
        .getCodeSource()
        .getLocation()
    )
    urls = gateway.new_array(jvm.java.net.URL, 1)
    urls[0] = place
    other = jvm.java.net.URLClassLoader(urls, jvm.java.lang.ClassLoader.getPlatformClassLoader())
    queue = EventQueue(gateway, 10)
    queue.registry.register()
    listeners = jvm.java.lang.Class.forName(name, True, other)
    no_arguments = gateway.new_array(jvm.java.lang.Class, 0)
    maker = listeners.getDeclaredConstructor(no_arguments)
    maker.setAccessible(True)

    queue.registry.seen(maker.newInstance(gateway.new_array(jvm.Object, 0)))
    queue.registry.seen(maker.newInstance(gateway.new_array(jvm.Object, 0)))

    assert listeners_of_iceberg(lake, other) == 3
    queue.leave(lake.sparkContext._jsc.sc())
    assert listeners_of_iceberg(lake, other) == 0
