"""Which snapshots an event names: the best of what it holds about each dataset, and how sure that is.

Best first: the dataset's own snapshot facet; the standard `version` facet where Iceberg's scan or commit report holds the
same number rounded to a double; the `version` facet alone, which is only observed: stock listeners read it when somebody
else may have committed in between; the double alone, which is no id, but can be matched with the ids that the table has.
A version that the report contradicts is a snapshot of the table, but not the one that was read or made.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from strandline.core.changes.bundles import Link
from strandline.core.changes.extraction import SINK, Stamp
from strandline.core.changes.parse_cache import UsableFacets
from strandline.core.changes.rows import Change, SnapshotSeen, SnapshotUsed
from strandline.core.openlineage import facets as f
from strandline.core.openlineage.names import clean, key_text
from strandline.core.openlineage.times import micros

OBSERVED, REPORTED, STATED = 1, 2, 3  # ranks of snapshot_uses; of snapshots, a reader's own statement is REPORTED
EXACT_DOUBLE = 2**53
APPROXIMATELY = "~"
BEYOND_IDS = 2**63  # an id is a whole number of 64 bits, so no greater double was made of one


class SnapshotClaim(NamedTuple):
    """What one facet claims about a snapshot.

    lossy: its id came as a double, so only the first digits are sure. beside: another snapshot that the table has.
    """

    snapshot: f.Snapshot
    rank: int
    lossy: bool = False
    beside: str | None = None

    @property
    def is_version(self) -> bool:
        """Whether it is what a `version` facet alone says: a table's version at that moment, whoever made it."""
        return self.rank == OBSERVED and not self.snapshot.observed


class SnapshotContext(NamedTuple):
    """What all snapshots of one event share: its stamp, its run, and the generation and barrier (0: none) that it tells of.

    starts: it is the run's START.
    """

    stamp: Stamp
    run_id: int
    generation: str
    barrier: int
    starts: bool = False


def under(stamp: Stamp, run_id: int, barrier: f.Barrier | None, event_type: str | None) -> SnapshotContext:
    """The same for an event of this type with this committed barrier."""
    starts = event_type == "START"
    if barrier is None:
        return SnapshotContext(stamp, run_id, "", 0, starts)
    return SnapshotContext(stamp, run_id, key_text(barrier.query_id or ""), barrier.number or 0, starts)


def snapshots_of(under: SnapshotContext, found: Sequence[tuple[Link, SnapshotClaim]]) -> Iterable[Change]:
    """The snapshots that a run read or made of datasets, and that it did; each dataset with the best claim about it.

    A version that a table has when a statement starts was not made by it, and one that it has in the end was not read by
    it if it made that very one.
    """
    written_here = _written_by(under, found)
    for link, claim in found:
        written, snapshot = link.direction == SINK, (link.dataset_id, claim.snapshot.snapshot_id)
        used = not claim.is_version or (snapshot in written_here) == written
        if not claim.lossy and not link.elsewhere:  # else it is no id that a table has, or not the sender's to say
            yield _seen(under, link, claim, written=written and used)
        if claim.beside is not None and not link.elsewhere:
            yield _seen(under, link, SnapshotClaim(f.Snapshot(claim.beside), OBSERVED), written=False)
        if used:
            yield _used(under, link, claim)


def _written_by(under: SnapshotContext, found: Iterable[tuple[Link, SnapshotClaim]]) -> set[tuple[int, str]]:
    """(dataset, snapshot) of what the run wrote."""
    sinks = [(link.dataset_id, claim) for link, claim in found if link.direction == SINK]
    return {(id_, claim.snapshot.snapshot_id) for id_, claim in sinks if not (claim.is_version and under.starts)}


def claim_of(facets: UsableFacets, own: UsableFacets) -> SnapshotClaim | None:
    """The best claim about a dataset's snapshot: by its own facets, and by those that it has as input or output."""
    stated: f.Snapshot | None = own.value("strandline_snapshot") or facets.value("strandline_snapshot")
    if stated is not None:
        return SnapshotClaim(stated, OBSERVED if stated.observed else STATED)
    report: f.Report | None = own.value("icebergScanReport") or own.value("icebergCommitReport")
    version: f.Version | None = facets.value("version")
    return _best(_reported(report), version.dataset_version if version else "")


def _best(reported: SnapshotClaim | None, version: str) -> SnapshotClaim | None:
    """The best of a report and of the version beside it ('': none)."""
    if reported is None:
        return SnapshotClaim(f.Snapshot(version), OBSERVED) if version else None
    if version in ("", reported.snapshot.snapshot_id):
        return reported
    if reported.lossy and approximate(version) == float(reported.snapshot.snapshot_id):
        return reported._replace(snapshot=_iceberg(version, reported.snapshot.operation), lossy=False)
    return reported._replace(beside=version)


def _reported(report: f.Report | None) -> SnapshotClaim | None:
    """What a report names; a number beyond all ids is none."""
    id_ = None if report is None else report.snapshot_id
    if report is None or id_ is None or (isinstance(id_, float) and abs(id_) >= BEYOND_IDS):
        return None
    lossy = isinstance(id_, float) and abs(id_) > EXACT_DOUBLE
    text = str(int(id_)) if isinstance(id_, float) else str(id_)
    return SnapshotClaim(_iceberg(text, report.operation), REPORTED, lossy)


def _iceberg(snapshot_id: str, operation: str | None) -> f.Snapshot:
    return f.Snapshot(snapshot_id, "iceberg", operation=operation)


def approximate(snapshot_id: str) -> float | None:
    """The double that a producer would write for this id; None where a double loses nothing.

    >>> approximate("4358109269898191234") == 4.3581092698981914e18, approximate("12")
    (True, None)
    """
    digits = snapshot_id.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) < 20):
        return None
    return float(int(snapshot_id)) if int(digits) > EXACT_DOUBLE else None


def marked(double: str) -> str:
    """How answers show a snapshot of which only the double is known, so that nobody takes it for an id.

    >>> marked("5053019995305414656")
    '~5.053019995305415e+18'
    """
    return f"{APPROXIMATELY}{float(double)!r}"


def unmarked(snapshot_id: str) -> str | None:
    """The double of a snapshot that is shown so, as it was stored; None for an id.

    >>> unmarked("~5.053019995305415e+18"), unmarked("5053019995305414818"), unmarked("~x")
    ('5053019995305414656', None, None)
    """
    try:
        return str(int(float(snapshot_id[1:]))) if snapshot_id.startswith(APPROXIMATELY) else None
    except (ValueError, OverflowError):
        return None


def double_of(snapshot_id: str) -> str | None:
    """The double that a report would hold for this id, as it would be stored; None where a double loses nothing."""
    double = approximate(snapshot_id)
    return unmarked(snapshot_id) if double is None else str(int(double))


def _seen(under: SnapshotContext, link: Link, claim: SnapshotClaim, *, written: bool) -> SnapshotSeen:
    one = claim.snapshot
    rank = min(claim.rank, STATED if written else REPORTED)
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
        under.stamp.at,
    )


def _used(under: SnapshotContext, link: Link, claim: SnapshotClaim) -> SnapshotUsed:
    one, written = claim.snapshot, link.direction == SINK
    at = under.stamp.at
    return SnapshotUsed(
        under.run_id,
        under.barrier or (one.barrier_id or 0 if written else 0),
        link.direction,
        link.dataset_id,
        key_text(one.snapshot_id),
        _optional(one.from_snapshot_id),
        under.generation,
        int(claim.lossy),
        claim.rank,
        at if written or claim.rank > OBSERVED else -at,
        at,
        under.stamp.hash,
    )


def _optional(snapshot_id: str | None) -> str | None:
    return None if snapshot_id is None else key_text(snapshot_id)
