"""The directions of an event's datasets, and the stamp that decides between changes."""

from typing import NamedTuple

SOURCE, SINK = 0, 1
MOST_AHEAD = 3_600 * 10**6  # microseconds that an event may be ahead of its receipt


class Stamp(NamedTuple):
    """An event's time and hash, which decide between changes, and the moment of its receipt."""

    at: int
    hash: int
    received_at: int

    @classmethod
    def of(cls, at: int, hash_: bytes, received_at: int) -> "Stamp":
        """Return the stamp of an event by its time, content hash and receipt.

        Times are in microseconds. One more than an hour after the receipt is a wrong clock's, and
        the receipt counts instead.
        """
        if at > received_at + MOST_AHEAD:
            at = received_at
        return cls(at, int.from_bytes(hash_[:8], "big") >> 1, received_at)


def relation_id_of(run_id: int, direction: int, dataset_id: int) -> int:
    """Return the id of a relation: its parts are hashes already, so mixing them is enough."""
    mixed = run_id * 0x9E3779B97F4A7C15 + dataset_id * 0xC2B2AE3D27D4EB4F + direction
    return (mixed ^ (mixed >> 64)) & 0x7FFFFFFFFFFFFFFF
