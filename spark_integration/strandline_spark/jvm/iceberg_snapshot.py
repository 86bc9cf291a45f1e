"""Exact commits and scans of Iceberg tables, from Iceberg's own listener registry.

The registry calls a listener for every commit of this JVM, in the committing thread. The probe puts
what it is called with into the same queue as Spark's events, so a commit always comes before the
end of its execution.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from strandline_spark.jvm.client import class_name
from strandline_spark.jvm.probe import Probe

EVENTS = "org.apache.iceberg.events."
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
    """Feeds commits and scans to the probe's queue, wherever Iceberg's classes come from.

    They may come with the class path, with `spark.jars` or with a later ADD JAR: each loader has a
    registry of its own.
    """

    def __init__(self, jvm: Any, probe: Probe) -> None:
        self._jvm = jvm
        self._probe = probe
        self._seen: set[str] = set()  # classes
        self.late = False  # whether Iceberg was seen before it was registered with

    def begin(self) -> None:
        """Register with the Iceberg that this thread sees; others follow when they are seen."""
        self._seen.clear()
        self.register()

    def register(self, loader: Any = None) -> bool:
        """Register with the Iceberg of a loader, the thread's own unless given.

        False where it has none, and where that was done before.
        """
        loader = loader or self._jvm.java.lang.Thread.currentThread().getContextClassLoader()
        return bool(self._probe.register(loader, EVENTS, " ".join(_KINDS)))

    def seen(self, instance: Any) -> None:
        """Register with the Iceberg that an object of Iceberg's is of."""
        kind = class_name(instance)
        if kind not in self._seen:
            self._seen.add(kind)
            self.late |= self.register(instance.getClass().getClassLoader())


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
