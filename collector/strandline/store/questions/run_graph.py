"""The runs that made what a run read, the runs that made what they read, and so on.

The graph is today's, or that of a past moment.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection, select

from strandline.core.changes.extraction import SINK, SOURCE
from strandline.errors import NotFoundError
from strandline.store.catalog.runs import run_called, runs_by_id
from strandline.store.catalog.writes import Read, begun_at, last_writers
from strandline.store.lineage.lookup import node_text
from strandline.store.lineage.run_state import View, iso, run_state
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


Answer = dict[str, Any]

DEPTH = 10  # runs on the way, unless asked


def run_graph(connection: Connection, query: Mapping[str, Any], view: View) -> Answer:
    """Runs as nodes, the nearest first; an edge for each dataset that one made and another read.

    At a past moment the runs and inputs that were heard of by then; a NotFoundError for a run that
    was not.
    """
    moment, depth = view.at if view.past else None, query.get("depth")
    start = _begun(connection, query["runId"], moment)
    upstream = upstream_runs(connection, start, DEPTH if depth is None else depth, moment)
    names = names_of_runs(connection, upstream)
    shown = {run.row.id: f"run:{run.row.run_id}" for run in upstream}
    beyond = {each.producer for run in upstream for each in run.inputs} - {None, *shown}
    cut_by = "nodes" if len(upstream) >= MOST_RUNS else "depth"
    return {
        "nodes": [_node(run, view) for run in upstream],
        "edges": sorted(
            _edges(upstream, shown),
            key=lambda edge: (edge["target"], edge["source"], edge["dataset"]),
        ),
        "complete": not beyond,
        "truncatedBy": cut_by if beyond else None,
        "asOf": iso(view.at),
        "hidden": {"nodes": len(beyond & names.keys())},
    }


def _begun(connection: Connection, run_id: str, moment: int | None) -> int:
    run = run_called(connection, run_id)
    first_at = runs_by_id(connection, [run])[run].first_at
    if moment is not None and first_at is not None and first_at > moment:
        raise NotFoundError(
            f"run {run_id!r} did not exist yet at {iso(moment)}: "
            f"its first event is of {iso(first_at)}"
        )
    return run


def _node(run_inputs: RunInputs, view: View) -> Answer:
    row = run_inputs.row
    of_job = {"namespace": row.job_namespace, "name": row.job_name}
    unknown = [
        node_text("dataset", each.namespace, each.name)
        for each in run_inputs.inputs
        if each.producer is None
    ]
    about = {
        "job": node_text("job", row.job_namespace, row.job_name),
        "inputsOfUnknownRuns": unknown,
    }
    state = run_state(row, view.at, past=view.past)
    return {"id": f"run:{row.run_id}", "type": "run"} | of_job | state.answer() | about


def _edges(runs: Sequence[RunInputs], shown: dict[int, str]) -> list[Answer]:
    """Return the edges with the rule that each rests on.

    By the snapshot that was read or, where none was stated, by the last writer when the reader
    began.
    """
    return [
        {
            "source": shown[each.producer],
            "target": shown[run.row.id],
            "dataset": node_text("dataset", each.namespace, each.name),
            "snapshotId": each.snapshot or None,
            "rule": "snapshot" if each.snapshot else "lastWriter",
        }
        for run in runs
        for each in run.inputs
        if each.producer in shown
    ]
