"""Snapshots that show the rows of an earlier one.

Compaction, VACUUM and a change of a table's properties leave them. Who has read such a snapshot has
read the earlier one's rows. That one is found by parents, as far as events name them.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from sqlalchemy import Connection, Select, select

from strandline.store.schema.dataset_tables import datasets
from strandline.store.schema.snapshot_tables import snapshots
from strandline.store.sql.id_lists import among

SAME_ROWS = frozenset(
    {
        *("replace", "compact"),  # Iceberg, Paimon
        *("optimize", "reorg", "cluster by", "vacuum start", "vacuum end"),  # Delta, in lower case
        *("add constraint", "drop constraint", "set tblproperties", "unset tblproperties"),
        *("add columns", "change column", "rename column"),
    }
)
LONGEST = 20  # of them in a row
MOST = 5_000  # of the datasets of one level

At = tuple[int, str]  # canonical dataset, snapshot id


def origins(connection: Connection, wanted: Iterable[At]) -> Mapping[At, At]:
    """Of those that show the rows of an earlier snapshot, that one.

    Of one whose parents are not all known nothing is said.
    """
    origin_of: dict[At, At] = {}
    heads = {position: position for position in wanted}
    for _ in range(LONGEST):
        rows = _described(connection, set(heads.values())) if heads else {}
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


def _described(connection: Connection, wanted: Collection[At]) -> dict[At, Any]:
    rows = connection.execute(
        _rows_of({dataset for dataset, _ in wanted}, {snapshot for _, snapshot in wanted})
    )
    return {(row.canonical_id, row.snapshot_id): row for row in rows}


def _rows_of(tables: Collection[int], ids: Collection[str]) -> Select[Any]:
    """The surest of each last."""
    return (
        select(
            datasets.c.canonical_id,
            snapshots.c.snapshot_id,
            snapshots.c.operation,
            snapshots.c.parent_id,
        )
        .join(datasets, datasets.c.id == snapshots.c.dataset_id)
        .where(among(datasets.c.canonical_id, tables), among(snapshots.c.snapshot_id, ids))
        .order_by(snapshots.c.rank, snapshots.c.at)
    )
