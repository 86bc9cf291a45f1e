"""The position of an Iceberg stream's offset in the history of its table."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from strandline_spark.jvm.client import JavaObject

NO_SNAPSHOT = -1  # the snapshot id of a table without one


_NOT_STREAMED = {"delete", "overwrite"}
_WHOLE = 2**31 - 1  # a position behind every file of a snapshot


def offset_in(table: str, text: str | None) -> Mapping[str, Any] | None:
    """An offset as Iceberg's own streams have it.

    Of `strandline_aligned` where it stands in one of its tables.

    >>> offset_in("lake.a.t", '{"barrier": 4, "snapshots": {"lake.a.t": "17"}}')
    {'snapshot_id': 17, 'position': 2147483647}
    """
    offset: Mapping[str, Any] | None = json.loads(text) if text else None
    if offset is None or "snapshots" not in offset:
        return offset
    snapshot = offset["snapshots"].get(table)
    return {"snapshot_id": int(snapshot), "position": _WHOLE} if snapshot is not None else None


def read_up_to(offset: Mapping[str, Any], table: JavaObject, whole: bool = False) -> int | None:
    """The newest snapshot of which an offset has read something (`whole`: everything).

    None: of none.
    """
    snapshot = table.snapshot(offset["snapshot_id"])
    if snapshot is None:
        return _read_of_expired(offset, whole)
    if offset.get("scan_all_files") or (
        offset["position"] > 0 and (not whole or ends_whole(offset, table))
    ):
        return int(offset["snapshot_id"])
    if offset["position"] == 0 and added_files(snapshot) == 0:
        return int(offset["snapshot_id"])
    parent = snapshot.parentId()
    return int(parent) if parent is not None else None


def _read_of_expired(offset: Mapping[str, Any], whole: bool) -> int | None:
    if offset["snapshot_id"] == NO_SNAPSHOT or offset["position"] == 0 or whole:
        return None
    return int(offset["snapshot_id"])


def ends_whole(offset: Mapping[str, Any], table: JavaObject) -> bool:
    """Return whether an offset ends where a snapshot ends."""
    snapshot = table.snapshot(offset["snapshot_id"])
    return (
        snapshot is None or offset["position"] == 0 or offset["position"] >= added_files(snapshot)
    )


def added_files(snapshot: JavaObject) -> int:
    """Return how many data files a snapshot added."""
    summary = snapshot.summary()
    return int(summary.get("added-data-files") or 0) if summary is not None else 0


def passes_over_changes(table: JavaObject, after: int | None, until: int) -> bool:
    """Return whether an incremental read up to one snapshot left something out.

    Iceberg reads appends only. Deletes and overwrites are passed over, and so is everything that a
    restore took away: then the start is no ancestor of the end.
    """
    snapshot_id: int | None = until
    while snapshot_id is not None and snapshot_id != after:
        snapshot = table.snapshot(snapshot_id)
        if snapshot is None:  # expired: nothing more can be known
            return False
        if str(snapshot.operation()) in _NOT_STREAMED:
            return True
        parent = snapshot.parentId()
        snapshot_id = int(parent) if parent is not None else None
    return after is not None and snapshot_id is None
