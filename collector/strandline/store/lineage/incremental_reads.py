"""Incremental reads: one that says "after 1, up to 3" read snapshots 2 and 3.

So both fed what was made of it. The snapshots between are found by their parents, back from the
last one; a chain that is not known ends there.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection, Select, or_, select

from strandline.core.changes.extraction import SOURCE
from strandline.store.schema.dataset_tables import datasets
from strandline.store.schema.snapshot_tables import snapshot_uses, snapshots
from strandline.store.sql.id_lists import among

LONGEST = 1_000  # snapshots of one read
MOST_READS = 5_000  # of the datasets of one level


class Range(NamedTuple):
    """The range of a read: after a snapshot (exclusive), up to another (inclusive)."""

    dataset: int
    after: str
    last: str


def between(connection: Connection, ranges: Iterable[Range]) -> dict[Range, list[str]]:
    """The snapshots of each range but the last, going back from it."""
    snapshots: dict[Range, list[str]] = {range_: [] for range_ in ranges}
    heads = {range_: range_.last for range_ in snapshots}
    for _ in range(LONGEST):
        parents = (
            _parents(connection, {(range_.dataset, head) for range_, head in heads.items()})
            if heads
            else {}
        )
        heads = _stepped_back(heads, parents)
        if not heads:
            break
        for dataset_range, head in heads.items():
            snapshots[dataset_range].append(head)
    return snapshots


def _stepped_back(
    heads: Mapping[Range, str], parents: Mapping[tuple[int, str], str | None]
) -> dict[Range, str]:
    """The parents of the ranges' heads, where they are still within the range."""
    previous = {range_: parents.get((range_.dataset, head)) for range_, head in heads.items()}
    return {
        range_: parent
        for range_, parent in previous.items()
        if parent is not None and parent != range_.after
    }


def reading_across(
    connection: Connection, nodes: Sequence[tuple[int, str]]
) -> tuple[set[tuple[int, int]], bool]:
    """Return run and barrier of incremental reads that cover a snapshot without ending at it.

    The second value says whether these are all: only the newest 5,000 reads of the datasets are
    looked at, each 1,000 snapshots back.
    """
    wanted = set(nodes)
    reads = connection.execute(_reads_of_several({dataset for dataset, _ in wanted})).all()
    covered = between(connection, {Range(*row[2:]) for row in reads[:MOST_READS]})
    keys = {
        (row.run_id, row.barrier)
        for row in reads[:MOST_READS]
        if any((row.canonical_id, snapshot) in wanted for snapshot in covered[Range(*row[2:])])
    }
    return keys, len(reads) <= MOST_READS and all(
        len(snapshots) < LONGEST for snapshots in covered.values()
    )


def _reads_of_several(dataset_ids: Iterable[int]) -> Select[Any]:
    uses, named = snapshot_uses.c, snapshots.c
    return (
        select(
            uses.run_id,
            uses.barrier,
            datasets.c.canonical_id,
            uses.from_snapshot_id,
            uses.snapshot_id,
        )
        .join(datasets, datasets.c.id == uses.dataset_id)
        .outerjoin(
            snapshots,
            (named.dataset_id == uses.dataset_id) & (named.snapshot_id == uses.snapshot_id),
        )
        .where(
            among(datasets.c.canonical_id, dataset_ids),
            uses.direction == SOURCE,
            uses.from_snapshot_id.is_not(None),
            or_(named.parent_id.is_(None), named.parent_id != uses.from_snapshot_id),
        )
        .order_by(uses.at.desc())
        .limit(MOST_READS + 1)
    )


def _parents(connection: Connection, nodes: set[tuple[int, str]]) -> Mapping[tuple[int, str], str]:
    query = (
        select(datasets.c.canonical_id, snapshots.c.snapshot_id, snapshots.c.parent_id)
        .join(datasets, datasets.c.id == snapshots.c.dataset_id)
        .where(
            among(datasets.c.canonical_id, {dataset for dataset, _ in nodes}),
            among(snapshots.c.snapshot_id, {snapshot for _, snapshot in nodes}),
            snapshots.c.parent_id.is_not(None),
        )
    )
    return {(dataset, snapshot): parent for dataset, snapshot, parent in connection.execute(query)}
