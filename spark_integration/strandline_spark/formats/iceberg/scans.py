"""The reports of Iceberg's scans."""

from __future__ import annotations

from strandline_spark.jvm.client import JavaObject, Jvm
from strandline_spark.jvm.iceberg_snapshot import Scan


def scan_report(scan: JavaObject, jvm: Jvm) -> JavaObject | None:
    """Return the report of a scan; None for another kind of scan."""
    supplier = jvm.field(scan, "scanReportSupplier")
    return supplier.get() if supplier is not None else None


def incremental(scan: JavaObject, jvm: Jvm) -> Scan | None:
    """A scan of what was added between two snapshots makes no report; its own fields say which."""
    start, end = jvm.field(scan, "startSnapshotId"), jvm.field(scan, "endSnapshotId")
    table = jvm.field(scan, "table")
    if end is None or table is None:
        return None
    return Scan(str(table.name()), str(end), str(start) if start is not None else None)
