"""The snapshots that a read covers besides the one that it names.

An incremental read that says "after 1, up to 3" read snapshots 2 and 3, so both fed what was made
of it. The snapshots between are found by their parents, back from the last one; a chain that is not
known ends there.

Some snapshots show the rows of an earlier one: compaction, VACUUM and a change of a table's
properties leave them. Who has read such a snapshot has read the earlier one's rows. That one is
found by parents, too.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection, Select, or_, select

from strandline.core.changes.extraction import SOURCE
from strandline.store.schema.dataset_tables import datasets
from strandline.store.schema.snapshot_tables import snapshot_uses, snapshots
from strandline.store.sql.id_lists import among

LONGEST_READ = 1_000  # snapshots
LONGEST_CHAIN = 20  # of snapshots that show the same rows
MOST = 5_000  # reads, or rewritten snapshots, of the datasets of one level

SAME_ROWS = frozenset(
    {
        *("replace", "compact"),  # Iceberg, Paimon
        *("optimize", "reorg", "cluster by", "vacuum start", "vacuum end"),  # Delta, in lower case
        *("add constraint", "drop constraint", "set tblproperties", "unset tblproperties"),
        *("add columns", "change column", "rename column"),
    }
)

At = tuple[int, str]  # canonical dataset, snapshot id


class Range(NamedTuple):
    """The range of a read: after a snapshot (exclusive), up to another (inclusive)."""

    dataset: int
    after: str
    last: str


def between(connection: Connection, ranges: Iterable[Range]) -> dict[Range, list[str]]:
    """The snapshots of each range but the last, going back from it."""
    snapshots: dict[Range, list[str]] = {range_: [] for range_ in ranges}
    heads = {range_: range_.last for range_ in snapshots}
    for _ in range(LONGEST_READ):
        rows = _rows(connection, {(range_.dataset, head) for range_, head in heads.items()})
        parents = {at: row.parent_id for at, row in rows.items()}
        heads = _stepped_back(heads, parents)
        if not heads:
            break
        for dataset_range, head in heads.items():
            snapshots[dataset_range].append(head)
    return snapshots


def _stepped_back(heads: Mapping[Range, str], parents: Mapping[At, str | None]) -> dict[Range, str]:
    """The parents of the ranges' heads, where they are still within the range."""
    previous = {range_: parents.get((range_.dataset, head)) for range_, head in heads.items()}
    return {
        range_: parent
        for range_, parent in previous.items()
        if parent is not None and parent != range_.after
    }


def reading_across(
    connection: Connection, nodes: Sequence[At]
) -> tuple[set[tuple[int, int]], bool]:
    """Return run and barrier of incremental reads that cover a snapshot without ending at it.

    The second value says whether these are all: only the newest 5,000 reads of the datasets are
    looked at, each 1,000 snapshots back.
    """
    wanted = set(nodes)
    reads = connection.execute(_reads_of_several({dataset for dataset, _ in wanted})).all()
    covered = between(connection, {Range(*row[2:]) for row in reads[:MOST]})
    keys = {
        (row.run_id, row.barrier)
        for row in reads[:MOST]
        if any((row.canonical_id, snapshot) in wanted for snapshot in covered[Range(*row[2:])])
    }
    return keys, len(reads) <= MOST and all(
        len(snapshots) < LONGEST_READ for snapshots in covered.values()
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
        .limit(MOST + 1)
    )


def origins(connection: Connection, wanted: Iterable[At]) -> Mapping[At, At]:
    """Of those that show the rows of an earlier snapshot, that one.

    Of one whose parents are not all known nothing is said.
    """
    origin_of: dict[At, At] = {}
    heads = {position: position for position in wanted}
    for _ in range(LONGEST_CHAIN):
        rows = _rows(connection, set(heads.values()))
        origin_of |= {
            one: head
            for one, head in heads.items()
            if one != head and head in rows and not _shows_parent(rows[head])
        }
        heads = {
            one: (head[0], rows[head].parent_id)
            for one, head in heads.items()
            if _shows_parent(rows.get(head))
        }
    return origin_of


def showing(connection: Connection, wanted: Collection[At]) -> tuple[set[At], bool]:
    """The later snapshots that show the rows of these, and whether these are all.

    Only the newest 5,000 of their kind are looked at.
    """
    later = (
        select(datasets.c.canonical_id, snapshots.c.snapshot_id)
        .join(datasets, datasets.c.id == snapshots.c.dataset_id)
        .where(
            among(datasets.c.canonical_id, {dataset for dataset, _ in wanted}),
            snapshots.c.operation.in_(SAME_ROWS),
        )
        .order_by(snapshots.c.at.desc())
        .limit(MOST + 1)
    )
    rows = connection.execute(later).all()
    shown = origins(connection, {(dataset, snapshot) for dataset, snapshot in rows[:MOST]})
    return {head for head, origin in shown.items() if origin in wanted}, len(rows) <= MOST


def tell_same_rows(connection: Connection, nodes: Mapping[At, dict[str, Any]]) -> None:
    """Show with each rewritten snapshot the earlier one whose rows it shows."""
    for at, (_, origin) in origins(connection, nodes).items():
        nodes[at]["sameRowsAs"] = origin


def _shows_parent(row: Any) -> bool:
    return row is not None and row.parent_id is not None and row.operation in SAME_ROWS


def _rows(connection: Connection, wanted: Collection[At]) -> dict[At, Any]:
    """Return the surest row of each of these snapshots, one with a parent if there is one."""
    query = (
        select(
            datasets.c.canonical_id,
            snapshots.c.snapshot_id,
            snapshots.c.operation,
            snapshots.c.parent_id,
        )
        .join(datasets, datasets.c.id == snapshots.c.dataset_id)
        .where(
            among(datasets.c.canonical_id, {dataset for dataset, _ in wanted}),
            among(snapshots.c.snapshot_id, {snapshot for _, snapshot in wanted}),
        )
        .order_by(snapshots.c.parent_id.is_not(None), snapshots.c.rank, snapshots.c.at)
    )
    rows = connection.execute(query) if wanted else ()
    return {(row.canonical_id, row.snapshot_id): row for row in rows}
