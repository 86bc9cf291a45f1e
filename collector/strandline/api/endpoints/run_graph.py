"""GET /api/v2/runs/lineage: the runs that made what a run read, and those that made what they read, run by run."""

from collections.abc import Sequence
from typing import Any

from strandline.api.http.operations import Ask, Operation, Parameter, Text, Whole
from strandline.api.http.paging import HIDDEN, connected, shape
from strandline.core.openlineage.times import micros_of
from strandline.store.lineage.lookup import node_text
from strandline.store.lineage.run_states import iso, run_state
from strandline.store.marquez.run_lineage import RunInputs, names_of_runs, upstream_runs
from strandline.store.marquez.runs import run_called

RUN = Parameter("runId", "The id of the run", Text(1), required=True, example="0196a1c2-0000-7000-8000-000000000001")
DEPTH = Parameter("depth", "How many runs on the way", Whole(0, 100), default=10)

Answer = dict[str, Any]


def run_graph(ask: Ask) -> Answer:
    """Runs as nodes, the nearest first; an edge for each dataset that one made and another read."""
    now = micros_of(ask.now)
    with connected(ask) as connection:
        found = upstream_runs(connection, run_called(connection, ask.given["runId"]), ask.given["depth"])
        names = names_of_runs(connection, found)
    shown = {one.row.id: f"run:{one.row.run_id}" for one in found}
    beyond = {each.producer for one in found for each in one.inputs} - {None, *shown}
    return {
        "nodes": [_node(one, now) for one in found],
        "edges": sorted(_edges(found, shown), key=lambda edge: (edge["target"], edge["source"], edge["dataset"])),
        "complete": not beyond,
        "truncatedBy": "depth" if beyond else None,
        "asOf": iso(now),
        "hidden": {"nodes": len(beyond & names.keys())},
    }


def _node(one: RunInputs, now: int) -> Answer:
    row = one.row
    of_job = {"namespace": row.job_namespace, "name": row.job_name}
    unknown = [node_text("dataset", each.namespace, each.name) for each in one.inputs if each.producer is None]
    about = {"job": node_text("job", row.job_namespace, row.job_name), "inputsOfUnknownRuns": unknown}
    return {"id": f"run:{row.run_id}", "type": "run"} | of_job | run_state(row, now).answer() | about


def _edges(found: Sequence[RunInputs], shown: dict[int, str]) -> list[Answer]:
    """rule: by the snapshot that was read, or, where none was stated, by who had written last when the reader began."""
    return [
        {
            "source": shown[each.producer],
            "target": shown[one.row.id],
            "dataset": node_text("dataset", each.namespace, each.name),
            "snapshotId": each.snapshot or None,
            "rule": "snapshot" if each.snapshot else "lastWriter",
        }
        for one in found
        for each in one.inputs
        if each.producer in shown
    ]


NODE_SHAPE = shape("id", "type", "namespace", "name", "runId", "state", "job", live="boolean")
EDGE_SHAPE = shape("source", "target", "dataset", "rule", snapshotId="string|null")
ANSWER = {
    "type": "object",
    "required": ["nodes", "edges", "complete", "truncatedBy", "asOf", "hidden"],
    "properties": {
        "nodes": {"type": "array", "items": NODE_SHAPE},
        "edges": {"type": "array", "items": EDGE_SHAPE},
        "complete": {"type": "boolean"},
        "truncatedBy": {"type": ["string", "null"]},
        "asOf": {"type": "string", "format": "date-time"},
        "hidden": HIDDEN,
    },
}
OPERATIONS = (
    Operation(
        "GET",
        "/api/v2/runs/lineage",
        "The runs that made what a run read, and those that made what they read: by snapshot, else by the last writer",
        run_graph,
        (RUN, DEPTH),
        answer=ANSWER,
        refusals=(404,),
        export="graph",
        scope="read",
    ),
)
