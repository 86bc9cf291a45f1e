"""The inputs of runs whose snapshot nobody knows."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from functools import cache
from typing import Any

from sqlalchemy import Connection, Select, select

from strandline.core.changes.extraction import SOURCE
from strandline.core.openlineage.names import id_of
from strandline.core.versions.facts import Table
from strandline.store.lineage.hidden_nodes import seen_datasets
from strandline.store.schema.dataset_tables import datasets
from strandline.store.schema.relation_tables import relations
from strandline.store.schema.snapshot_tables import snapshot_uses, snapshots
from strandline.store.sql.id_lists import among, among_given


def inputs_of_unknown_snapshots(
    connection: Connection, runs: Collection[int], moment: int | None = None
) -> Mapping[int, set[int]]:
    """Map each run to the datasets that it read (by `moment`) without reporting a snapshot.

    Datasets by their canonical ids. What the connection's key does not see is not among them.
    """
    inputs: dict[int, set[int]] = defaultdict(set)
    rows = connection.execute(_unknown(), {"runs": list(runs)}).all() if runs else []
    visible = seen_datasets(connection, {row.canonical_id for row in rows})
    for run, dataset, first_at in rows:
        if dataset in visible and (moment is None or first_at <= moment):
            inputs[run].add(dataset)
    return inputs


def reading_other_tables_unknown(
    connection: Connection, runs: Collection[int], table: Table
) -> set[int]:
    """Those of the runs that read another dataset with snapshots, of none of which they told."""
    unknown = inputs_of_unknown_snapshots(connection, runs)
    wanted = {dataset for ids in unknown.values() for dataset in ids}
    own = (
        select(datasets.c.canonical_id)
        .where(datasets.c.id == id_of("dataset", *table))
        .scalar_subquery()
    )
    held = (
        select(datasets.c.canonical_id)
        .distinct()
        .join(snapshots, snapshots.c.dataset_id == datasets.c.id)
        .where(among(datasets.c.canonical_id, wanted), datasets.c.canonical_id != own)
    )
    with_snapshots = set(connection.scalars(held)) if wanted else set()
    return {run for run, ids in unknown.items() if ids & with_snapshots}


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
        .where(
            among_given(relations.c.run_id, "runs"), relations.c.direction == SOURCE, ~uses.exists()
        )
    )
