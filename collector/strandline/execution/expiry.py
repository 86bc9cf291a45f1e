"""Drop from an Iceberg table exactly what `strandline expire` names.

Snapshots that are needed get tags.

What is pinned gets a tag (`strandline-pin-ID`) before anything goes, so that Iceberg itself refuses
to expire it, whoever asks. Of what is named two things are left alone: what is not there (any
more), and heads of branches and tags.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from strandline.execution.iceberg_tables import IcebergTables

Say = Callable[[str], None]
_LATEST = ["the latest snapshot"]


@dataclass(frozen=True, slots=True)
class Round:
    """One round of expiry: the table as its catalog calls it, what goes, and what stays pinned."""

    table: str
    expirable: Sequence[str]
    pinned: Sequence[str]

    @classmethod
    def of(cls, table: str, answer: Mapping[str, Any]) -> "Round":
        """Return the round that an answer to `GET /expirable` asks for.

        The latest snapshot needs no tag: no table expires its own head.
        """
        pinned = [pin["snapshotId"] for pin in answer["pinned"] if pin["reasons"] != _LATEST]
        return cls(table, answer["expirable"], pinned)

    def carry_out(self, tables: IcebergTables, say: Say, *, tags: bool = True) -> int:
        """Drop what is expirable and return the number of snapshots that went."""
        if tags:
            came, went = tables.pin(self.table, self.pinned)
            say(f"{self.table}: {came} pins added as tags, {went} removed")
        heads = tables.heads(self.table)
        there = set(tables.snapshots(self.table))
        going = [
            snapshot for snapshot in self.expirable if snapshot in there and snapshot not in heads
        ]
        if going:
            tables.expire(self.table, going)
        say(f"{self.table}: {len(going)} snapshots expired")
        return len(going)
