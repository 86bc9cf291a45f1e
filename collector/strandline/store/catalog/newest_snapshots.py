"""The newest snapshot of datasets: the last commit, and the rows after it."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from functools import cache
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, func, select

from strandline.core.changes.snapshot_claims import IN_MAIN
from strandline.store.lineage.run_state import iso
from strandline.store.schema.dataset_tables import datasets
from strandline.store.schema.snapshot_tables import snapshots
from strandline.store.sql.each import snapshots_of_each
from strandline.store.sql.id_lists import among_given

Answer = dict[str, Any]

# A few of each dataset, because the newest by its time may be the parent of another: clocks differ.
_FEW = 3
_COMMITTED = (snapshots.c.committed_at.is_not(None),)
_WRITTEN = (snapshots.c.committed_at.is_(None), snapshots.c.run_id != 0)
_ONLY_READ = (snapshots.c.committed_at.is_(None), snapshots.c.run_id == 0)


def newest_snapshots(connection: Connection, ids: Sequence[int]) -> dict[int, Answer]:
    """Return the newest snapshot of each of these canonical datasets, as lists show it.

    Those without a snapshot are left out.
    """
    rows = newest_snapshot_rows(connection, ids)
    return {dataset: _answer(row) for dataset, row in rows.items()}


def newest_snapshot_rows(connection: Connection, ids: Sequence[int]) -> dict[int, Any]:
    """Return the row of the newest snapshot of each of these canonical datasets that has one.

    Snapshots that an event places on another branch do not count. One that only reads report may be
    old: their time says nothing about its commit. So it counts where nothing better is known.
    """
    committed = _newest_where(connection.dialect.name, _COMMITTED)
    written = _newest_where(connection.dialect.name, _WRITTEN)
    rows_of: dict[int, list[Any]] = defaultdict(list)
    for query in (committed, written):
        for row in connection.execute(query, {"ids": list(ids)}):
            rows_of[row.canonical_id].append(row)
    others = [dataset for dataset in ids if dataset not in rows_of]
    if others:
        only_read = _newest_where(connection.dialect.name, _ONLY_READ)
        for row in connection.execute(only_read, {"ids": others}):
            rows_of[row.canonical_id].append(row)
    return {dataset: _newest(rows) for dataset, rows in rows_of.items()}


@cache
def _newest_where(dialect: str, conditions: tuple[ColumnElement[bool], ...]) -> Select[Any]:
    newest = (
        select(snapshots)
        .where(
            snapshots.c.dataset_id == datasets.c.id,
            func.coalesce(snapshots.c.aside, IN_MAIN) == IN_MAIN,
            *conditions,
        )
        .order_by(snapshots.c.committed_at.desc(), snapshots.c.first_at.desc())
        .limit(_FEW)
    )
    of_dataset, joined = snapshots_of_each(dialect, newest)
    return (
        select(datasets.c.canonical_id, *of_dataset.c)
        .select_from(joined)
        .where(among_given(datasets.c.canonical_id, "ids"))
    )


def _newest(rows: Sequence[Any]) -> Any:
    parents = {row.parent_id for row in rows}
    return max(rows, key=lambda row: _standing(row, parents))


def _standing(row: Any, parents: Collection[str | None]) -> tuple[Any, ...]:
    """Return the standing of a snapshot: the greatest is the newest."""
    written_at = row.first_at if row.committed_at is None else row.committed_at
    return row.snapshot_id not in parents, written_at, row.first_at, row.snapshot_id, row.rank


def _answer(row: Any) -> Answer:
    return {
        "snapshotId": row.snapshot_id,
        "barrierId": row.barrier,
        "committedAt": iso(row.committed_at),
        "numberOfRows": row.row_count,
    }
