"""Versions of a dataset: its snapshots, and of runs that wrote it without one, a version each.

A dataset that nobody has written has one version: what is known of it. The columns of a version are
those that the last event of its run stated, where that is stored.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import orjson
from sqlalchemy import Connection, Select, Subquery, exists, func, literal, select, union_all

from strandline.core.changes.extraction import SINK
from strandline.core.openlineage.names import id_of, run_id_of
from strandline.errors import DamagedError
from strandline.store.lineage.empty_writes import came_to_nothing, created_nothing
from strandline.store.lineage.lookup import names_of_datasets
from strandline.store.lineage.recent_runs import with_relations
from strandline.store.lineage.run_state import run_owners
from strandline.store.lineage.table_snapshots import seen_at
from strandline.store.marquez.runs import version_id
from strandline.store.schema.received_tables import raw_events
from strandline.store.schema.relation_tables import relations
from strandline.store.schema.run_tables import runs
from strandline.store.schema.snapshot_tables import snapshot_uses, snapshots
from strandline.store.sql.compression import Expansion
from strandline.store.sql.id_lists import among
from strandline.store.sql.shared_settings import agreed_naming

MOST_SEARCHED = 100_000  # versions among which one is looked for by its id
Fields = list[dict[str, Any]]


class DatasetVersion(NamedTuple):
    """A version of a dataset: when it was made, as which snapshot, by which run (None: unknown).

    at: of versions of one moment each older one is a microsecond earlier: Marquez' page takes it
    for a key.
    """

    dataset: int
    at: int
    snapshot: str
    run: int | None

    @property
    def id(self) -> str:
        """Its id, a UUID as Marquez has them."""
        return str(version_id(self.dataset, self.snapshot, self.run or 0))


def versions_page(
    connection: Connection, row: Any, now: int, limit: int, offset: int
) -> tuple[list[DatasetVersion], int]:
    """Return the versions of a dataset, the newest first, and their number."""
    names = list(names_of_datasets(connection, [row.id]))
    every = union_all(_of_snapshots(names), _of_runs(names)).subquery("every")
    count = select(func.count()).select_from(every)
    total = connection.scalar(count, {"moment": now}) or 0
    if not total:
        only = DatasetVersion(row.id, row.newest_at or row.first_at or 0, "", None)
        return [only][offset : offset + limit], 1
    page = connection.execute(_apart(every).limit(limit).offset(offset), {"moment": now})
    return [
        DatasetVersion(row.id, version.at, version.snapshot, version.run or None)
        for version in page
    ], total


def _apart(every: Subquery) -> Select[Any]:
    """The versions, the newest first, no two of one moment.

    Each is at its own or, if that is taken, just before the last one's.
    """
    order = every.c.at.desc(), every.c.snapshot.desc(), every.c.run.desc()
    placed = select(every, func.row_number().over(order_by=order).label("place")).subquery("placed")
    at = func.min(placed.c.at + placed.c.place).over(order_by=placed.c.place) - placed.c.place
    return select(at.label("at"), placed.c.snapshot, placed.c.run).order_by(placed.c.place)


def _of_snapshots(names: Sequence[int]) -> Select[Any]:
    return (
        select(
            seen_at.label("at"),
            snapshots.c.snapshot_id.label("snapshot"),
            func.max(snapshots.c.run_id).label("run"),
        )
        .where(among(snapshots.c.dataset_id, names))
        .group_by(seen_at, snapshots.c.snapshot_id)
    )


def _of_runs(names: Sequence[int]) -> Select[Any]:
    """Select the runs that wrote the dataset without stating the snapshot that they made."""
    stated = exists().where(
        snapshot_uses.c.run_id == relations.c.run_id,
        snapshot_uses.c.direction == SINK,
        snapshot_uses.c.dataset_id == relations.c.dataset_id,
        snapshot_uses.c.lossy == 0,
    )
    at = func.max(func.coalesce(runs.c.ended_at, runs.c.newest_at))
    return (
        select(at.label("at"), literal("").label("snapshot"), runs.c.id.label("run"))
        .select_from(with_relations(runs.join(run_owners, run_owners.c.run_id == runs.c.id)))
        .where(
            among(relations.c.dataset_id, names), relations.c.direction == SINK, runs.c.design == 0
        )
        .where(runs.c.started_at.is_not(None) | runs.c.ended_at.is_not(None))
        .where(~created_nothing(), ~came_to_nothing(past=False), ~stated)
        .group_by(runs.c.id)
    )


def version_called(
    connection: Connection, row: Any, now: int, version: str
) -> DatasetVersion | None:
    """Return the version with this id, or of this snapshot."""
    for one in versions_page(connection, row, now, MOST_SEARCHED, 0)[0]:
        if version.lower() in (one.id, one.snapshot.lower()):
            return one
    return None


def stated_facets(
    connection: Connection, versions: Iterable[DatasetVersion]
) -> dict[str, Mapping[str, Any]]:
    """Return the facets of the dataset in the last event of each version's run.

    The keys are ids of versions; only versions made by batch runs have one.
    """
    by_run = {version.run: version for version in versions if version.run is not None}
    last = (
        select(runs.c.received_at).distinct().where(among(runs.c.id, by_run), runs.c.streaming == 0)
    )
    names = set(names_of_datasets(connection, {facets.dataset for facets in by_run.values()}))
    naming, expansion = agreed_naming(connection), Expansion(connection)
    facets_of: dict[str, Mapping[str, Any]] = {}
    events = (
        select(raw_events)
        .where(raw_events.c.received_at.in_(last))
        .order_by(raw_events.c.event_time)
    )
    for _, body in expansion.expanded(connection.execute(events)):
        if isinstance(body, DamagedError):
            continue
        event = orjson.loads(body)
        version = by_run.get(
            _run_of(event)
        )  # events of others may have been received at the same moment
        for output in event.get("outputs") or ():
            if version is None:
                break
            if id_of(
                "dataset", *naming.name_of(output["namespace"], output["name"])
            ) in names and output.get("facets"):
                facets_of[version.id] = output["facets"]
    return facets_of


def _run_of(event: Any) -> int:
    run, job = event.get("run") or {}, event.get("job") or {}
    return run_id_of(run.get("runId", ""), job.get("namespace", ""), job.get("name", ""))
