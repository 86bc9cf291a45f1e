"""The changes of a graph between two moments.

Datasets, jobs, columns, edges between them and between columns.

Both moments are asked of the same datasets, those that a walk finds at either, so that a limit
makes nothing seem to have come or gone.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sqlalchemy import Connection

from strandline.core.changes.extraction import SINK, SOURCE
from strandline.core.labels import label_of
from strandline.core.walk import MOST_NODES, Direction, Walk
from strandline.store.lineage.column_edges import Column, edges_of
from strandline.store.lineage.known_jobs import KnownJobs
from strandline.store.lineage.lookup import Node, node_text
from strandline.store.lineage.nested_commands import without_nested
from strandline.store.lineage.relations import job_edges_of, jobs_touching
from strandline.store.lineage.run_state import View, iso
from strandline.store.lineage.table_graph import Question, TableGraph, walk_tables
from strandline.store.lineage.table_lineage import nodes_of
from strandline.store.questions.past_schemas import ColumnChange, column_changes
from strandline.store.questions.selection import Selection
from strandline.store.sql.engine import by_index

Answer = dict[str, Any]
Change = tuple[Any, ...]
Nodes = dict[str, Answer]  # by their ids, columns among them

ADDED, REMOVED, CHANGED = "added", "removed", "changed"
KINDS = ("dataset", "job", "column", "edge", "columnEdge")
MOST_STEPS = 200_000


@dataclass(frozen=True, slots=True)
class Span:
    """A question at two moments.

    The graph around some nodes, or else that of these datasets and their jobs.
    """

    nodes: tuple[Node, ...]
    datasets: tuple[int, ...]
    since: View
    until: View
    direction: Direction = Direction.BOTH
    depth: int | None = None
    most: int = MOST_NODES
    by_column: bool = False
    selection: Selection = field(default_factory=Selection)


def differences(connection: Connection, span: Span) -> Answer:
    """Return a line for each dataset, job and edge that is there at one of the moments only."""
    by_index(connection)
    walks = [_walk(connection, span, view) for view in (span.since, span.until)]
    datasets = _datasets(connection, {node for walk in walks for node in walk.nodes})
    before, after = (
        _table_changes(connection, view, datasets) for view in (span.since, span.until)
    )
    if span.by_column:
        before, after = (
            shown | _column_edges(connection, view, datasets)
            for shown, view in ((before, span.since), (after, span.until))
        )
    nodes: Nodes = {}
    lines = ((REMOVED, before - after), (ADDED, after - before))
    every = [
        line
        for change, line_items in lines
        for line in _lines(connection, change, line_items, nodes)
    ]
    schemas, unclear = _schemas(connection, span, before & after, nodes)
    every += schemas
    items = _selected(connection, every, nodes, span.selection)
    counted = Counter(item["change"] for item in items)
    cut = next((walk.truncated_by for walk in walks if not walk.complete), None)
    left_out = {node for walk in walks for node in walk.left_out} - set(datasets)
    return {
        "since": iso(span.since.at),
        "until": iso(span.until.at),
        "items": sorted(
            items,
            key=lambda change: (KINDS.index(change["kind"]), change["change"], _order(change)),
        ),
        "labels": {id_: label_of(nodes[id_]) for id_ in _nodes_in(items)},
        "added": counted[ADDED],
        "removed": counted[REMOVED],
        "changed": counted[CHANGED],
        "complete": cut is None,
        "truncatedBy": cut,
        "hidden": {"nodes": len(left_out), "schemas": unclear, "filtered": len(every) - len(items)},
    }


def _selected(
    connection: Connection, lines: list[Answer], nodes: Nodes, selection: Selection
) -> list[Answer]:
    """The lines about nodes that are selected.

    Of an edge both ends are of the kinds, and either is selected by all else.
    """
    of_kind = [
        line for line in lines if not selection.kinds or _kinds(line, nodes) <= set(selection.kinds)
    ]
    rest = replace(selection, kinds=())
    if rest.is_empty:
        return of_kind
    wanted = {
        node["id"] for node in rest.items(connection, [nodes[id_] for id_ in _nodes_in(of_kind)])
    }
    return [line for line in of_kind if not wanted.isdisjoint(_ends(line))]


def _ends(line: Answer) -> list[str]:
    """The node that a line is about, or the two that it joins."""
    return [line[name] for name in ("id", "source", "target") if line[name]]


def _kinds(line: Answer, nodes: Nodes) -> set[str]:
    return {nodes[id_]["type"] for id_ in _ends(line)}


def _nodes_in(lines: Iterable[Answer]) -> list[str]:
    """Return the nodes that lines name, each once, with the jobs of edges between columns."""
    return list(dict.fromkeys(id_ for line in lines for id_ in (*_ends(line), line["job"]) if id_))


def _order(line: Answer) -> tuple[str, ...]:
    return tuple(str(line[name] or "") for name in ("id", "target", "source", "job"))


def _walk(connection: Connection, span: Span, view: View) -> Walk[int]:
    if not span.nodes:
        return Walk(dict.fromkeys(span.datasets, 0))
    node, *others = span.nodes
    question = Question(node, view, span.direction, span.depth, span.most, others=tuple(others))
    return walk_tables(connection, question, KnownJobs(connection, view)).found


def _datasets(connection: Connection, ids: Iterable[int]) -> list[int]:
    return [
        id_
        for id_, node in nodes_of(connection, dict.fromkeys(ids, 0)).items()
        if node["type"] == "dataset"
    ]


def _table_changes(connection: Connection, view: View, datasets: Sequence[int]) -> set[Change]:
    """The edges that end in these datasets on both sides, and what they join."""
    among, changes = set(datasets), set[Change]()
    graph = TableGraph(KnownJobs(connection, replace(view, past=True)))
    for way in Direction.BOTH.ways:
        for step in graph.steps(datasets, way, MOST_STEPS) if datasets else ():
            if step.is_view:
                if among.issuperset((step.source, step.target)):
                    changes |= {("edge", step.source, step.target)}
                    changes |= {("dataset", step.source), ("dataset", step.target)}
                continue
            if step.source in among:
                changes |= {
                    ("edge", step.source, step.via),
                    ("dataset", step.source),
                    ("job", step.via),
                }
            if step.target in among:
                changes |= {
                    ("edge", step.via, step.target),
                    ("dataset", step.target),
                    ("job", step.via),
                }
    return changes


def _column_edges(connection: Connection, view: View, datasets: Sequence[int]) -> set[Change]:
    among = set(datasets)
    jobs = {
        job
        for way in (SOURCE, SINK)
        for job in jobs_touching(connection, datasets, way, MOST_STEPS)
    }
    job_edges = without_nested(
        connection, job_edges_of(connection, replace(view, past=True), list(jobs))
    )
    return {
        ("columnEdge", edge.source, edge.job, edge.target, edge.how.dependency, edge.how.transform)
        for edge in edges_of(connection, job_edges, until=view.at)
        if edge.source is not None and edge.source[0] in among and edge.target[0] in among
    }


def _schemas(
    connection: Connection, span: Span, lasting: Iterable[Change], nodes: Nodes
) -> tuple[list[Answer], int]:
    """Return a line for each column that came, went or changed its type.

    Only of the datasets that are there at both moments.
    """
    both = {schema[1] for schema in lasting if schema[0] == "dataset"}
    if not span.by_column or not both:
        return [], 0
    changes, unclear = column_changes(connection, span.since.at, span.until.at, both)
    named = nodes_of(connection, dict.fromkeys((change.dataset for change in changes), 0))
    return [
        _column_line(change, _named(named[change.dataset], change.column, nodes))
        for change in changes
    ], unclear


def _column_line(column_change: ColumnChange, id_: str) -> Answer:
    change = (
        ADDED
        if column_change.before is None
        else REMOVED
        if column_change.after is None
        else CHANGED
    )
    return (
        {"change": change, "kind": "column"}
        | NOTHING
        | {"id": id_, "before": column_change.before, "after": column_change.after}
    )


def _named(node: Answer, column: str, nodes: Nodes) -> str:
    """The id of a node, or of its column, which is noted."""
    if not column:
        nodes[node["id"]] = node
        return str(node["id"])
    id_ = f"{node_text('column', node['namespace'], node['name'])}:{column}"
    nodes[id_] = node | {"id": id_, "type": "column", "column": column}
    return id_


def _lines(
    connection: Connection, change: str, changes_found: Iterable[Change], nodes: Nodes
) -> list[Answer]:
    changes = list(changes_found)
    ids = {
        end if isinstance(end, int) else end[0]
        for change in changes
        for end in change[1:4]
        if not isinstance(end, str)
    }
    names = nodes_of(connection, dict.fromkeys(ids, 0))

    def name(end: int | Column) -> str:
        id_, column = (end, "") if isinstance(end, int) else end
        return _named(names[id_], column, nodes)

    return [{"change": change, "kind": entry[0]} | _line(entry, name) for entry in changes]


NOTHING = dict.fromkeys(
    ("id", "source", "target", "job", "dependency", "transform", "before", "after")
)


def _line(change: Change, name: Callable[[Any], str]) -> Answer:
    match change:
        case ("edge", source, target):
            return NOTHING | {"source": name(source), "target": name(target)}
        case ("columnEdge", source, job, target, dependency, transform):
            ends = {"source": name(source), "target": name(target), "job": name(job)}
            return NOTHING | ends | {"dependency": dependency, "transform": transform or None}
    return NOTHING | {"id": name(change[1])}
