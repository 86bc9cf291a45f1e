"""Exact commits and scans of Iceberg tables, from Iceberg's own listener registry.

The registry calls a listener for every commit of this JVM, in the committing thread; an EventHandler puts what it is
called with into the same queue as Spark's events, so that a commit always comes before the end of its execution. The
registry knows no removal: the handler holds nothing but the bounded queue.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from py4j.java_gateway import JavaClass

from strandline_spark.jvm import JAVA_THREW, class_name, once

_EVENTS = "org.apache.iceberg.events."
_KINDS = ("CreateSnapshotEvent", "ScanEvent", "IncrementalScanEvent")

_COUNTED = {"rowCount": "added-records", "size": "added-files-size", "fileCount": "added-data-files"}

BARRIER = "strandline.barrier"
INPUTS = "strandline.inputs"
DOMAIN = "strandline.domain"
INCARNATION = "strandline.incarnation"  # of a commit; as a table's property: what its next commits must carry at least
QUERY, BATCH = "strandline.query-id", "strandline.batch-id"  # of the micro-batch that made an aligned job's checkpoint
_SINK_QUERY, _SINK_BATCH = "spark.sql.streaming.queryId", "spark.sql.streaming.epochId"


@dataclass(frozen=True, slots=True)
class Commit:
    """One snapshot that this JVM committed. For CREATE TABLE AS Iceberg names the table without its catalog."""

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
        """Whether a stream's own sink made it, and no statement."""
        return _SINK_QUERY in self.summary

    @property
    def statistics(self) -> dict[str, int]:
        """What it added, under the names of OpenLineage's outputStatistics facet."""
        return {name: int(self.summary[key]) for name, key in _COUNTED.items() if key in self.summary}


@dataclass(frozen=True, slots=True)
class Scan:
    """One planned read of a snapshot, or of what was added after one (`from_snapshot_id`, exclusive) up to another."""

    table: str
    snapshot_id: str
    from_snapshot_id: str | None = None


def register(jvm: Any, queue: Any) -> bool:
    """Feed commits and scans into a Java queue. False, and nothing changed, where Iceberg is not on the class path."""
    try:
        loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
        listener, *kinds = (jvm.java.lang.Class.forName(_EVENTS + name, True, loader) for name in ("Listener", *_KINDS))
    except JAVA_THREW:
        return False
    handler = jvm.java.beans.EventHandler.create(listener, queue, "offer", "", "notify")
    listeners = jvm.org.apache.iceberg.events.Listeners
    for kind in kinds:
        listeners.register(handler, kind)
    return True


def commit_of(event: Any) -> Commit | Scan | None:
    """What an element of the queue says, or None if it is not one of Iceberg's."""
    kind = class_name(event)
    if not kind.startswith(_EVENTS):
        return None
    if kind.endswith(".CreateSnapshotEvent"):
        return _commit(event)
    if kind.endswith(".IncrementalScanEvent"):
        return Scan(str(event.tableName()), str(event.toSnapshotId()), str(event.fromSnapshotId()))
    return Scan(str(event.tableName()), str(event.snapshotId()))


def _commit(event: Any) -> Commit:
    summary = once(event, "summary", _summary) or {}
    return Commit(
        str(event.tableName()), str(event.operation()), str(event.snapshotId()), int(event.sequenceNumber()), summary
    )


def _summary(event: Any) -> Any:
    return json.loads(_mapper(event._gateway_client).writeValueAsString(event.summary()) or "{}")


@lru_cache(maxsize=2)
def _mapper(gateway_client: Any) -> Any:
    """One answer for a whole Java map, where reading it entry by entry takes 40 ms."""
    return JavaClass("com.fasterxml.jackson.databind.ObjectMapper", gateway_client)()


def batch_of(summary: Mapping[str, str]) -> tuple[str, int] | None:
    """The streaming query and the micro-batch that a snapshot's summary names."""
    for query_id, batch_id in ((QUERY, BATCH), (_SINK_QUERY, _SINK_BATCH)):
        query, number = summary.get(query_id), summary.get(batch_id)
        if query and number and number.isdigit():
            return query, int(number)
    return None


def incarnation_of(properties: Mapping[str, str]) -> int | None:
    """The incarnation that a snapshot's summary, or a table's properties, name."""
    own = properties.get(INCARNATION, "")
    return int(own) if own.isdigit() else None


def barrier_of(summary: Mapping[str, str]) -> int | None:
    """The barrier that a snapshot carries: its own property, else that of its micro-batch (batch N is barrier N + 1)."""
    own = summary.get(BARRIER, "")
    if own.isdigit():
        return int(own)
    batch = batch_of(summary)
    return batch[1] + 1 if batch else None
