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

    >>> of = {"2": Snapshot("iceberg", "2", "1", operation="replace"), "1": Snapshot("iceberg", "1", operation="append")}
    >>> found = with_same_rows(Snapshot("iceberg", "3", "2", operation="replace"), {"replace"}, of.get)
    >>> [one.snapshot_id for one in found.same_rows_as], with_same_rows(of["1"], {"replace"}, of.get).same_rows_as
    (['2', '1'], ())
    """
    found, head = list[Snapshot](), snapshot
    while (
        head.operation in same_rows
        and head.parent_snapshot_id is not None
        and len(found) < _LONGEST
    ):
        before = at(head.parent_snapshot_id)
        if before is None:
            break
        found.append(before)
        head = before
    return replace(snapshot, same_rows_as=tuple(found)) if found else snapshot
