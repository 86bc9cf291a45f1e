"""GET /api/v2/runs/lineage.

The runs that made what a run read, and those that made what they read, run by run.
"""

from typing import Any

from strandline.api.http.operations import Ask, Operation, Parameter, Text, Whole
from strandline.api.http.paging import AS_OF, HIDDEN, answer_to, shape
from strandline.store.questions import run_graph as runs

RUN = Parameter(
    "runId",
    "The id of the run",
    Text(1),
    required=True,
    example="0196a1c2-0000-7000-8000-000000000001",
)
DEPTH = Parameter("depth", "How many runs on the way", Whole(0, 100), default=runs.DEPTH)


def run_graph(ask: Ask) -> dict[str, Any]:
    """The graph of runs."""
    return answer_to(ask, "/runs/lineage")


NODE_SHAPE = shape("id", "type", "namespace", "name", "runId", "state", "job", running="boolean")
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
        (RUN, DEPTH, AS_OF),
        answer=ANSWER,
        refusals=(404,),
        export="graph",
        scope="read",
    ),
)
