"""The graph of columns around a column, a dataset or what a job makes, as Marquez draws it."""

import re
from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import Query as InQuery
from pydantic import Field
from sqlalchemy import Connection

from strandline.api.http.route import refused
from strandline.api.http.session import ReadSession
from strandline.api.marquez.lineage import NodeGraph, Start, start_of
from strandline.api.marquez.parameters import Flag, NodeQuery, marquez_router
from strandline.api.marquez.shapes.columns import inputs_by_target, summary
from strandline.core.changes.extraction import SINK
from strandline.core.openlineage.facets import DATASET
from strandline.core.openlineage.names import id_of
from strandline.core.walk import Direction
from strandline.errors import NotFoundError
from strandline.store.lineage.column_lineage import column_lineage_of
from strandline.store.lineage.known_jobs import KnownJobs
from strandline.store.lineage.lookup import Node, names_of_datasets, node_text
from strandline.store.lineage.run_state import iso
from strandline.store.lineage.table_graph import Question, jobs_for
from strandline.store.marquez.datasets import node_of_row, rows_of
from strandline.store.marquez.facet_values import facet_values

KIND = "datasetField:"
MOST_SPLITS = 20
Answer = dict[str, Any]


router = marquez_router()


class ColumnsQuery(NodeQuery):
    """The columns around a column, a dataset or a job."""

    with_downstream: Annotated[
        Flag, Field(description="Also show what is made from the columns")
    ] = False


@router.get("/column-lineage", response_model=NodeGraph, responses=refused(404))
def get_column_lineage(query: Annotated[ColumnsQuery, InQuery()], session: ReadSession) -> Answer:
    """Return the columns around a column, a dataset or what a job makes.

    Both ways with `withDownstream`.
    """
    now, way = session.micros, Direction.BOTH if query.with_downstream else Direction.UPSTREAM
    with session.connected() as connection:
        start, column = _start(connection, query.node_id, now)
        datasets = _outputs(connection, start) if start.node.kind == "job" else [start.node]
        if not datasets:
            as_of = iso(start.view.at)
            return {"graph": [], "complete": True, "truncatedBy": None, "asOf": as_of}
        question = Question(
            datasets[0], start.view, way, max(query.depth, 1), others=tuple(datasets[1:])
        )
        lineage = column_lineage_of(connection, question, column)
        nodes = {node["id"]: node for node in lineage["nodes"]}
        types = _types(connection, nodes)
    shown = {id_: _shown(node, start) for id_, node in nodes.items() if node["column"] is not None}
    graph = _graph(lineage["edges"], nodes, shown, types)
    return {
        "graph": graph,
        "complete": lineage["complete"],
        "truncatedBy": lineage["truncatedBy"],
        "asOf": lineage["asOf"],
    }


def _outputs(connection: Connection, start: Start) -> list[Node]:
    """Return the datasets that a job makes, or that what ran below it makes."""
    known = KnownJobs(connection, start.view)
    jobs = known.called(jobs_for(connection, start.node, known)).values()
    written = {edge.dataset for job in jobs for edge in job.edges if edge.direction == SINK}
    rows = rows_of(connection, written).values()
    return sorted(map(node_of_row, rows), key=lambda node: (node.namespace, node.name))


def _start(connection: Connection, text: str, now: int) -> tuple[Start, str | None]:
    """Return the node and the column that a nodeId means.

    Of a column's, the last colon that leaves a dataset counts.
    """
    if not text.startswith(KIND):
        return start_of(connection, text, now), None
    rest, mark, version = text.removeprefix(KIND).rpartition("#")
    ways = ([(rest, mark + version)] if mark else []) + [(text.removeprefix(KIND), "")]
    for name, suffix in ways:
        for colon in [match.start() for match in re.finditer(":", name)][: -MOST_SPLITS - 1 : -1]:
            try:
                return start_of(connection, f"dataset:{name[:colon]}{suffix}", now), name[
                    colon + 1 :
                ]
            except NotFoundError:
                continue
    raise NotFoundError(f"unknown column: {text!r}")


def _shown(node: Answer, start: Start) -> tuple[str, str, str]:
    """Namespace, dataset and column.

    The dataset where the graph begins is called as it was asked for.
    """
    own = node_text("dataset", node["namespace"], node["name"]) == str(start.node)
    pair = (start.namespace, start.name) if own else (node["namespace"], node["name"])
    return (*pair, node["column"])


def _graph(
    edges: list[Answer],
    nodes: Mapping[str, Answer],
    shown: Mapping[str, tuple[str, str, str]],
    types: Mapping[str, str | None],
) -> list[Answer]:
    """Columns with their edges.

    In both lists the other column is the destination, and no edge leaves the answer.
    """
    inputs, ids = (
        inputs_by_target(edges, nodes),
        {id_: KIND + ":".join(names) for id_, names in shown.items()},
    )
    graph = {
        id_: _node(ids[id_], names, inputs.get(id_, []), types.get(id_))
        for id_, names in shown.items()
    }
    for edge in edges:
        source, target = edge["source"], edge["target"]
        if edge["opaque"] or source not in graph or target not in graph:
            continue
        upstream = {"origin": ids[target], "destination": ids[source]}
        if upstream not in graph[target]["inEdges"]:
            graph[target]["inEdges"].append(upstream)
            graph[source]["outEdges"].append({"origin": ids[source], "destination": ids[target]})
    linked = [
        node
        for id_, node in graph.items()
        if node["inEdges"] or node["outEdges"] or nodes[id_]["distance"] == 0
    ]
    return sorted(linked, key=lambda node: str(node["id"]))


def _node(id_: str, names: tuple[str, str, str], inputs: list[Answer], kind: str | None) -> Answer:
    data = dict(zip(("namespace", "dataset", "field"), names, strict=True)) | {
        "datasetVersion": None,
        "fieldType": kind,
        "inputFields": [{"datasetVersion": None} | column for column in inputs],
    }
    return {
        "id": id_,
        "type": "DATASET_FIELD",
        "data": data | summary(inputs),
        "inEdges": [],
        "outEdges": [],
    }


def _types(connection: Connection, nodes: Mapping[str, Answer]) -> dict[str, str | None]:
    """Return the type of each column that its dataset's schema names."""
    owners = {id_: id_of("dataset", node["namespace"], node["name"]) for id_, node in nodes.items()}
    groups = names_of_datasets(connection, set(owners.values()))
    schemas = facet_values(connection, DATASET, groups, ("schema",))
    typed = {
        (owner, field.get("name")): field.get("type")
        for owner, facets in schemas.items()
        for field in facets["schema"].get("fields") or ()
        if isinstance(field, dict)
    }
    return {id_: typed.get((owner, nodes[id_]["column"])) for id_, owner in owners.items()}
