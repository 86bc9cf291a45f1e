"""Dropping what `strandline expire` names from an Iceberg table: exactly that, with tags on what somebody needs.

What is pinned gets a tag (`strandline-pin-ID`) before anything goes, so that Iceberg itself refuses to expire it, whoever
asks. Beside the expirable snapshots themselves three things are left alone: what is not there (any more), heads of
branches and tags, and the snapshot with which a streaming query began, because its restart loads it
(https://github.com/apache/iceberg/issues/18000).
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from strandline.cli.checkpoint_folders import CheckpointFolder
from strandline.cli.iceberg_tables import IcebergTables
from strandline.core.barriers import Table
from strandline.core.expiry import Expiry
from strandline.core.model import Model

Say = Callable[[str], None]
_LATEST = ["the latest snapshot"]


@dataclass(frozen=True, slots=True)
class Round:
    """What one look found: the table by the name that its catalog knows, its expiry, and where queries began."""

    called: str
    found: Expiry
    begun: dict[str, str]  # snapshot to the job whose query began with it

    def carry_out(self, tables: IcebergTables, say: Say, tags: bool = True) -> int:
        """Drop what is expirable; the number of snapshots that went."""
        if tags:
            came, went = tables.pin(self.called, self._pinned())
            say(f"{self.called}: {came} pins came as tags, {went} went")
        heads = tables.heads(self.called)
        there = set(tables.snapshots(self.called))
        for snapshot, job in sorted(self.begun.items()):
            if snapshot in there and snapshot in self.found.expirable:
                say(f"  kept {snapshot}: the query of job {job} began with it, and loads it when it starts again")
        going = [one for one in self.found.expirable if one in there and one not in heads and one not in self.begun]
        if going:
            tables.expire(self.called, going)
        say(f"{self.called}: {len(going)} snapshots expired")
        return len(going)

    def _pinned(self) -> list[str]:
        places = sorted(place for place, reasons in self.found.reasons.items() if list(reasons) != _LATEST)
        return [self.found.ancestry[place] for place in places]


def begun_with(model: Model, table: Table) -> dict[str, str]:
    """The snapshots with which the streaming queries that read a table began, as their checkpoints say, with their jobs."""
    found = {}
    for job in sorted(model.readers.get(table, ())):
        place = model.places.get(job)
        if place is not None and place.checkpoint:
            for snapshot in initial_offsets(place.checkpoint):
                found[snapshot] = job[1]
    return found


def initial_offsets(checkpoint: str) -> Iterator[str]:
    """The snapshots in the initial offsets that Iceberg's sources wrote into a checkpoint."""
    folder = CheckpointFolder(checkpoint)
    for source in folder.names("sources"):
        for line in folder.lines(f"sources/{source}/offsets/0"):
            try:
                offset = json.loads(line)
            except ValueError:  # `v1`, or another source's
                continue
            if isinstance(offset, dict) and int(offset.get("snapshot_id", -1)) >= 0:
                yield str(offset["snapshot_id"])
