"""The newest snapshot of each dataset of a list: the last commit, and the rows after it."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, func, select

from strandline.core.changes.snapshot_claims import IN_MAIN
from strandline.store.lineage.run_state import iso
from strandline.store.schema.dataset_tables import datasets
from strandline.store.schema.snapshot_tables import snapshots
from strandline.store.sql.id_lists import among

Answer = dict[str, Any]


def newest_snapshots(connection: Connection, ids: Sequence[int]) -> dict[int, Answer]:
    """Return the newest snapshot of each of these canonical datasets that has one.

    Snapshots that an event places on another branch do not count.
    """
    seen_at = func.coalesce(snapshots.c.committed_at, snapshots.c.first_at)
    of_dataset = datasets.join(snapshots, snapshots.c.dataset_id == datasets.c.id)
    is_counted = (
        among(datasets.c.canonical_id, ids),
        func.coalesce(snapshots.c.aside, IN_MAIN) == IN_MAIN,
    )
    newest = (
        select(datasets.c.canonical_id, func.max(seen_at).label("at"))
        .select_from(of_dataset)
        .where(*is_counted)
        .group_by(datasets.c.canonical_id)
        .subquery("newest")
    )
    query = (
        select(
            datasets.c.canonical_id,
            snapshots.c.snapshot_id,
            snapshots.c.barrier,
            snapshots.c.committed_at,
            snapshots.c.row_count,
        )
        .select_from(of_dataset)
        .join(
            newest,
            (newest.c.canonical_id == datasets.c.canonical_id) & (newest.c.at == seen_at),
        )
        .where(*is_counted)
        .order_by(snapshots.c.first_at, snapshots.c.snapshot_id, snapshots.c.rank)
    )
    return {row.canonical_id: _answer(row) for row in connection.execute(query)}


def _answer(row: Any) -> Answer:
    return {
        "snapshotId": row.snapshot_id,
        "barrierId": row.barrier,
        "committedAt": iso(row.committed_at),
        "numberOfRows": row.row_count,
    }
