"""The graph of jobs and datasets around a node, as Marquez draws it."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, NamedTuple

from fastapi import Query as InQuery
from sqlalchemy import Connection
from typing_extensions import TypedDict

from strandline.api.http.route import refused
from strandline.api.http.session import ReadSession
from strandline.api.marquez.parameters import JSON, NodeQuery, marquez_router
from strandline.api.marquez.shapes.datasets import called, dataset_answers
from strandline.api.marquez.shapes.jobs import job_answers
from strandline.core.openlineage.names import Naming, id_of
from strandline.errors import NotFoundError
from strandline.store.lineage.lookup import Node, names_of_datasets, node_of, node_text
from strandline.store.lineage.run_state import View
from strandline.store.lineage.table_graph import Question
from strandline.store.lineage.table_lineage import lineage_of
from strandline.store.marquez.datasets import rows_of
from strandline.store.marquez.jobs import job_rows
from strandline.store.marquez.runs import version_id
from strandline.store.marquez.versions import version_called

_VERSION = re.compile(r"(.*)#([0-9a-fA-F-]{36}|\d+)", re.DOTALL)
Answer = dict[str, Any]
router = marquez_router()


class NodeGraph(TypedDict):
    """Nodes with their edges."""

    graph: list[JSON]
    complete: bool
    truncatedBy: str | None
    asOf: str


class Start(NamedTuple):
    """The start of a graph: its node, the namespace and name in the request, and the moment."""

    node: Node
    namespace: str
    name: str
    view: View

    @property
    def asked(self) -> str:
        """The node's id, as the answer has it.

        Marquez' page looks for the one that it asked for.
        """
        return node_text(self.node.kind, self.namespace, self.name)


def start_of(connection: Connection, text: str, now: int) -> Start:
    """Return the node that a nodeId means.

    With `#version` at its end, at the moment of that version of the dataset. The one version of a
    job is the job as it is.
    """
    try:
        node = node_of(connection, text)
        return Start(node, *_asked_name(connection, node, text), View(now))
    except NotFoundError:
        match = _VERSION.fullmatch(text)
        if match is None:
            raise
    node = node_of(connection, match[1])
    if node.kind == "job" and match[2].lower() == str(version_id(node.id, "", 0)):
        return Start(node, *_asked_name(connection, node, match[1]), View(now))
    row = rows_of(connection, [node.id]).get(node.id)
    version = None if row is None else version_called(connection, row, now, match[2])
    if version is None:
        raise NotFoundError(f"unknown version of {match[1]}: {match[2]!r}")
    return Start(
        node, *_asked_name(connection, node, match[1]), View(version.at, past=version.at < now)
    )


def _asked_name(connection: Connection, node: Node, text: str) -> tuple[str, str]:
    """Namespace and name in a nodeId: the split at which it is one of the node's names."""
    rest = text.partition(":")[2]
    own_names = names_of_datasets(connection, [node.id]) if node.kind == "dataset" else {}
    for colon in [match.start() for match in re.finditer(":", rest)] if own_names else ():
        pair = rest[:colon], rest[colon + 1 :]
        if id_of("dataset", *Naming().name_of(*pair)) in own_names:
            return pair
    return node.namespace, node.name


@router.get("/lineage", response_model=NodeGraph, responses=refused(404))
def get_lineage(query: Annotated[NodeQuery, InQuery()], session: ReadSession) -> Answer:
    """Return the jobs and datasets around a node.

    What it comes from and what is made of it, through so many jobs.
    """
    now = session.micros
    with session.connected() as connection:
        start = start_of(connection, query.node_id, now)
        lineage = lineage_of(connection, Question(start.node, start.view, depth=query.depth + 1))
        data = _data(connection, lineage["nodes"], now)
    if str(start.node) not in data:
        raise NotFoundError(f"deleted: {query.node_id}")
    names = {id_: start.asked if id_ == str(start.node) else id_ for id_ in data}
    if start.asked != str(start.node):
        data[str(start.node)] = called(data[str(start.node)], start.namespace, start.name)
    graph = _graph(data, lineage["edges"], names)
    return {
        "graph": graph,
        "complete": lineage["complete"],
        "truncatedBy": lineage["truncatedBy"],
        "asOf": lineage["asOf"],
    }


def _data(connection: Connection, nodes: list[Answer], now: int) -> dict[str, Answer]:
    """Return the datasets and jobs of a graph by their ids, without deleted ones."""
    names: dict[int, str] = {}
    of_type: dict[str, list[int]] = {"dataset": [], "job": []}
    for node in nodes:
        id_ = id_of(node["type"], node["namespace"], node["name"])
        names[id_] = node["id"]
        of_type[node["type"]].append(id_)
    datasets = rows_of(connection, of_type["dataset"])
    jobs = job_rows(connection, of_type["job"])
    answers = dataset_answers(connection, list(datasets.values()), now, whole=False)
    answers |= job_answers(connection, list(jobs.values()), now, whole=False)
    return {name: answers[id_] for id_, name in names.items() if id_ in answers}


def _link(data: Mapping[str, Answer], source: str, target: str) -> None:
    """Note a dataset with the job that reads or writes it. A view has no job."""
    if target.startswith("job:"):
        data[target]["inputs"].append(data[source]["id"])
    elif source.startswith("job:"):
        data[source]["outputs"].append(data[target]["id"])


def _graph(
    data: Mapping[str, Answer], edges: list[Answer], names: Mapping[str, str]
) -> list[Answer]:
    """Nodes with their edges; an edge that leaves the answer is cut."""
    nodes: dict[str, Answer] = {
        id_: {
            "id": names[id_],
            "type": id_.partition(":")[0].upper(),
            "data": answer,
            "inEdges": [],
            "outEdges": [],
        }
        for id_, answer in data.items()
    }
    for edge in edges:
        if edge["source"] in nodes and edge["target"] in nodes:
            _link(data, edge["source"], edge["target"])
            ends = {"origin": names[edge["source"]], "destination": names[edge["target"]]}
            nodes[edge["source"]]["outEdges"].append(ends)
            nodes[edge["target"]]["inEdges"].append(ends)
    return sorted(nodes.values(), key=lambda node: node["id"])
