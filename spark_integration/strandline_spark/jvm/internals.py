"""What of Spark's and Iceberg's internals is relied on, and a trial at the start of whether it is here.

Each has a fallback, which knows less. What is not as it was seen on Spark 3.5 to 4.1 with Iceberg 1.11 and 1.12 is named
once in the log and in the run facet `strandline_emitter`, so that nobody has to guess why a snapshot is only observed.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass

from strandline_spark.jvm.client import JAVA_FAILED, JavaObject, Jvm, class_names_hold

_LOG = logging.getLogger("strandline")
_ICEBERG = "org.apache.iceberg."
_SOURCE = f"{_ICEBERG}spark.source."


@dataclass(frozen=True, slots=True)
class Internal:
    """A private field, and what the emitter does not know without it."""

    owner: str
    field: str
    lost: str


FIELDS = (
    Internal(f"{_SOURCE}SparkScan", "scanReportSupplier", "Iceberg: which snapshot a scan read"),
    Internal(f"{_SOURCE}SparkScan", "table", "Iceberg: what an incremental read read"),
    Internal(f"{_SOURCE}SparkWrite", "queryId", "Iceberg: which of several commits a write made"),
    Internal(
        f"{_SOURCE}SparkPositionDeltaWrite", "context", "Iceberg: which of several commits a merge-on-read write made"
    ),
    Internal(f"{_SOURCE}SparkPositionDeltaWrite$Context", "queryId", "Iceberg: the same"),
    Internal(f"{_SOURCE}SparkChangelogScan", "endSnapshotId", "Iceberg: which snapshots a changelog read"),
    Internal(f"{_ICEBERG}CachingCatalog", "catalog", "Iceberg: where a table will be made, at START"),
    Internal(f"{_ICEBERG}events.Listeners", "LISTENERS", "Iceberg: the handler of commits stays when the emitter ends"),
    Internal("org.apache.spark.sql.kafka010.KafkaRelation", "sourceOptions", "Kafka: the topics of a batch read"),
)


def unavailable(jvm: Jvm) -> tuple[str, ...]:
    """What the emitter will not know in this JVM; each is named in the log, once."""
    found = (*_tricks(jvm), *(one.lost for one in FIELDS if _lacks(jvm, one)))
    for lost in found:
        _LOG.warning("strandline: not available with these versions: %s", lost)
    return found


def _tricks(jvm: Jvm) -> Iterator[str]:
    if not class_names_hold(jvm.view._gateway_client):
        yield "class names in one call (commons-lang3 is not here): reading plans takes longer"


def _lacks(jvm: Jvm, one: Internal) -> bool:
    """Whether the class is here without the field; a class that is not here is nobody's loss."""
    try:
        owner = _loaded(jvm, one.owner)
    except JAVA_FAILED:
        return False
    return jvm.declared(owner, one.field) is None


def _loaded(jvm: Jvm, name: str) -> JavaObject:
    loader = jvm.view.java.lang.Thread.currentThread().getContextClassLoader()
    return jvm.view.java.lang.Class.forName(name, False, loader)
