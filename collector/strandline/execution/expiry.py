"""Dropping what `strandline expire` names from an Iceberg table.

Exactly that, with tags on what somebody needs.

What is pinned gets a tag (`strandline-pin-ID`) before anything goes, so that Iceberg itself refuses
to expire it, whoever asks. Of what is named two things are left alone: what is not there (any
more), and heads of branches and tags.
"""

from collections.abc import Callable
from dataclasses import dataclass

from strandline.core.versions.expirable import Expiry
from strandline.execution.iceberg_tables import IcebergTables

Say = Callable[[str], None]
_LATEST = ["the latest snapshot"]


@dataclass(frozen=True, slots=True)
class Round:
    """The result of one look: the table's catalog name, its expiry, and where queries began."""

    called: str
    found: Expiry

    def carry_out(self, tables: IcebergTables, say: Say, *, tags: bool = True) -> int:
        """Drop what is expirable; the number of snapshots that went."""
        if tags:
            came, went = tables.pin(self.called, self._pinned())
            say(f"{self.called}: {came} pins came as tags, {went} went")
        heads = tables.heads(self.called)
        there = set(tables.snapshots(self.called))
        going = [
            snapshot
            for snapshot in self.found.expirable
            if snapshot in there and snapshot not in heads
        ]
        if going:
            tables.expire(self.called, going)
        say(f"{self.called}: {len(going)} snapshots expired")
        return len(going)

    def _pinned(self) -> list[str]:
        places = sorted(
            place for place, reasons in self.found.reasons.items() if list(reasons) != _LATEST
        )
        return [self.found.ancestry[place] for place in places]
