"""One event while it is read.

What decides between its changes and others', and the changes that were found so far.
"""

from typing import NamedTuple

from strandline.core.changes.bundles import FacetsSeen, Statement
from strandline.core.changes.parse_cache import Memo
from strandline.core.changes.usable_facets import NO_FACETS, UsableFacets
from strandline.core.openlineage.events import Event, Facets

SOURCE, SINK = 0, 1
MOST_AHEAD = 3_600 * 10**6  # microseconds that an event may be ahead of its receipt


class Stamp(NamedTuple):
    """What decides between changes: the event's time and hash; and when it was received."""

    at: int
    hash: int
    received_at: int

    @classmethod
    def of(cls, at: int, hash_: bytes, received_at: int) -> "Stamp":
        """Return the stamp of an event by its time, its content hash and its receipt, in microseconds.

        A time more than an hour after the receipt is a wrong clock's, and the receipt counts instead.
        """
        if at > received_at + MOST_AHEAD:
            at = received_at
        return cls(at, int.from_bytes(hash_[:8], "big") >> 1, received_at)


class Extraction(NamedTuple):
    """An event while it is read.

    Its changes so far, and whether something secret was taken out (`redacted` not empty).
    """

    event: Event
    stamp: Stamp
    memo: Memo
    changes: list[Statement]
    redacted: list[str]

    def facets(self, kind: int, entity_id: int, facets: Facets | None) -> UsableFacets:
        """Note an entity's facets; gives those that are neither deleted nor quarantined."""
        if not facets:
            return NO_FACETS
        usable, rows = UsableFacets(), []
        for key, raw in facets.items():
            facet, row = self.memo.facet(kind, key, bytes(raw))
            rows.append(row)
            if facet.value is not None:
                usable[key] = facet
            if facet.redacted:
                self.redacted.append(key)
        self.changes.append(FacetsSeen(entity_id, kind, self.stamp.at, rows))
        return usable


def relation_id_of(run_id: int, direction: int, dataset_id: int) -> int:
    """The id of a relation: its parts are hashes already, so mixing them is enough."""
    mixed = run_id * 0x9E3779B97F4A7C15 + dataset_id * 0xC2B2AE3D27D4EB4F + direction
    return (mixed ^ (mixed >> 64)) & 0x7FFFFFFFFFFFFFFF
