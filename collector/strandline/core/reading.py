"""One event while it is read: what decides between its changes and others', and the changes that were found so far."""

from typing import NamedTuple

from msgspec import Raw

from strandline.core.changes import Change, FacetsSeen
from strandline.core.events import Event
from strandline.core.memo import Group, Memo, Said

SOURCE, SINK = 0, 1


class Stamp(NamedTuple):
    """What decides between changes: the event's time and hash; and when it was received."""

    at: int
    hash: int
    received_at: int


class Reading(NamedTuple):
    """An event while it is read: its changes so far, and whether something secret was taken out (`redacted` not empty)."""

    event: Event
    stamp: Stamp
    memo: Memo
    changes: list[Change]
    redacted: list[str]

    def facets(self, kind: int, entity_id: int, raw: Raw) -> Said:
        """Note an entity's facets; gives those that are neither deleted nor quarantined."""
        group = self.memo.group(kind, bytes(raw))
        self.note(kind, entity_id, group)
        return group.said

    def note(self, kind: int, entity_id: int, group: Group) -> None:
        """Note an entity's facets that were read already."""
        if group.rows:
            self.changes.append(FacetsSeen(entity_id, kind, group.raw, self.stamp.at, group.rows, group.bodies))
            if group.redacted:
                self.redacted.append("facets")


class Link(NamedTuple):
    """A dataset that a run reads or writes, and what the event's facets say of it."""

    direction: int
    dataset_id: int
    said: Said


def relation_id_of(run_id: int, direction: int, dataset_id: int) -> int:
    """The id of a relation: its parts are hashes already, so mixing them is enough."""
    mixed = run_id * 0x9E3779B97F4A7C15 + dataset_id * 0xC2B2AE3D27D4EB4F + direction
    return (mixed ^ (mixed >> 64)) & 0x7FFFFFFFFFFFFFFF
