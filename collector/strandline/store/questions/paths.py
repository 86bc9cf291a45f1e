"""The ways from one node to another: between tables and jobs, or between columns."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Connection

from strandline.core.routes import Routes, routes
from strandline.core.walk import Direction, Graph, Walk, WalkStep, walk
from strandline.store.lineage.column_edges import Column
from strandline.store.lineage.column_lineage import (
    Columns,
    columns_answer,
    shown_columns,
    starts_of,
)
from strandline.store.lineage.known_jobs import KnownJobs
from strandline.store.lineage.lookup import Node
from strandline.store.lineage.run_state import View
from strandline.store.lineage.table_graph import Question, TableGraph, jobs_for
from strandline.store.lineage.table_lineage import answer_of, node_ids
from strandline.store.questions.selection import Selection
from strandline.store.sql.engine import by_index

Answer = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Way:
    """A question for the paths from one node (or a column of it) to another."""

    first: Node
    last: Node
    view: View
    depth: int | None
    most: int
    columns: tuple[str | None, str | None] = (None, None)
    by_column: bool = False


def paths_between(connection: Connection, way: Way) -> Answer:
    """All that lies on a way, as a graph, and a shortest way as a list of nodes.

    Without a way the list is empty.
    """
    by_index(connection)
    return _of_columns(connection, way) if way.by_column else _of_tables(connection, way)


def selected_paths(
    connection: Connection, answer: Answer, last: Node, selection: Selection
) -> Answer:
    """Return the answer with the selected nodes and both ends.

    The shortest way leaves out hidden nodes.
    """
    ends = [
        node["id"]
        for node in answer["nodes"]
        if (node["namespace"], node["name"]) == (last.namespace, last.name)
    ]
    shown = selection.of(connection, answer, [*ends, *answer["shortest"][-1:]])
    hidden = {node["id"] for node in answer["nodes"]} - {node["id"] for node in shown["nodes"]}
    return shown | {"shortest": [id_ for id_ in answer["shortest"] if id_ not in hidden]}


def _of_tables(connection: Connection, way: Way) -> Answer:
    known = KnownJobs(connection, way.view)
    first, last = (
        jobs_for(connection, node, known) if node.kind == "job" else [node.id]
        for node in (way.first, way.last)
    )
    jobs = frozenset(
        id_
        for node, ids in ((way.first, first), (way.last, last))
        if node.kind == "job"
        for id_ in ids
    )
    graph = TableGraph(known, jobs, starts=frozenset([*first, *last]))
    routes, whole = _between(graph, first, last, way, _itself)
    for shown, step in routes.steps.items():
        graph.reasons[shown] = graph.reasons[step]
    question = Question(way.first, way.view, Direction.DOWNSTREAM, way.depth, way.most)
    answer = answer_of(connection, graph, whole, question)
    return answer | {"shortest": node_ids(connection, routes.shortest)}


Around = Callable[[Any], Iterable[Any]]
"""Return a node and what it is a part of."""


def _between(
    graph: Graph[Any], first: Sequence[Any], last: Sequence[Any], way: Way, around: Around
) -> tuple[Routes[Any], Walk[Any]]:
    """Return the routes, and all that lies on one; without a route both ends."""
    routes, walked = _found(graph, first, last, way, around)
    nodes = routes.distances or dict.fromkeys((first[0], last[0]), 0)
    whole = Walk(nodes, dict.fromkeys(routes.steps), walked.truncated_by)
    whole.left_out = walked.left_out - whole.nodes.keys()
    return routes, whole


def _found(
    graph: Graph[Any], first: Sequence[Any], last: Sequence[Any], way: Way, around: Around
) -> tuple[Routes[Any], Walk[Any]]:
    """Walk back from the end, as most have few sources.

    Where that is cut, on from the beginning as well.
    """
    back = walk(graph, last, Direction.UPSTREAM, way.depth, way.most)
    if back.truncated_by in (None, "depth"):
        return routes(back.steps, _met(first, back, around), last), back
    onwards = walk(graph, first, Direction.DOWNSTREAM, way.depth, way.most)
    if onwards.truncated_by in (None, "depth"):
        return routes(onwards.steps, first, _met(last, onwards, around)), onwards
    steps: dict[WalkStep[Any], None] = back.steps | onwards.steps
    return routes(steps, _met(first, back, around), _met(last, onwards, around)), back


def _met(ends: Sequence[Any], walked: Walk[Any], around: Around) -> list[Any]:
    """The ends, and what a walk found in their place.

    The whole table for a column of it, a column for the whole table.
    """
    known, wholes = set(ends), {whole for end in ends for whole in around(end)}
    met = [node for node in walked.nodes if node in wholes or not known.isdisjoint(around(node))]
    return list(dict.fromkeys([*ends, *met]))


def _itself(node: int) -> tuple[int]:
    return (node,)


def _around_column(node: Column) -> Iterator[Column]:
    """Yield the whole table of a column, the columns that it is a field of, and itself."""
    dataset, column = node
    yield dataset, ""
    for place, sign in enumerate(column):
        if sign == ".":
            yield dataset, column[:place]
    yield node


def _of_columns(connection: Connection, way: Way) -> Answer:
    named = zip((way.first, way.last), way.columns, strict=True)
    question = Question(way.first, way.view, Direction.DOWNSTREAM, way.depth, way.most)
    graph = Columns(KnownJobs(connection, way.view), replace(question, direction=Direction.BOTH))
    first, last = (starts_of(graph, node, column) for node, column in named)
    graph.asked = question
    graph.jobs = frozenset(
        id_
        for node, ids in ((way.first, first), (way.last, last))
        if node.kind == "job"
        for id_, _ in ids
    )
    graph.starts = frozenset([dataset for dataset, _ in (*first, *last)])
    routes, whole = _between(graph, first, last, way, _around_column)
    for shown, step in routes.steps.items():
        graph.origins[shown] = graph.origins[step]
    ends = [end for end in (*first, *last) if end in whole.nodes]
    columns = shown_columns(connection, graph, whole, ends)
    shortest = [name for node in routes.shortest if (name := columns.id_of(node)) is not None]
    return columns_answer(connection, columns) | {"shortest": shortest}
