"""GET /api/v2/lineage, /lineage/nodes, /lineage/map and /snapshots/lineage.

What was made from what, between tables, columns or snapshots.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection

from strandline.api.http.filters import SELECTION
from strandline.api.http.operations import (
    Ask,
    Choice,
    Operation,
    Parameter,
    ParameterError,
    Text,
    Whole,
)
from strandline.api.http.paging import (
    AS_OF,
    DEPTH,
    DIRECTION,
    MOST,
    NAME,
    NAMESPACE,
    STATE,
    WITHIN,
    answer_to,
    connected,
    graph_of,
    listed,
    shape,
    view_of,
)
from strandline.core.around import graph_around, nodes_of_step
from strandline.core.walk import Direction
from strandline.store.lineage.column_lineage import DEPENDENCIES
from strandline.store.lineage.lookup import dataset_of
from strandline.store.lineage.snapshot_lineage import snapshot_lineage_of
from strandline.store.lineage.table_labels import newest_datasets
from strandline.store.lineage.table_lineage import lineage_of, only_nodes, whole_graph
from strandline.store.questions.asked import (
    MOST_OF_DATABASE,
    cut_answer,
    nodes_called,
    question_of,
    selection_between,
)
from strandline.store.sql.engine import by_itself

NODE = Parameter(
    "node",
    "dataset:NAMESPACE:NAME or job:NAMESPACE:NAME (the longest known namespace counts, symlinks are followed); or a short "
    "name such as database.table where only one node has it",
    Text(1),
    required=True,
    many=True,
    example="dataset:file:/lake/bank/balance",
)
NODE_OR_AROUND = replace(NODE, about=f"{NODE.about}; or give `around`", required=False)
AROUND = Parameter(
    "around",
    "Instead of `node`: the steps around this node (one job each way, if no `depth` says more), at most 12 boxes a step; a box of "
    "type `rest` stands for all others of its step",
    Text(1),
)
PIN = Parameter("pin", "With around: show this node in any case", Text(1), many=True)
STEP = Parameter(
    "step", "With around: list the nodes of this step (below 0: upstream), a page at a time", Whole(-1_000_000, 1_000_000)
)  # fmt: skip
STEP_CURSOR = Parameter("cursor", "With step: `nextCursor` of the page or box before", Text(1))
UNDER = Parameter(
    "under", "The id of a box to open; those around it are open as well. The last one gets the room first", Text(1),
    many=True, example="catalog:lake",
)  # fmt: skip
GRANULARITY = Parameter("granularity", "From table to table, or from column to column", Choice(("table", "column")),
                        default="table")  # fmt: skip
COLUMN = Parameter("column", "With granularity=column: only this column of the dataset", Text(1))
DEPENDENCY = Parameter(
    "dependency",
    "With granularity=column: only edges that carry a value (direct), that filter, join or sort by it (indirect), or of which no "
    "column lineage tells (opaque)",
    Choice(DEPENDENCIES),
    many=True,
)
COLLAPSE = Parameter(
    "collapse", "Show jobs as their parent or root job: tasks as their DAG, statements as their application",
    Choice(("none", "parent", "root")), default="none",
)  # fmt: skip
MANY = Parameter(
    "limit",
    "How many nodes at most",
    Whole(1, MOST_OF_DATABASE),
    default=MOST_OF_DATABASE,
)
SNAPSHOT = Parameter("snapshotId", "The snapshot; without it the newest that is known", Text(1))


def lineage(ask: Ask) -> dict[str, Any]:
    """Return the lineage of one node, or of several together."""
    given = ask.given
    by_column = given["granularity"] == "column"
    for name in ("column", "dependency"):
        if given[name] and not by_column:
            raise ParameterError(f"parameter {name} needs granularity=column")
    if given["collapse"] != "none" and by_column:
        raise ParameterError("parameter collapse needs granularity=table")
    if given["node"] and given["around"]:
        raise ParameterError("parameter around replaces node: give one of them")
    if not given["node"] and not given["around"]:
        raise ParameterError(f"parameter node is missing: {NODE_OR_AROUND.about}")
    for name in ("pin", "step"):
        if given[name] not in (None, ()) and not given["around"]:
            raise ParameterError(f"parameter {name} needs around")
    if given["around"]:
        if by_column:
            raise ParameterError("parameter around needs granularity=table")
        return _around(ask)
    return answer_to(ask, "/lineage") if by_column else _between_tables(ask)


def _between_tables(ask: Ask) -> dict[str, Any]:
    selection = selection_between(ask.given)
    with connected(ask) as connection:
        connection = by_itself(connection)
        return selection.of(connection, _answer(ask, connection, ask.given))


def _around(ask: Ask) -> dict[str, Any]:
    """Return the steps around one node, or a page of one of them."""
    given = dict(ask.given) | {"node": [ask.given["around"]]}
    if given["depth"] is None:
        given["depth"] = 1
    page, given["limit"] = given["limit"], MOST_OF_DATABASE
    selection = selection_between(given)
    with connected(ask) as connection:
        connection = by_itself(connection)
        answer = selection.of(connection, _answer(ask, connection, given))
        pinned = {str(node) for node in nodes_called(connection, given["pin"] or ())}
    middle = next(node["id"] for node in answer["nodes"] if node["distance"] == 0)
    if given["step"] is not None:
        first = given["cursor"] or "0"
        if not first.isdecimal():
            raise ParameterError("invalid cursor for this list: send `nextCursor` as it came")
        return nodes_of_step(answer, middle, given["step"], int(first), page, pinned)
    return graph_around(answer, middle, pinned)


def lineage_map(ask: Ask) -> dict[str, Any]:
    """Return the boxes of the whole graph."""
    return answer_to(ask, "/lineage/map")


def _answer(ask: Ask, connection: Connection, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return lineage between tables, of jobs in memory where they are kept."""
    question = question_of(connection, given, view_of(ask))
    shared = ask.graph.view(connection, question.view)
    answer = lineage_of(connection, question, shared)
    if shared is not None:
        ask.metrics.kept.graph_jobs.labels("memory").inc(shared.from_memory)
        ask.metrics.kept.graph_jobs.labels("database").inc(shared.from_database)
    return answer


def nodes(ask: Ask) -> dict[str, Any]:
    """Return the nodes that lineage leads to, without edges."""
    selection = selection_between(ask.given)
    with connected(ask) as connection:
        connection = by_itself(connection)
        return only_nodes(selection.of(connection, _answer(ask, connection, ask.given)))


def whole(ask: Ask) -> dict[str, Any]:
    """The graph around the datasets that were heard of last."""
    given = ask.given
    with connected(ask) as connection:
        starts, more = newest_datasets(connection, given["namespace"], given["limit"])
        answer = whole_graph(connection, view_of(ask), starts, 2 * given["limit"])
    return answer | cut_answer(answer, more) if more else answer


def snapshot_lineage(ask: Ask) -> dict[str, Any]:
    """The lineage of a snapshot."""
    given, direction = ask.given, Direction(ask.given["direction"])
    with connected(ask) as connection:
        dataset = dataset_of(connection, given["namespace"], given["name"])
        return snapshot_lineage_of(
            connection,
            dataset,
            given["snapshotId"],
            view_of(ask),
            direction,
            given["depth"],
            given["limit"],
        )


NODE_SHAPE = shape(
    "id", "type", "namespace", "name", distance="integer", state="string", running="boolean"
)
EDGE_SHAPE = shape(
    "source", "target", rule="string", state="string", running="boolean", origins="array",
    lastSeen="string", runs="integer", ofRuns="integer", inLatest="boolean",
    latestRun="object",  # of the job, where it failed, was aborted or lost after the edge was seen
)  # fmt: skip
BOX_SHAPE = shape(
    *("id", "type", "namespace", "name"), within="string|null", datasets="integer", jobs="integer",
    jobsInside="integer", states="object", boxes="integer",
)  # fmt: skip
SNAPSHOT_SHAPE = shape(
    *("id", "type", "namespace", "name"),
    snapshotId="string|null",  # null: known by approximateSnapshotId alone
    approximateSnapshotId="string",
    observed="boolean",
    barrierId="integer|null",
    # the earlier snapshot whose rows it shows, where compaction or the like left it
    sameRowsAs="string",
    inputsOfUnknownSnapshots="array",  # what the run that made it read besides; not there: nothing
)
STEP_SHAPE = shape("source", "target", "job", observed="boolean", barrierId="integer|null")
OPERATIONS = (
    Operation(
        "GET",
        "/api/v2/lineage",
        "Lineage of a dataset or job: which jobs made what from what, and by which rule that is known",
        lineage,
        (
            NODE_OR_AROUND,
            DIRECTION,
            DEPTH,
            GRANULARITY,
            COLUMN,
            DEPENDENCY,
            STATE,
            AS_OF,
            COLLAPSE,
            *SELECTION,
            MOST,
            AROUND,
            PIN,
            STEP,
            STEP_CURSOR,
        ),
        answer=graph_of(NODE_SHAPE, EDGE_SHAPE),
        refusals=(404,),
        export="graph",
        scope="read",
    ),
    Operation(
        "GET",
        "/api/v2/lineage/nodes",
        "The nodes of that lineage with their distances, the nearest first, without edges: for large graphs",
        nodes,
        (NODE, DIRECTION, DEPTH, STATE, AS_OF, *SELECTION, MANY),
        answer=listed(shape("id", distance="integer"), truncatedBy="string|null", asOf="string"),
        refusals=(404,),
        export="list",
        scope="read",
    ),
    Operation(
        "GET",
        "/api/v2/lineage/map",
        "The whole graph as at most 40 boxes (catalogs, buckets, databases, folders, then tables) with counts by state, and the "
        "number of jobs that lead from box to box, of all that was reported by then",
        lineage_map,
        (UNDER, AS_OF),
        answer=graph_of(BOX_SHAPE, shape("source", "target", jobs="integer")),
        refusals=(404,),
        export="graph",
        scope="read",
    ),
    Operation(
        "GET",
        "/api/v2/graph",
        "The whole graph: the datasets that were heard of last, with all jobs that read or write them",
        whole,
        (WITHIN, STATE, AS_OF, MOST),
        answer=graph_of(NODE_SHAPE, EDGE_SHAPE),
        export="graph",
        scope="read",
    ),
    Operation(
        "GET",
        "/api/v2/snapshots/lineage",
        "Which snapshots a snapshot was made from, and which from it, with job and barrier",
        snapshot_lineage,
        (NAMESPACE, NAME, SNAPSHOT, DIRECTION, DEPTH, AS_OF, MOST),
        answer=graph_of(SNAPSHOT_SHAPE, STEP_SHAPE),
        refusals=(404,),
        export="graph",
        scope="read",
    ),
)
