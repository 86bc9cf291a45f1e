"""One event while it is read: what decides between its changes and others', and the changes that were found so far."""

from typing import Any, NamedTuple

from strandline.core.changes import Change, FacetBody, FacetSeen
from strandline.core.events import Event, Facets
from strandline.core.facets import SHARED_SIZE, Facet
from strandline.core.memo import Memo
from strandline.core.naming import key_text

SOURCE, SINK = 0, 1


class Stamp(NamedTuple):
    """What decides between changes: the event's time and hash; and when it was received."""

    at: int
    hash: int
    received_at: int


class Said(dict[str, Facet]):
    """The usable facets of one entity in one event."""

    def value(self, key: str) -> Any:
        """The modelled content of a facet, or None."""
        facet = self.get(key)
        return None if facet is None else facet.value


class Reading(NamedTuple):
    """An event while it is read: its changes so far, and whether something secret was taken out (`redacted` not empty)."""

    event: Event
    stamp: Stamp
    memo: Memo
    changes: list[Change]
    redacted: list[str]

    def facets(self, kind: int, entity_id: int, facets: Facets) -> Said:
        """Note an entity's facets; gives those that are neither deleted nor quarantined."""
        said = Said()
        at, add = self.stamp.at, self.changes.append
        for key, raw in (facets or {}).items():
            facet = self.memo.facet(kind, key, bytes(raw))
            shared = len(facet.body) > SHARED_SIZE
            if shared:
                add(FacetBody(facet.hash, facet.body))
            body = None if shared else facet.body
            add(FacetSeen(entity_id, key_text(key), kind, at, facet.hash, body, int(facet.deleted), facet.problem))
            if facet.redacted:
                self.redacted.append(key)
            if facet.value is not None:
                said[key] = facet
        return said


class Link(NamedTuple):
    """A dataset that a run reads or writes, and what the event's facets say of it."""

    direction: int
    dataset_id: int
    said: Said


def relation_id_of(run_id: int, direction: int, dataset_id: int) -> int:
    """The id of a relation: its parts are hashes already, so mixing them is enough."""
    mixed = run_id * 0x9E3779B97F4A7C15 + dataset_id * 0xC2B2AE3D27D4EB4F + direction
    return (mixed ^ (mixed >> 64)) & 0x7FFFFFFFFFFFFFFF
