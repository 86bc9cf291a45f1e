"""Exact commits and scans of Iceberg tables, from Iceberg's own listener registry.

The registry calls a listener for every commit of this JVM, in the committing thread. An
EventHandler puts what it is called with into the same queue as Spark's events, so a commit always
comes before the end of its execution. It has no method that removes a listener: its private map is
asked for, and where that cannot be had the handler stays, and holds nothing but the bounded queue.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from py4j.java_gateway import JavaClass

from strandline_spark.jvm.class_names import OBJECT_MAPPER
from strandline_spark.jvm.client import JAVA_FAILED, JAVA_THREW, class_name, once

_EVENTS = "org.apache.iceberg.events."
_KINDS = ("CreateSnapshotEvent", "ScanEvent", "IncrementalScanEvent")

_COUNTED = {
    "rowCount": "added-records",
    "size": "added-files-size",
    "fileCount": "added-data-files",
}

REGISTRY = "iceberg.registry"  # by what name the JVM's reader keeps the emitter's `Registry`,
ALL_CAME = "iceberg.all-came"  # and whether every commit has come from it
BARRIER = "strandline.barrier"
INPUTS = "strandline.inputs"
GROUP = "strandline.group"
# of a commit; as a table's property: what its next commits must carry at least
GENERATION = "strandline.generation"
QUERY, BATCH = (
    "strandline.query-id",
    "strandline.batch-id",
)  # of the micro-batch that made an aligned job's checkpoint
_SINK_QUERY, _SINK_BATCH = "spark.sql.streaming.queryId", "spark.sql.streaming.epochId"


@dataclass(frozen=True, slots=True)
class Commit:
    """One snapshot that this JVM committed.

    For CREATE TABLE AS Iceberg names the table without its catalog.
    """

    table: str
    operation: str
    snapshot_id: str
    sequence_number: int = 0
    summary: Mapping[str, str] = field(default_factory=dict)

    @property
    def batch(self) -> tuple[str, int] | None:
        """The streaming query and the micro-batch that made it."""
        return batch_of(self.summary)

    @property
    def streamed(self) -> bool:
        """True if a stream's own sink made it, and no statement."""
        return _SINK_QUERY in self.summary

    @property
    def statistics(self) -> dict[str, int]:
        """The counts of its additions, under the names of OpenLineage's outputStatistics facet."""
        return {
            name: int(self.summary[key]) for name, key in _COUNTED.items() if key in self.summary
        }


@dataclass(frozen=True, slots=True)
class Scan:
    """One planned read of a snapshot, or of what was added up to it.

    That is what was added after `from_snapshot_id`. `first_snapshot_id`: the oldest snapshot whose
    changes were read, where the scan names that instead. It may have a parent: the one that was
    expired last.
    """

    table: str
    snapshot_id: str
    from_snapshot_id: str | None = None
    first_snapshot_id: str | None = None


class Registry:
    """Feeds commits and scans to a Java object's method, wherever Iceberg's classes come from.

    They may come with the class path, with `spark.jars` or with a later ADD JAR: each loader has a
    registry of its own.
    """

    def __init__(self, jvm: Any, target: Any, action: str) -> None:
        self._jvm = jvm
        self._target = target
        self._action = action
        self._fed: set[int] = set()  # loaders
        self._seen: set[str] = set()  # classes
        self._registered: list[tuple[Any, Any]] = []  # (the queue of a registry, the handler in it)
        self.late = False  # whether Iceberg was seen before it was registered with

    def register(self, loader: Any = None) -> bool:
        """Register with the Iceberg of a loader, the thread's own unless given.

        False where it has none.
        """
        try:
            loader = loader or self._jvm.java.lang.Thread.currentThread().getContextClassLoader()
            names = ("Listeners", "Listener", *_KINDS)
            listeners, listener, *kinds = (
                self._jvm.java.lang.Class.forName(_EVENTS + name, True, loader) for name in names
            )
            where = int(self._jvm.java.lang.System.identityHashCode(listeners.getClassLoader()))
        except JAVA_THREW:
            return False
        if where not in self._fed:
            self._fed.add(where)
            handler = self._jvm.java.beans.EventHandler.create(
                listener, self._target, self._action, "", "notify"
            )
            for kind in kinds:
                self._add(listeners, listener, handler, kind)
        return True

    def seen(self, instance: Any) -> None:
        """Register with the Iceberg that an object of Iceberg's is of."""
        kind = class_name(instance)
        if kind not in self._seen:
            self._seen.add(kind)
            registered = len(self._fed)
            self.register(instance.getClass().getClassLoader())
            self.late |= len(self._fed) > registered

    def leave(self) -> None:
        """Take the handlers away."""
        registered, self._registered = self._registered, []
        if registered:  # a handler that cannot be removed must not be registered again
            self._fed.clear()
            self._seen.clear()
        for queue, handler in registered:
            queue.remove(handler)

    def removals(self, handles: Any) -> list[Any]:
        """The same, as what the JVM can do without this process."""
        kind = self._jvm.java.lang.Class.forName("java.lang.Object")
        return [
            handles.asking(queue, "java.util.Collection", "remove", (kind, handler))
            for queue, handler in self._registered
        ]

    def _add(self, listeners: Any, listener: Any, handler: Any, kind: Any) -> None:
        parameters = _array(self._jvm, "java.lang.Class", listener, kind.getClass())
        method = listeners.getMethod("register", parameters)
        method.invoke(None, _array(self._jvm, "java.lang.Object", handler, kind))
        with suppress(*JAVA_FAILED):
            registry = listeners.getDeclaredField("LISTENERS")
            registry.setAccessible(True)
            self._registered.append((registry.get(None).get(kind), handler))


def _array(jvm: Any, element_class: str, *elements: Any) -> Any:
    array = jvm.java.lang.reflect.Array
    new = array.newInstance(jvm.java.lang.Class.forName(element_class), len(elements))
    for index, element in enumerate(elements):
        array.set(new, index, element)
    return new


def commit_of(event: Any) -> Commit | Scan | None:
    """Return what an element of the queue says, or None if it is not one of Iceberg's."""
    kind = class_name(event)
    if not kind.startswith(_EVENTS):
        return None
    if kind.endswith(".CreateSnapshotEvent"):
        return _commit(event)
    if kind.endswith(".IncrementalScanEvent"):
        table, newest = str(event.tableName()), str(event.toSnapshotId())
        oldest = str(event.fromSnapshotId())
        if bool(event.isFromSnapshotInclusive()):
            return Scan(table, newest, first_snapshot_id=oldest)
        return Scan(table, newest, oldest)
    return Scan(str(event.tableName()), str(event.snapshotId()))


def _commit(event: Any) -> Commit:
    summary = once(event, "summary", _summary) or {}
    return Commit(
        str(event.tableName()),
        str(event.operation()),
        str(event.snapshotId()),
        int(event.sequenceNumber()),
        summary,
    )


def _summary(event: Any) -> Any:
    return json.loads(_mapper(event._gateway_client).writeValueAsString(event.summary()) or "{}")


@lru_cache(maxsize=2)
def _mapper(gateway_client: Any) -> Any:
    """One answer for a whole Java map, where reading it entry by entry takes 40 ms."""
    return JavaClass(OBJECT_MAPPER, gateway_client)()


def batch_of(summary: Mapping[str, str]) -> tuple[str, int] | None:
    """The streaming query and the micro-batch that a snapshot's summary names."""
    for query_id, batch_id in ((QUERY, BATCH), (_SINK_QUERY, _SINK_BATCH)):
        query, number = summary.get(query_id), summary.get(batch_id)
        if query and number and number.isdigit():
            return query, int(number)
    return None


def generation_of(properties: Mapping[str, str]) -> int | None:
    """The generation that a snapshot's summary, or a table's properties, name."""
    own = properties.get(GENERATION, "")
    return int(own) if own.isdigit() else None


def stated_barrier(summary: Mapping[str, str]) -> int | None:
    """The barrier that a snapshot states in a property of its own: an aligned job's."""
    own = summary.get(BARRIER, "")
    return int(own) if own.isdigit() else None


def barrier_of(summary: Mapping[str, str]) -> int | None:
    """The barrier that a base table's snapshot carries.

    Its own property, else that of its micro-batch (batch N is barrier N + 1).
    """
    own = stated_barrier(summary)
    if own is not None:
        return own
    batch = batch_of(summary)
    return batch[1] + 1 if batch else None
