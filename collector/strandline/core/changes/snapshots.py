"""The snapshots that an event names as rows.

Those that a run read or made, each by the best claim about it.

`snapshot_claims` says which claim is the best, and how sure it is.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from strandline.core.changes.bundles import Link
from strandline.core.changes.extraction import SINK, Stamp
from strandline.core.changes.rows import Change, SnapshotSeen, SnapshotUsed
from strandline.core.changes.snapshot_claims import (
    OBSERVED,
    REPORTED,
    STATED,
    SnapshotClaim,
    approximate,
    aside_of,
)
from strandline.core.openlineage import facets as f
from strandline.core.openlineage.names import clean, key_text
from strandline.core.openlineage.times import micros

APPROXIMATELY = "~"


class SnapshotContext(NamedTuple):
    """What all snapshots of one event share: its stamp, its run, and the query_id and barrier (0.

    None) that it tells of.

    starts: it is the run's START.
    """

    stamp: Stamp
    run_id: int
    query_id: str
    barrier: int
    starts: bool = False


def under(
    stamp: Stamp, run_id: int, barrier: f.Barrier | None, event_type: str | None
) -> SnapshotContext:
    """The same for an event of this type with this committed barrier."""
    starts = event_type == "START"
    if barrier is None:
        return SnapshotContext(stamp, run_id, "", 0, starts)
    return SnapshotContext(
        stamp, run_id, key_text(barrier.query_id or ""), barrier.number or 0, starts
    )


def snapshots_of(
    under: SnapshotContext, found: Sequence[tuple[Link, SnapshotClaim]]
) -> Iterable[Change]:
    """The snapshots that a run read or made of datasets, and that it did.

    Each dataset with the best claim about it.

    A version that a table has when a statement starts was not made by it, and one that was only
    observed was not read by it if it made that very one.
    """
    written_here = _written_by(under, found)
    for link, claim in found:
        written, snapshot = link.direction == SINK, (link.dataset.id, claim.snapshot.snapshot_id)
        used = not claim.before and (claim.rank > OBSERVED or (snapshot in written_here) == written)
        if (
            not claim.lossy and not link.elsewhere
        ):  # else it is no id that a table has, or not the sender's to say
            yield _seen(under, link, claim, written=written and used)
        if claim.beside is not None and not link.elsewhere:
            yield _seen(
                under, link, SnapshotClaim(f.Snapshot(claim.beside), OBSERVED), written=False
            )
        if used:
            yield _used(under, link, claim)
        yield from _others(under, link, claim)
        yield from _before(under, link, claim)


def _others(under: SnapshotContext, link: Link, claim: SnapshotClaim) -> Iterable[Change]:
    """Yield the further snapshots of the table that the same run read, or made.

    Of several commits of one micro-batch the last one alone carries its barrier.
    """
    if link.direction == SINK:
        under = under._replace(barrier=0)
    for one in () if link.elsewhere else claim.snapshot.others or ():
        beside = claim._replace(snapshot=one)
        yield _seen(under, link, beside, written=link.direction == SINK)
        yield _used(under, link, beside)
        yield from _before(under, link, beside)


def _before(under: SnapshotContext, link: Link, claim: SnapshotClaim) -> Iterable[Change]:
    """Earlier snapshots of the table, of which the one that was read shows the rows."""
    for one in (
        () if link.elsewhere or link.direction == SINK else claim.snapshot.same_rows_as or ()
    ):
        yield _seen(under, link, claim._replace(snapshot=one), written=False)


def _written_by(
    under: SnapshotContext, found: Iterable[tuple[Link, SnapshotClaim]]
) -> set[tuple[int, str]]:
    """(dataset, snapshot) of what the run wrote."""
    sinks = [(link.dataset.id, claim) for link, claim in found if link.direction == SINK]
    own = [
        (id_, one) for id_, one in sinks if not one.before and not (one.is_version and under.starts)
    ]
    return {(id_, one.snapshot.snapshot_id) for id_, one in own}


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
    """The double that a report would hold for this id, as it would be stored.

    None where a double loses nothing.
    """
    double = approximate(snapshot_id)
    return unmarked(snapshot_id) if double is None else str(int(double))


def _seen(
    under: SnapshotContext, link: Link, claim: SnapshotClaim, *, written: bool
) -> SnapshotSeen:
    one = claim.snapshot
    rank = min(claim.rank, STATED if written else REPORTED)
    return SnapshotSeen(
        link.dataset.id,
        key_text(one.snapshot_id),
        _optional(one.parent_snapshot_id),
        one.barrier_id,
        "",  # no question asks for it: the run's use of the snapshot has it
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
        aside_of(one),
    )


def _used(under: SnapshotContext, link: Link, claim: SnapshotClaim) -> SnapshotUsed:
    one, written = claim.snapshot, link.direction == SINK
    at = under.stamp.at
    return SnapshotUsed(
        under.run_id,
        under.barrier or (one.barrier_id or 0 if written else 0),
        link.direction,
        link.dataset.id,
        key_text(one.snapshot_id),
        _optional(one.from_snapshot_id),
        under.query_id,
        int(claim.lossy),
        claim.rank,
        at if written or claim.rank > OBSERVED else -at,
        at,
        under.stamp.hash,
    )


def _optional(snapshot_id: str | None) -> str | None:
    return None if snapshot_id is None else key_text(snapshot_id)
