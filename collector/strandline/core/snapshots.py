"""Which snapshots an event tells of: the best of what it says about each dataset, and how sure that is.

Best first: the dataset's own snapshot facet, Iceberg's scan or commit report, the standard `version` facet. The last is
only observed: stock listeners read it when somebody else may have committed in between.
"""

from collections.abc import Iterable
from typing import NamedTuple

from strandline.core import facets as f
from strandline.core.bundles import Link
from strandline.core.changes import Change, SnapshotSeen, SnapshotUsed
from strandline.core.memo import Said
from strandline.core.naming import clean, key_text
from strandline.core.reading import SINK, Stamp
from strandline.core.times import micros

OBSERVED, REPORTED, STATED = 1, 2, 3  # ranks of snapshot_uses; of snapshots, a reader's own statement is REPORTED
EXACT_DOUBLE = 2**53
BEYOND_IDS = 2**63  # an id is a whole number of 64 bits, so no greater double was made of one


class Told(NamedTuple):
    """A snapshot as a facet tells of it. lossy: its id came as a double, so only the first digits are sure."""

    snapshot: f.Snapshot
    rank: int
    lossy: bool = False


class Under(NamedTuple):
    """What all snapshots of one event share: its stamp, its run, and the generation and barrier (0: none) that it tells of."""

    stamp: Stamp
    run_id: int
    generation: str
    barrier: int


def under(stamp: Stamp, run_id: int, barrier: f.Barrier | None) -> Under:
    """The same for an event with this committed barrier."""
    if barrier is None:
        return Under(stamp, run_id, "", 0)
    return Under(stamp, run_id, key_text(barrier.query_id or ""), barrier.number or 0)


def snapshots_of(under: Under, link: Link, told: Told) -> Iterable[Change]:
    """The snapshot that a run read or made of a dataset, and that it did."""
    if not told.lossy:  # else it is no id that a table has
        yield _seen(under, link, told)
    yield _used(under, link, told)


def told_of(said: Said, own: Said) -> Told | None:
    """The best that is said of a dataset's snapshot: by its own facets, and by those that it has as input or output."""
    stated: f.Snapshot | None = own.value("strandline_snapshot") or said.value("strandline_snapshot")
    if stated is not None:
        return Told(stated, OBSERVED if stated.observed else STATED)
    report: f.Report | None = own.value("icebergScanReport") or own.value("icebergCommitReport")
    if report is not None and (reported := _reported(report.snapshot_id)) is not None:
        return reported
    version: f.Version | None = said.value("version")
    if version is not None and version.dataset_version:
        return Told(f.Snapshot(version.dataset_version), OBSERVED)
    return None


def _reported(snapshot_id: float | str | None) -> Told | None:
    if snapshot_id is None or (isinstance(snapshot_id, float) and abs(snapshot_id) >= BEYOND_IDS):
        return None
    lossy = isinstance(snapshot_id, float) and abs(snapshot_id) > EXACT_DOUBLE
    text = str(int(snapshot_id)) if isinstance(snapshot_id, float) else str(snapshot_id)
    return Told(f.Snapshot(text, "iceberg"), REPORTED, lossy)


def approximate(snapshot_id: str) -> float | None:
    """The double that a producer would write for this id; None where a double loses nothing.

    >>> approximate("4358109269898191234") == 4.3581092698981914e18, approximate("12")
    (True, None)
    """
    digits = snapshot_id.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) < 20):
        return None
    return float(int(snapshot_id)) if int(digits) > EXACT_DOUBLE else None


def _seen(under: Under, link: Link, told: Told) -> SnapshotSeen:
    one, written = told.snapshot, link.direction == SINK
    rank = min(told.rank, STATED if written else REPORTED)
    return SnapshotSeen(
        link.dataset_id,
        key_text(one.snapshot_id),
        _optional(one.parent_snapshot_id),
        one.barrier_id,
        under.generation if written else "",
        under.run_id if written else 0,
        micros(one.committed_at) if one.committed_at else None,
        clean(one.operation or ""),
        clean(one.format or ""),
        one.number_of_rows,
        approximate(one.snapshot_id),
        rank,
        under.stamp.at,
        under.stamp.hash,
    )


def _used(under: Under, link: Link, told: Told) -> SnapshotUsed:
    one, written = told.snapshot, link.direction == SINK
    at = under.stamp.at
    return SnapshotUsed(
        under.run_id,
        under.barrier or (one.barrier_id or 0 if written else 0),
        link.direction,
        link.dataset_id,
        key_text(one.snapshot_id),
        _optional(one.from_snapshot_id),
        under.generation,
        int(told.lossy),
        told.rank,
        at if written or told.rank > OBSERVED else -at,
        at,
        under.stamp.hash,
    )


def _optional(snapshot_id: str | None) -> str | None:
    return None if snapshot_id is None else key_text(snapshot_id)
