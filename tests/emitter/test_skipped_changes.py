"""Incremental reads of an Iceberg table and what they pass over."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pytest

from strandline_spark.formats.iceberg.offsets import passes_over_changes


@dataclass
class Snapshot:
    """A snapshot as Iceberg has it."""

    parent: int | None
    kind: str

    def parentId(self) -> int | None:  # noqa: N802 - Iceberg's name
        return self.parent

    def operation(self) -> str:
        return self.kind


class Table:
    """1 <- 2 <- 3 (delete) <- 4 <- 5 (compaction), and 6 <- 7 beside it after a restore to 1."""

    snapshots: ClassVar[dict[int, Snapshot]] = {
        1: Snapshot(None, "append"),
        2: Snapshot(1, "append"),
        3: Snapshot(2, "delete"),
        4: Snapshot(3, "append"),
        5: Snapshot(4, "replace"),
        6: Snapshot(1, "append"),
        7: Snapshot(6, "overwrite"),
    }

    def snapshot(self, snapshot_id: int) -> Snapshot | None:
        return self.snapshots.get(snapshot_id)


@pytest.mark.parametrize(
    ("after", "until", "skipped"),
    [
        (None, 2, False),
        (1, 2, False),
        (2, 2, False),
        (3, 5, False),
        (2, 4, True),
        (None, 3, True),
        (1, 6, False),
        (6, 7, True),
        (2, 6, True),
    ],
    ids=[
        "from the beginning",
        "one append",
        "nothing new",
        "after the delete",
        "over a delete",
        "from the beginning over a delete",
        "after a restore",
        "over an overwrite",
        "from a start that was restored away",
    ],
)
def test_read_that_passes_over_changes_is_known(
    after: int | None, until: int, skipped: bool
) -> None:
    assert passes_over_changes(Table(), after, until) is skipped
