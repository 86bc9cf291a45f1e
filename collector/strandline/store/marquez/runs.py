"""Runs with their states, their jobs, and which versions of datasets they read and made."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, and_, select

from strandline.core.changes.extraction import SINK, SOURCE, relation_id_of
from strandline.core.changes.snapshots import NOT_THE_LAST
from strandline.store.catalog.writes import Read, begun_at, last_writers
from strandline.store.schema.dataset_tables import datasets
from strandline.store.schema.relation_tables import relations
from strandline.store.schema.run_tables import runs
from strandline.store.schema.snapshot_tables import snapshot_uses
from strandline.store.sql.id_lists import among


class RunDataset(NamedTuple):
    """A dataset that a run read or wrote, and the version of it as far as it is known.

    `uses` are the ids under which its input or output facets are stored.
    """

    direction: int
    namespace: str
    name: str
    version: UUID | None
    uses: tuple[int, ...]


def version_id(dataset: int, snapshot: str, run: int) -> UUID:
    """The id of a dataset's version.

    Of its snapshot, or where it has none of the run that wrote it.
    """
    what = f"snapshot {snapshot}" if snapshot else f"run {run}"
    return UUID(bytes=blake2b(f"{dataset} {what}".encode(), digest_size=16).digest(), version=5)


def touched_by_runs(connection: Connection, rows: Sequence[Any]) -> dict[int, list[RunDataset]]:
    """Return the inputs and outputs of each of these runs, by name.

    What was read without a snapshot has the version that was last written before the run began.
    """
    relations_of_runs = _relations_of(connection, [row.id for row in rows])
    stated = _snapshots_of(connection, [row.id for row in rows])
    reads = []
    for row in rows:
        begun = begun_at(row)
        for direction, dataset in relations_of_runs.get(row.id, ()):
            is_stated = (row.id, direction, dataset) in stated
            if direction == SOURCE and begun is not None and not is_stated:
                reads.append(Read(row.id, dataset, begun))
    writers = last_writers(connection, reads)
    made = _snapshots_of(connection, set(writers.values()))
    datasets_of: dict[int, list[RunDataset]] = defaultdict(list)
    for run, of_run in relations_of_runs.items():
        for (direction, dataset), named in of_run.items():
            snapshot = stated.get((run, direction, dataset), "")
            writer: int | None = run
            if direction == SOURCE and not snapshot:
                writer = writers.get((run, dataset))
                snapshot = made.get((writer, SINK, dataset), "") if writer is not None else ""
            version = None if writer is None else version_id(dataset, snapshot, writer)
            uses = tuple(relation_id_of(run, direction, row.dataset_id) for row in named)
            name = named[0]
            datasets_of[run].append(RunDataset(direction, name.namespace, name.name, version, uses))
    return datasets_of


def _relations_of(
    connection: Connection, run_ids: Iterable[int]
) -> dict[int, dict[tuple[int, int], list[Any]]]:
    """Return the relations of each run by (direction, dataset), in the order of their names."""
    canonical = datasets.alias("canonical")
    query = (
        select(
            relations.c.run_id,
            relations.c.direction,
            relations.c.dataset_id,
            canonical.c.id,
            canonical.c.namespace,
            canonical.c.name,
        )
        .distinct()
        .join(datasets, datasets.c.id == relations.c.dataset_id)
        .join(canonical, canonical.c.id == datasets.c.canonical_id)
        .where(among(relations.c.run_id, run_ids))
        .order_by(canonical.c.namespace, canonical.c.name)
    )
    by_run: dict[int, dict[tuple[int, int], list[Any]]] = {}
    for row in connection.execute(query):
        of_run = by_run.setdefault(row.run_id, {})
        of_run.setdefault((row.direction, row.id), []).append(row)
    return by_run


def _snapshots_of(connection: Connection, ids: Collection[int]) -> dict[tuple[int, int, int], str]:
    """The last exact snapshot that each run read or made of each dataset."""
    is_earlier = snapshot_uses.c.flags.bitwise_and(NOT_THE_LAST)
    query = (
        select(
            snapshot_uses.c.run_id,
            snapshot_uses.c.direction,
            datasets.c.canonical_id,
            snapshot_uses.c.snapshot_id,
        )
        .join(datasets, datasets.c.id == snapshot_uses.c.dataset_id)
        .where(among(snapshot_uses.c.run_id, ids), snapshot_uses.c.lossy == 0)
        .order_by(snapshot_uses.c.rank, snapshot_uses.c.order_at, is_earlier.desc())
    )
    return {
        (row.run_id, row.direction, row.canonical_id): row.snapshot_id
        for row in connection.execute(query)
    }


def stated_ends(connection: Connection, run: int) -> list[Any]:
    """Return the datasets that a run read and wrote, or else those that its job declared.

    Each is (id, direction, namespace, name), as events named it.
    """
    for owner in (runs.c.id == run, _declared(run)):
        query = (
            select(datasets.c.id, relations.c.direction, datasets.c.namespace, datasets.c.name)
            .join(relations, relations.c.dataset_id == datasets.c.id)
            .join(runs, runs.c.id == relations.c.run_id)
            .where(owner)
            .order_by(datasets.c.namespace, datasets.c.name)
        )
        rows = list(connection.execute(query))
        if rows:
            return rows
    return []


def _declared(run: int) -> ColumnElement[bool]:
    job = select(runs.c.job_id).where(runs.c.id == run).scalar_subquery()
    return and_(runs.c.job_id == job, runs.c.design == 1)
