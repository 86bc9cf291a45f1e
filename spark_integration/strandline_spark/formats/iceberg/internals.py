"""Private fields of Iceberg's that are relied on.

As they were seen in 1.11 (Spark 3.5 and 4.0) and 1.12 (Spark 4.1).
"""

from __future__ import annotations

from strandline_spark.jvm.class_names import Internal

_ICEBERG = "org.apache.iceberg."
_SOURCE = f"{_ICEBERG}spark.source."
FIELDS = (
    Internal(f"{_SOURCE}SparkScan", "scanReportSupplier", "Iceberg: which snapshot a scan read"),
    Internal(f"{_SOURCE}SparkScan", "table", "Iceberg: what an incremental read read"),
    Internal(f"{_SOURCE}SparkWrite", "queryId", "Iceberg: which of several commits a write made"),
    Internal(
        f"{_SOURCE}SparkPositionDeltaWrite",
        "context",
        "Iceberg: which of several commits a merge-on-read write made",
    ),
    Internal(f"{_SOURCE}SparkPositionDeltaWrite$Context", "queryId", "Iceberg: the same"),
    Internal(
        f"{_SOURCE}SparkChangelogScan", "endSnapshotId", "Iceberg: which snapshots a changelog read"
    ),
    Internal(
        f"{_ICEBERG}CachingCatalog", "catalog", "Iceberg: where a table will be made, at START"
    ),
    Internal(
        f"{_ICEBERG}events.Listeners",
        "LISTENERS",
        "Iceberg: the handler of commits stays when the emitter ends",
    ),
)
