"""Which runs a run's inputs came from, and theirs, run by run."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection, or_, select

from strandline.core.changes.extraction import SINK, SOURCE
from strandline.core.openlineage.run_states import ABORT, FAIL
from strandline.store.catalog.runs_called import runs_by_id
from strandline.store.schema.dataset_tables import datasets
from strandline.store.schema.relation_tables import relations
from strandline.store.schema.run_tables import runs
from strandline.store.schema.snapshot_tables import snapshot_uses
from strandline.store.sql.id_lists import among

MOST_RUNS = 2_000


class Input(NamedTuple):
    """A dataset that a run read.

    Its snapshot ('' where nobody stated it) and the run that had made it (None: unknown).
    """

    dataset: int
    namespace: str
    name: str
    snapshot: str
    producer: int | None


class RunInputs(NamedTuple):
    """A run with its inputs; `row` is its row with the names of its job."""

    row: Any
    inputs: Sequence[Input]


def upstream_runs(
    connection: Connection, run: int, depth: int, moment: int | None = None
) -> list[RunInputs]:
    """The run, the runs that made what it read, and so on, the nearest first.

    What was heard of by a moment, or all.
    """
    found: dict[int, RunInputs] = {}
    level = [run]
    for _ in range(depth + 1):
        rows = runs_by_id(connection, [one for one in level if one not in found])
        for id_, row in rows.items():
            found[id_] = RunInputs(row, _inputs(connection, row, moment))
        producers = (one.producer for id_ in rows for one in found[id_].inputs)
        level = [one for one in producers if one is not None and one not in found]
        if not level or len(found) >= MOST_RUNS:
            break
    return list(found.values())


def names_of_runs(connection: Connection, found: Iterable[RunInputs]) -> dict[int, str]:
    """The ids of all producers as they were sent, those beyond the depth too."""
    producers = {one.producer for run in found for one in run.inputs if one.producer is not None}
    rows = connection.execute(select(runs.c.id, runs.c.run_id).where(among(runs.c.id, producers)))
    return {row.id: row.run_id for row in rows}


def _inputs(connection: Connection, row: Any, moment: int | None) -> list[Input]:
    """Return what a run read, each dataset once.

    Of a streaming query's many snapshots the one that it read last.

    Another run reads one snapshot from its first event on, whichever of its events stated it.
    """
    canonical = datasets.alias("canonical")
    read = (
        select(
            canonical.c.id,
            canonical.c.namespace,
            canonical.c.name,
            _last_snapshot(moment if row.streaming else None),
        )
        .join(datasets, datasets.c.canonical_id == canonical.c.id)
        .join(relations, relations.c.dataset_id == datasets.c.id)
        .where(relations.c.run_id == row.id, relations.c.direction == SOURCE)
        .where(*([] if moment is None else [relations.c.first_at <= moment]))
        .order_by(canonical.c.namespace, canonical.c.name, relations.c.newest_at)
    )
    newest: dict[int, Input] = {}
    for id_, namespace, name, snapshot in connection.execute(read).all():
        if snapshot or id_ not in newest:
            newest[id_] = Input(id_, namespace, name, snapshot or "", None)
    return [one._replace(producer=_producer(connection, one, row)) for one in newest.values()]


def _last_snapshot(moment: int | None) -> Any:
    """The snapshot of the dataset that the run read last, where one was stated exactly."""
    by_then = [] if moment is None else [snapshot_uses.c.at <= moment]
    return (
        select(snapshot_uses.c.snapshot_id)
        .where(
            snapshot_uses.c.run_id == relations.c.run_id,
            snapshot_uses.c.dataset_id == relations.c.dataset_id,
            snapshot_uses.c.direction == relations.c.direction,
            snapshot_uses.c.lossy == 0,
            *by_then,
        )
        .order_by(
            snapshot_uses.c.barrier.desc(),
            snapshot_uses.c.at.desc(),
            snapshot_uses.c.snapshot_id.desc(),
        )
        .limit(1)
        .correlate(relations)
        .scalar_subquery()
    )


def _producer(connection: Connection, read: Input, reader: Any) -> int | None:
    """The run that made the snapshot.

    Where none was stated, the last that had written the dataset when the reader began.

    What a streaming query wrote is there however it ended.
    """
    names = list(
        connection.scalars(select(datasets.c.id).where(datasets.c.canonical_id == read.dataset))
    )
    if read.snapshot:
        writers = select(snapshot_uses.c.run_id).where(among(snapshot_uses.c.dataset_id, names))
        writers = writers.where(
            snapshot_uses.c.snapshot_id == read.snapshot, snapshot_uses.c.direction == SINK
        )
        return _other(
            connection.scalars(writers.order_by(snapshot_uses.c.rank.desc(), snapshot_uses.c.at)),
            reader.id,
        )
    begun = reader.started_at if reader.started_at is not None else reader.first_at
    if begun is None:
        return None
    wrote = (
        select(runs.c.id)
        .join(relations, relations.c.run_id == runs.c.id)
        .where(
            among(relations.c.dataset_id, names), relations.c.direction == SINK, runs.c.design == 0
        )
        .where(
            relations.c.first_at <= begun,
            or_(runs.c.streaming == 1, runs.c.state.not_in((ABORT, FAIL))),
        )
        .order_by(relations.c.newest_at.desc(), runs.c.id)
        .limit(2)
    )
    return _other(connection.scalars(wrote), reader.id)


def _other(found: Iterable[int], reader: int) -> int | None:
    return next((run for run in found if run != reader), None)
