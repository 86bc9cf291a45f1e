"""Snapshots that a run read or made as rows, each by the best claim about it.

`snapshot_claims` decides which claim is the best, and how sure it is.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from strandline.core.changes.datasets import DatasetUse
from strandline.core.changes.extraction import SINK, Stamp
from strandline.core.changes.rows import SnapshotSeen, SnapshotUsed
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
# snapshot_uses.flags
REPLACES, COMPLETES, SKIPPED_CHANGES, NOT_THE_LAST, WAS_EMPTY = 1, 2, 4, 8, 16
MAKES_ANEW = {  # Delta's operations that leave nothing of what the table held
    "CREATE TABLE AS SELECT",
    "REPLACE TABLE AS SELECT",
    "CREATE OR REPLACE TABLE AS SELECT",
}

ClaimedUse = tuple[DatasetUse, SnapshotClaim]


class SnapshotContext(NamedTuple):
    """The values that all snapshots of one event share.

    query_id, barrier: of the barrier that the event committed, '' and 0 without one. starts: the
    event is its run's START.
    """

    stamp: Stamp
    run_id: int
    query_id: str
    barrier: int
    starts: bool


def snapshots_of(
    context: SnapshotContext, claims: Sequence[ClaimedUse]
) -> Iterator[SnapshotSeen | SnapshotUsed]:
    """Yield the snapshots of datasets that a run read or made, and that it did.

    A statement did not make a version that the table had when it started. Nor did it read a version
    that it only observed and made itself.
    """
    written_here = _written_by(context, claims)
    for use, claim in claims:
        is_sink, snapshot = use.direction == SINK, (use.dataset.id, claim.snapshot.snapshot_id)
        is_sure = claim.rank > OBSERVED
        is_used = not claim.before and (is_sure or (snapshot in written_here) == is_sink)
        # A lossy id is none that a table has, and of a dataset elsewhere the sender has no say.
        if not claim.lossy and not use.elsewhere:
            yield _seen(context, use, claim, written=is_sink and is_used)
        if claim.beside is not None and not use.elsewhere:
            beside = SnapshotClaim(f.Snapshot(claim.beside), OBSERVED)
            yield _seen(context, use, beside, written=False)
        if is_used:
            yield _used(context, use, claim)
        if not use.elsewhere:
            yield from _others(context, use, claim)


def _others(
    context: SnapshotContext, use: DatasetUse, claim: SnapshotClaim
) -> Iterator[SnapshotSeen | SnapshotUsed]:
    """Yield the further snapshots that the run read or made, and earlier ones with the same rows.

    Several commits of one micro-batch have the same sources, but only the last one shows all
    that the micro-batch wrote: the others are marked.
    """
    is_sink = use.direction == SINK
    for snapshot in claim.snapshot.others or ():
        other = claim._replace(snapshot=snapshot)
        yield _seen(context, use, other, written=is_sink)
        used = _used(context, use, other)
        yield used._replace(flags=used.flags | NOT_THE_LAST) if is_sink and used.barrier else used
        if not is_sink:
            yield from _with_same_rows(context, use, other)
    if not is_sink:
        yield from _with_same_rows(context, use, claim)


def _with_same_rows(
    context: SnapshotContext, use: DatasetUse, claim: SnapshotClaim
) -> Iterator[SnapshotSeen]:
    for snapshot in claim.snapshot.same_rows_as or ():
        yield _seen(context, use, claim._replace(snapshot=snapshot), written=False)


def _written_by(context: SnapshotContext, claims: Iterable[ClaimedUse]) -> set[tuple[int, str]]:
    """Return (dataset, snapshot) of what the run wrote."""
    written = set()
    for use, claim in claims:
        was_there = claim.before or (claim.is_version and context.starts)
        if use.direction == SINK and not was_there:
            written.add((use.dataset.id, claim.snapshot.snapshot_id))
    return written


def marked(double: str) -> str:
    """Return how answers show a snapshot of which only the double is known: not as an id.

    >>> marked("5053019995305414656")
    '~5.053019995305415e+18'
    """
    return f"{APPROXIMATELY}{float(double)!r}"


def unmarked(snapshot_id: str) -> str | None:
    """Return the double of a snapshot that is shown so, as it was stored; None for an id.

    >>> unmarked("~5.053019995305415e+18"), unmarked("5053019995305414818"), unmarked("~x")
    ('5053019995305414656', None, None)
    """
    try:
        return str(int(float(snapshot_id[1:]))) if snapshot_id.startswith(APPROXIMATELY) else None
    except (ValueError, OverflowError):
        return None


def double_of(snapshot_id: str) -> str | None:
    """Return the double that a report would hold for this id, as it would be stored.

    None where a double loses nothing.
    """
    double = approximate(snapshot_id)
    return unmarked(snapshot_id) if double is None else str(int(double))


def _seen(
    context: SnapshotContext, use: DatasetUse, claim: SnapshotClaim, *, written: bool
) -> SnapshotSeen:
    snapshot, stamp = claim.snapshot, context.stamp
    return SnapshotSeen(
        dataset_id=use.dataset.id,
        snapshot_id=key_text(snapshot.snapshot_id),
        parent_id=_optional(snapshot.parent_snapshot_id),
        barrier=snapshot.barrier_id,
        run_id=context.run_id if written else 0,
        committed_at=micros(snapshot.committed_at) if snapshot.committed_at else None,
        operation=clean(snapshot.operation or ""),
        format=clean(snapshot.format or ""),
        row_count=snapshot.number_of_rows,
        approximate=approximate(snapshot.snapshot_id),
        rank=min(claim.rank, STATED if written else REPORTED),
        at=stamp.at,
        hash=stamp.hash,
        first_at=stamp.at,
        aside=aside_of(snapshot),
    )


def _used(context: SnapshotContext, use: DatasetUse, claim: SnapshotClaim) -> SnapshotUsed:
    snapshot, at, written = claim.snapshot, context.stamp.at, use.direction == SINK
    own_barrier = snapshot.barrier_id or 0 if written else 0
    is_newest_best = written or claim.rank > OBSERVED  # of observed reads the first counts
    return SnapshotUsed(
        run_id=context.run_id,
        barrier=context.barrier or own_barrier,
        direction=use.direction,
        dataset_id=use.dataset.id,
        snapshot_id=key_text(snapshot.snapshot_id),
        from_snapshot_id=_optional(snapshot.from_snapshot_id),
        query_id=context.query_id,
        lossy=int(claim.lossy),
        rank=claim.rank,
        order_at=at if is_newest_best else -at,
        at=at,
        hash=context.stamp.hash,
        flags=flags_of(snapshot),
    )


def flags_of(snapshot: f.Snapshot) -> int:
    """Return the facet's statements about a commit or a read, as one number.

    >>> flags_of(f.Snapshot("1", replaces_table=True, completes=True))
    3
    """
    makes_anew = (snapshot.operation or "").upper() in MAKES_ANEW
    replaces = REPLACES if snapshot.replaces_table or makes_anew else 0
    completes = COMPLETES if snapshot.completes else 0
    skipped = SKIPPED_CHANGES if snapshot.skipped_changes else 0
    was_empty = WAS_EMPTY if snapshot.was_empty else 0
    return replaces | completes | skipped | was_empty


def _optional(snapshot_id: str | None) -> str | None:
    return None if snapshot_id is None else key_text(snapshot_id)
