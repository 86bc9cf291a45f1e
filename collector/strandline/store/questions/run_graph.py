"""The runs that made what a run read, and those that made what they read, as a graph of runs.

Now, or as it was.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection

from strandline.errors import NotFoundError
from strandline.store.catalog.run_lineage import MOST_RUNS, RunInputs, names_of_runs, upstream_runs
from strandline.store.catalog.runs_called import run_called, runs_by_id
from strandline.store.lineage.lookup import node_text
from strandline.store.lineage.run_state import View, iso, run_state

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
