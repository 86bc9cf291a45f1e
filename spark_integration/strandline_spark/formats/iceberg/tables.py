"""Iceberg's own table behind what Spark has of it, and its snapshots."""

from __future__ import annotations

from collections.abc import Iterator

from strandline_spark.formats.mention import Mention
from strandline_spark.jvm.client import JavaObject, answer


def iceberg_table(table: JavaObject) -> JavaObject:
    """Iceberg's table of a Spark table."""
    return answer(table, "table", lambda relation_: relation_.table())


def find_snapshot(mention: Mention, snapshot_id: int) -> tuple[JavaObject, JavaObject | None]:
    """A table's snapshot, with the table that has it."""
    table = iceberg_table(mention.table) if mention.table is not None else None
    snapshot = table.snapshot(snapshot_id) if table is not None else None
    if snapshot is None and mention.catalog is not None:
        table = iceberg_table(fresh_table(mention))
        snapshot = table.snapshot(snapshot_id)
    return table, snapshot


def fresh_table(mention: Mention) -> JavaObject:
    """The table as the catalog has it now; the plan's own object may be older."""
    if mention.catalog is None or mention.identifier is None:
        return mention.table
    return mention.catalog.loadTable(mention.identifier)


def newest_first(table: JavaObject) -> Iterator[JavaObject]:
    """The snapshots of main."""
    snapshot = table.currentSnapshot()
    while snapshot is not None:
        yield snapshot
        parent = snapshot.parentId()
        snapshot = table.snapshot(parent) if parent is not None else None
