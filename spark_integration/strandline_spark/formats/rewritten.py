"""Snapshots that show the rows of an earlier one.

What compaction, VACUUM and a change of a table's properties leave.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

from strandline_spark.model.statement import Snapshot

_LONGEST = 20  # of them in a row


def with_same_rows(
    snapshot: Snapshot, same_rows: Collection[str], at: Callable[[str], Snapshot | None]
) -> Snapshot:
    """Return the snapshot; one by an operation of `same_rows` with those before it.

    Back to the one that changed rows.

    >>> first = Snapshot("iceberg", "1", operation="append")
    >>> of = {"1": first, "2": Snapshot("iceberg", "2", "1", operation="replace")}
    >>> newest = Snapshot("iceberg", "3", "2", operation="replace")
    >>> found = with_same_rows(newest, {"replace"}, of.get)
    >>> [one.snapshot_id for one in found.same_rows_as]
    ['2', '1']
    >>> with_same_rows(first, {"replace"}, of.get).same_rows_as
    ()
    """
    snapshots, head = list[Snapshot](), snapshot
    while (
        head.operation in same_rows
        and head.parent_snapshot_id is not None
        and len(snapshots) < _LONGEST
    ):
        before = at(head.parent_snapshot_id)
        if before is None:
            break
        snapshots.append(before)
        head = before
    return replace(snapshot, same_rows_as=tuple(snapshots)) if snapshots else snapshot
