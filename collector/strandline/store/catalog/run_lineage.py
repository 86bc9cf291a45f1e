"""The runs that made a run's inputs, and theirs, run by run."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection, Select, func, or_, select

from strandline.core.changes.extraction import SINK, SOURCE
from strandline.core.openlineage.run_states import ABORT, FAIL
from strandline.core.stopping import go_on
from strandline.store.catalog.runs_called import runs_by_id
from strandline.store.lineage.recent_runs import only_defined
from strandline.store.schema.dataset_tables import datasets
from strandline.store.schema.relation_tables import relations
from strandline.store.schema.run_tables import runs
from strandline.store.schema.snapshot_tables import snapshot_uses
from strandline.store.sql.id_lists import among

MOST_RUNS = 2_000
MOST_WRITERS = 1_000  # the last ones of a dataset, among which the one before a run is looked for


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


class Read(NamedTuple):
    """A dataset that a run read without stating its snapshot, and the moment at which it began."""

    run: int
    dataset: int
    begun: int


def upstream_runs(
    connection: Connection, run: int, depth: int, moment: int | None = None
) -> list[RunInputs]:
    """The run, the runs that made what it read, and so on, the nearest first.

    What was heard of by a moment, or all.
    """
    inputs_of: dict[int, RunInputs] = {}
    level = [run]
    for _ in range(depth + 1):
        rows = runs_by_id(connection, [run for run in level if run not in inputs_of])
        for id_, row in rows.items():
            inputs_of[id_] = RunInputs(row, _inputs(connection, row, moment))
        producers = (input_.producer for id_ in rows for input_ in inputs_of[id_].inputs)
        level = [
            producer for producer in producers if producer is not None and producer not in inputs_of
        ]
        if not level or len(inputs_of) >= MOST_RUNS:
            break
    return list(inputs_of.values())


def names_of_runs(connection: Connection, found: Iterable[RunInputs]) -> dict[int, str]:
    """The ids of all producers as they were sent, those beyond the depth too."""
    producers = {
        input_.producer for run in found for input_ in run.inputs if input_.producer is not None
    }
    rows = connection.execute(select(runs.c.id, runs.c.run_id).where(among(runs.c.id, producers)))
    return {row.id: row.run_id for row in rows}


def begun_at(run: Any) -> int | None:
    """Return when a run began, as far as its row knows."""
    at: int | None = run.started_at if run.started_at is not None else run.first_at
    return at


def last_writers(connection: Connection, reads: Iterable[Read]) -> dict[tuple[int, int], int]:
    """Map (run, dataset) of each read to the run that had last written the dataset by then.

    What a streaming query wrote is there however it ended.
    """
    by_dataset: dict[int, list[Read]] = defaultdict(list)
    for read in reads:
        by_dataset[read.dataset].append(read)
    if not by_dataset:
        return {}
    writers: dict[int, list[Any]] = defaultdict(list)
    for row in connection.execute(_last_writes(by_dataset)):
        writers[row.dataset].append(row)
    found: dict[tuple[int, int], int] = {}
    for dataset, of_dataset in by_dataset.items():
        for read in of_dataset:
            go_on()
            before = (
                write.run
                for write in writers[dataset]
                if write.first_at <= read.begun and write.run != read.run
            )
            writer = next(before, None)
            if writer is not None:
                found[read.run, dataset] = writer
    return found


def _last_writes(dataset_ids: Iterable[int]) -> Select[Any]:
    """Select the last runs that wrote into each of these datasets, the newest first."""
    newest_at = func.max(relations.c.newest_at)
    place = func.row_number().over(
        partition_by=datasets.c.canonical_id, order_by=(newest_at.desc(), runs.c.id)
    )
    writes = (
        select(
            datasets.c.canonical_id.label("dataset"),
            runs.c.id.label("run"),
            func.min(relations.c.first_at).label("first_at"),
            place.label("place"),
        )
        .join(relations, relations.c.dataset_id == datasets.c.id)
        .join(runs, runs.c.id == relations.c.run_id)
        .where(
            among(datasets.c.canonical_id, dataset_ids),
            relations.c.direction == SINK,
            runs.c.design == 0,
            or_(runs.c.streaming == 1, runs.c.state.not_in((ABORT, FAIL))),
            ~only_defined(past=False),
        )
        .group_by(datasets.c.canonical_id, runs.c.id)
        .subquery("writes")
    )
    return select(writes).where(writes.c.place <= MOST_WRITERS).order_by(writes.c.place)


def _inputs(connection: Connection, row: Any, moment: int | None) -> list[Input]:
    """Return the inputs of a run, each dataset once.

    Of a streaming query's many snapshots the one that it read last.

    Another run reads one snapshot from its first event on, whichever of its events stated it.
    """
    canonical = datasets.alias("canonical")
    query = (
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
    for id_, namespace, name, snapshot in connection.execute(query).all():
        if snapshot or id_ not in newest:
            newest[id_] = Input(id_, namespace, name, snapshot or "", None)
    begun = begun_at(row)
    writers: dict[tuple[int, int], int] = {}
    if begun is not None:
        unstated = [id_ for id_, read in newest.items() if not read.snapshot]
        writers = last_writers(connection, [Read(row.id, id_, begun) for id_ in unstated])
    inputs = []
    for id_, read in newest.items():
        producer = writers.get((row.id, id_))
        if read.snapshot:
            producer = _maker(connection, read, row.id)
        inputs.append(read._replace(producer=producer))
    return inputs


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


def _maker(connection: Connection, read: Input, reader: int) -> int | None:
    """Return the run that made the snapshot that a run read."""
    names = select(datasets.c.id).where(datasets.c.canonical_id == read.dataset)
    writers = (
        select(snapshot_uses.c.run_id)
        .where(
            snapshot_uses.c.dataset_id.in_(names),
            snapshot_uses.c.snapshot_id == read.snapshot,
            snapshot_uses.c.direction == SINK,
        )
        .order_by(snapshot_uses.c.rank.desc(), snapshot_uses.c.at)
    )
    return next((run for run in connection.scalars(writers) if run != reader), None)
