"""The snapshots that a table has, as far as events tell, and the newest of them.

A table may have been dropped and created anew under its name: the numbers of its snapshots begin
again. Delta counts the versions of a table from 0, and only its creation makes version 0. So where
a creation reports that one, a greater version that was reported only before is of another table,
which is gone. Iceberg's ids come never again.

Of approximate snapshots events hold only a double, which matches no id that the table has.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from functools import cache
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Select,
    TextClause,
    bindparam,
    func,
    or_,
    select,
    text,
    true,
    tuple_,
)

from strandline.core.changes.extraction import SINK
from strandline.core.changes.snapshot_claims import IN_MAIN
from strandline.core.changes.snapshots import marked
from strandline.core.openlineage.names import id_of
from strandline.core.openlineage.run_states import COMPLETE
from strandline.core.versions.facts import Table
from strandline.store.lineage.lookup import Node, ids_of_names
from strandline.store.lineage.run_state import iso
from strandline.store.schema.dataset_tables import datasets
from strandline.store.schema.relation_tables import relations
from strandline.store.schema.run_tables import runs
from strandline.store.schema.snapshot_tables import snapshot_uses, snapshots
from strandline.store.schema.snapshot_views import snapshot_lineage_from
from strandline.store.sql.each import snapshots_of_each
from strandline.store.sql.id_lists import among, among_given
from strandline.store.sql.pages import Key, Order, Page

At = tuple[int, str]  # canonical dataset, snapshot id

FIRST = "0"
BEFORE_ALL = -(2**63)

# Nobody sees a snapshot before it is there.
seen_at = func.coalesce(snapshots.c.committed_at, snapshots.c.first_at)


def newest_ids_of(dataset: Node, moment: int | None) -> Select[str, int]:
    """Ids of its newest snapshots, main's before others, and when each was first seen.

    Each once, though two names tell of it.
    """
    latest = func.min(seen_at)
    return (
        select(snapshots.c.snapshot_id, latest)
        .join(datasets, datasets.c.id == snapshots.c.dataset_id)
        .where(datasets.c.canonical_id == dataset.id)
        .group_by(snapshots.c.snapshot_id)
        .having(*([] if moment is None else [latest <= moment]))
        .order_by(
            func.coalesce(func.min(snapshots.c.aside), IN_MAIN),
            latest.desc(),
            snapshots.c.snapshot_id.desc(),
        )
        .limit(10)
    )


def snapshots_of(connection: Connection, dataset: Node, limit: int, after: Key | None) -> Page:
    """The known snapshots of a dataset, the newest first."""
    return Order((seen_at, snapshots.c.snapshot_id), descending=True).page(
        connection,
        _best().where(datasets.c.canonical_id == dataset.id, of_this_table(connection, dataset)),
        limit,
        after,
    )


def of_this_table(connection: Connection, dataset: Node) -> ColumnElement[bool]:
    """Return the condition that a row of `snapshots` is of the dataset's table of now."""
    return is_of_this_table(
        connection, select(datasets.c.id).where(datasets.c.canonical_id == dataset.id)
    )


def _best() -> Select[Any]:
    """Snapshots under any name of their dataset; of one that two names tell of, what is surest."""
    other, alias = snapshots.alias("other"), datasets.alias("alias")
    better = (
        select(other.c.snapshot_id)
        .join(alias, alias.c.id == other.c.dataset_id)
        .where(
            alias.c.canonical_id == datasets.c.canonical_id,
            other.c.snapshot_id == snapshots.c.snapshot_id,
            tuple_(other.c.rank, other.c.at, other.c.dataset_id)
            > tuple_(snapshots.c.rank, snapshots.c.at, snapshots.c.dataset_id),
        )
    )
    return (
        select(snapshots, datasets.c.canonical_id)
        .join(datasets, datasets.c.id == snapshots.c.dataset_id)
        .where(~better.exists())
    )


def snapshot_rows(connection: Connection, nodes: Iterable[At]) -> dict[At, Any]:
    """Return the row of each of these snapshots that has one."""
    wanted = list(nodes)
    query = _best().where(
        among(datasets.c.canonical_id, {dataset for dataset, _ in wanted}),
        among(snapshots.c.snapshot_id, {snapshot for _, snapshot in wanted}),
    )
    return {(row.canonical_id, row.snapshot_id): row for row in connection.execute(query)}


def snapshot_answer(row: Any) -> dict[str, Any]:
    """A snapshot as JSON shows it."""
    return {
        "snapshotId": row.snapshot_id,
        "parentSnapshotId": row.parent_id,
        "barrierId": row.barrier,
        "committedAt": iso(row.committed_at),
        "operation": row.operation or None,
        "format": row.format or None,
        "numberOfRows": row.row_count,
        "observed": row.rank == 1,
    }


def is_of_this_table(connection: Connection, names: Select[int]) -> ColumnElement[bool]:
    """Return the condition that a row of `snapshots` is of the table that has these names now."""
    since = connection.scalar(_created_at(names))
    if since is None:
        return true()
    return or_(snapshots.c.at >= since, snapshots.c.snapshot_id == FIRST)


def created_at(connection: Connection, table: tuple[str, str]) -> int | None:
    """Return since when a table, under any of its names, is the present one.

    None where that is not known.
    """
    return connection.scalar(_created_at(ids_of_names(table)))


def _created_at(names: Select[int]) -> Select[int]:
    """Return when a creation reported version 0 last."""
    born, creating = snapshot_uses, relations
    same = (
        creating.c.run_id == born.c.run_id,
        creating.c.direction == born.c.direction,
        creating.c.dataset_id == born.c.dataset_id,
    )
    return (
        select(func.max(born.c.at))
        .join(creating, same[0] & same[1] & same[2])
        .join(runs, runs.c.id == born.c.run_id)
        .where(born.c.dataset_id.in_(names), born.c.snapshot_id == FIRST, born.c.direction == SINK)
        .where(creating.c.creates == 1, runs.c.state == COMPLETE, runs.c.streaming == 0)
    )


_OF_DATASET = (
    "SELECT * FROM snapshot_uses WHERE lossy = 1 AND dataset_id IN (SELECT id FROM datasets "
    "WHERE canonical_id = :id)"
)


def approximate_ids(connection: Connection, dataset_id: int) -> set[str]:
    """Return the doubles, as stored, that runs read or made of a canonical dataset.

    Only those that match none of its ids.
    """
    rows = connection.execute(_unmatched(), {"id": dataset_id, "since": BEFORE_ALL})
    return {row.approximate_id for row in rows}


def newest_approximate(
    connection: Connection, dataset_id: int, since: int = BEFORE_ALL, until: int | None = None
) -> str | None:
    """Return the newest approximate snapshot after a moment, made by another, as answers show it.

    None if none was.
    """
    rows = connection.execute(_unmatched(), {"id": dataset_id, "since": since})
    by_then = [row for row in rows if row.direction == SINK and (until is None or row.at <= until)]
    written = [(row.at, row.approximate_id) for row in by_then]
    return marked(max(written)[1]) if written else None


def newer_approximate(connection: Connection, table: Table, snapshot_id: str) -> str | None:
    """The newest such snapshot that was made after a known one of the table; None if none was."""
    canonical = select(datasets.c.canonical_id).where(datasets.c.id == id_of("dataset", *table))
    is_snapshot = snapshots.c.dataset_id.in_(ids_of_names(table)) & (
        snapshots.c.snapshot_id == snapshot_id
    )
    since = connection.scalar(select(func.min(snapshots.c.first_at)).where(is_snapshot))
    dataset_id = connection.scalar(canonical)
    return (
        None
        if dataset_id is None or since is None
        else newest_approximate(connection, dataset_id, since)
    )


@cache
def _unmatched() -> TextClause:
    uses = snapshot_lineage_from(_OF_DATASET)
    query = (
        f"SELECT direction, approximate_id, at FROM ({uses}) "
        "AS used WHERE approximate_id IS NOT NULL AND at > :since"
    )
    return text(query).bindparams(
        bindparam("id", type_=BigInteger), bindparam("since", type_=BigInteger)
    )


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
