"""What runs have read without saying, as far as anybody knows, at which snapshot."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from functools import cache
from typing import Any

from sqlalchemy import Connection, Select, select

from strandline.core.changes.extraction import SOURCE
from strandline.store.lineage.hidden_nodes import seen_datasets
from strandline.store.schema.tables import datasets, relations, snapshot_uses
from strandline.store.sql.id_lists import among_given


def inputs_of_unknown_snapshots(
    connection: Connection, runs: Collection[int], moment: int | None = None
) -> Mapping[int, set[int]]:
    """By run the datasets, by their canonical ids, that it read (by `moment`) and of none of whose snapshots it told.

    What the connection's key does not see is not among them.
    """
    found: dict[int, set[int]] = defaultdict(set)
    rows = connection.execute(_unknown(), {"runs": list(runs)}).all() if runs else []
    seen = seen_datasets(connection, {row.canonical_id for row in rows})
    for run, dataset, first_at in rows:
        if dataset in seen and (moment is None or first_at <= moment):
            found[run].add(dataset)
    return found


@cache
def _unknown() -> Select[Any]:
    named = datasets.alias("named")
    uses = (
        select(snapshot_uses.c.run_id)
        .join(named, named.c.id == snapshot_uses.c.dataset_id)
        .where(
            snapshot_uses.c.run_id == relations.c.run_id,
            snapshot_uses.c.direction == SOURCE,
            named.c.canonical_id == datasets.c.canonical_id,
        )
    )
    return (
        select(relations.c.run_id, datasets.c.canonical_id, relations.c.first_at)
        .join(datasets, datasets.c.id == relations.c.dataset_id)
        .where(among_given(relations.c.run_id, "runs"), relations.c.direction == SOURCE, ~uses.exists())
    )
