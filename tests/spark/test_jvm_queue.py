"""The queue inside the JVM: counting, registration and removal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from strandline_spark.jvm.event_queue import EventQueue

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


def drained(queue: EventQueue) -> list[Any]:
    """All that is in it."""
    found = []
    while (event := queue.poll(0)) is not None:
        found.append(event)
    return found


def settled(lake: Any) -> None:
    """Spark's bus has delivered everything."""
    lake.sparkContext._jsc.sc().listenerBus().waitUntilEmpty(10_000)


def test_events_dropped_by_a_full_queue_are_counted(lake: Any, small: EventQueue) -> None:
    lake.sql("CREATE TABLE IF NOT EXISTS lake.queue.t (id INT) USING iceberg")
    for number in range(4):
        lake.sql(f"INSERT INTO lake.queue.t VALUES ({number})")
    settled(lake)

    offered = int(small._offered.availablePermits())
    taken = len(drained(small))

    assert taken == 5
    assert small.dropped() == offered - 5 > 0


def test_queue_works_without_a_count_if_counting_fails(
    lake: Any, gateway: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(EventQueue, "_counts_once", lambda self, counting: False)
    queue = EventQueue(gateway, 1000)
    queue.listen(lake.sparkContext._jsc.sc())
    lake.range(3).collect()
    settled(lake)
    queue.leave(lake.sparkContext._jsc.sc())

    names = {str(event.getClass().getSimpleName()) for event in drained(queue)}

    assert {"SparkListenerSQLExecutionStart", "SparkListenerSQLExecutionEnd"} <= names
    assert queue.dropped() == 0
    assert queue.faults == ["dropped events are not counted"]
    assert "its comparator is not called once" in caplog.text


def test_leaving_removes_the_handlers_from_iceberg(lake: Any, gateway: Any) -> None:
    queue = EventQueue(gateway, 10)
    queue.listen(lake.sparkContext._jsc.sc())
    registered = list(queue.registry._registered)
    before = [int(each.size()) for each, _ in registered]
    queue.leave(lake.sparkContext._jsc.sc())

    assert len(registered) == 3
    assert [int(each.size()) for each, _ in registered] == [size - 1 for size in before]


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

    assert len(queue.registry._registered) == 6
    queue.registry.leave()
