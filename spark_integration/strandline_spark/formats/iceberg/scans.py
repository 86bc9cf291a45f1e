"""The reports of Iceberg's scans."""

from __future__ import annotations

from strandline_spark.jvm.client import JavaObject, Jvm
from strandline_spark.jvm.iceberg_snapshot import Scan


def scan_report(scan: JavaObject, jvm: Jvm) -> JavaObject | None:
    """Return the report of a scan; None for another kind of scan."""
    supplier = jvm.field(scan, "scanReportSupplier")
    return supplier.get() if supplier is not None else None


def incremental(scan: JavaObject, jvm: Jvm) -> Scan | None:
    """Return the scan of what was added between two snapshots, which makes no report.

    Its own fields name the snapshots. Without a start it begins at the oldest that is still there.
    """
    start, end = jvm.field(scan, "startSnapshotId"), jvm.field(scan, "endSnapshotId")
    table = jvm.field(scan, "table")
    if end is None or table is None:
        return None
    if start is not None:
        return Scan(str(table.name()), str(end), str(start))
    return Scan(str(table.name()), str(end), first_snapshot_id=_oldest_ancestor(table, int(end)))


def _oldest_ancestor(table: JavaObject, snapshot_id: int) -> str:
    """Return the oldest ancestor of a snapshot that its table still has; itself if it has none."""
    parent: int | None = snapshot_id
    while parent is not None and (snapshot := table.snapshot(parent)) is not None:
        snapshot_id, parent = parent, snapshot.parentId()
    return str(snapshot_id)


def start_of(scan: Scan, table: JavaObject) -> tuple[str | None, bool]:
    """Return the snapshot after which a scan begins, and if that is known.

    The snapshot is None for the first.
    """
    if scan.first_snapshot_id is None:
        return scan.from_snapshot_id, True
    first = table.snapshot(int(scan.first_snapshot_id))
    if first is None:  # expired meanwhile
        return None, False
    parent = first.parentId()
    return str(parent) if parent is not None else None, True
