"""Runs with their states, their jobs, and which versions of datasets they read and made."""

from collections import defaultdict
from collections.abc import Iterable
from hashlib import blake2b
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, and_, select

from strandline.core.changes.extraction import SINK
from strandline.store.schema.dataset_tables import datasets
from strandline.store.schema.relation_tables import relations
from strandline.store.schema.run_tables import runs
from strandline.store.schema.snapshot_tables import snapshot_uses
from strandline.store.sql.id_lists import among


class RunDataset(NamedTuple):
    """A dataset that a run read or wrote, and the version of it as far as it is known."""

    direction: int
    namespace: str
    name: str
    version: UUID | None


def version_id(dataset: int, snapshot: str, run: int) -> UUID:
    """The id of a dataset's version.

    Of its snapshot, or where it has none of the run that wrote it.
    """
    what = f"snapshot {snapshot}" if snapshot else f"run {run}"
    return UUID(bytes=blake2b(f"{dataset} {what}".encode(), digest_size=16).digest(), version=5)


def touched_by_runs(connection: Connection, ids: Iterable[int]) -> dict[int, list[RunDataset]]:
    """Return what each of these runs read and wrote, by name.

    What was read without a snapshot has no version.
    """
    wanted = list(ids)
    read = _snapshots_of(connection, wanted)
    canonical = datasets.alias("canonical")
    query = (
        select(
            relations.c.run_id,
            relations.c.direction,
            canonical.c.id,
            canonical.c.namespace,
            canonical.c.name,
        )
        .distinct()
        .join(datasets, datasets.c.id == relations.c.dataset_id)
        .join(canonical, canonical.c.id == datasets.c.canonical_id)
        .where(among(relations.c.run_id, wanted))
        .order_by(canonical.c.namespace, canonical.c.name)
    )
    found: dict[int, list[RunDataset]] = defaultdict(list)
    for row in connection.execute(query):
        snapshot = read.get((row.run_id, row.direction, row.id), "")
        version = (
            version_id(row.id, snapshot, row.run_id) if snapshot or row.direction == SINK else None
        )
        found[row.run_id].append(RunDataset(row.direction, row.namespace, row.name, version))
    return found


def _snapshots_of(connection: Connection, ids: list[int]) -> dict[tuple[int, int, int], str]:
    """The last exact snapshot that each run read or made of each dataset."""
    query = (
        select(
            snapshot_uses.c.run_id,
            snapshot_uses.c.direction,
            datasets.c.canonical_id,
            snapshot_uses.c.snapshot_id,
        )
        .join(datasets, datasets.c.id == snapshot_uses.c.dataset_id)
        .where(among(snapshot_uses.c.run_id, ids), snapshot_uses.c.lossy == 0)
        .order_by(snapshot_uses.c.rank, snapshot_uses.c.order_at)
    )
    return {
        (row.run_id, row.direction, row.canonical_id): row.snapshot_id
        for row in connection.execute(query)
    }


def stated_ends(connection: Connection, run: int) -> list[Any]:
    """What a run read and wrote as it named it (id, direction, namespace, name), or else what its job has declared."""
    for owner in (runs.c.id == run, _declared(run)):
        query = (
            select(datasets.c.id, relations.c.direction, datasets.c.namespace, datasets.c.name)
            .join(relations, relations.c.dataset_id == datasets.c.id)
            .join(runs, runs.c.id == relations.c.run_id)
            .where(owner)
            .order_by(datasets.c.namespace, datasets.c.name)
        )
        found = list(connection.execute(query))
        if found:
            return found
    return []


def _declared(run: int) -> ColumnElement[bool]:
    job = select(runs.c.job_id).where(runs.c.id == run).scalar_subquery()
    return and_(runs.c.job_id == job, runs.c.design == 1)
