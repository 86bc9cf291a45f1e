"""Lineage from column to column, with the expression that made one from the other.

A sink whose job states no columns (its step is opaque) depends on whole sources: a node without
column stands for all columns of its dataset, so a walk goes on through it. So does an origin that
every column of a sink has (a filter, a join).
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import NamedTuple

from sqlalchemy import Connection, select

from strandline.core.changes.edges import edges_in
from strandline.core.changes.extraction import SINK, SOURCE
from strandline.core.openlineage.facets import DATASET
from strandline.core.walk import Direction, Walk, WalkStep, walk
from strandline.errors import NotFoundError
from strandline.store.lineage.edge_sets import SetUse, edge_sets_of
from strandline.store.lineage.facets import value_of
from strandline.store.lineage.failures import opaque_steps
from strandline.store.lineage.hidden import Looked
from strandline.store.lineage.hidden_nodes import hidden_beside
from strandline.store.lineage.job_steps import ALL_SOURCES, RULES, by_job, sources_in
from strandline.store.lineage.lookup import MOST_CANDIDATES, Node, node_text
from strandline.store.lineage.nested_commands import without_nested
from strandline.store.lineage.relations import (
    JobEdge,
    Seen,
    View,
    all_jobs_touching,
    job_edges_of,
    jobs_touching,
    with_known_runs,
)
from strandline.store.lineage.stated_edges import StatedEdge, StatedEdges
from strandline.store.lineage.table_edges import seen_answer
from strandline.store.lineage.table_lineage import (
    Answer,
    Question,
    in_order,
    jobs_for,
    nodes_of,
    outcome,
)
from strandline.store.schema.tables import datasets, edge_columns, edge_uses
from strandline.store.sql.compression import expand
from strandline.store.sql.engine import by_index

DIRECT, INDIRECT, OPAQUE = "direct", "indirect", "opaque"
DEPENDENCIES = (OPAQUE, INDIRECT, DIRECT)
"""How a column depends on another, the strongest last: by its value, by being there (a filter, a join), or perhaps, because
no column lineage says otherwise."""

JOBS_AT_ONCE = 1_000  # that are asked which columns a dataset had at a past moment
Column = tuple[int, str]  # (canonical dataset, column), '' for all of them; or (job, '')


class Origin(NamedTuple):
    """How a column comes from another."""

    rule: str
    type: str
    subtype: str
    transform: str
    masking: int | None
    is_opaque: bool  # it is only known that the dataset was read

    @property
    def dependency(self) -> str:
        """Which of the three it is."""
        if self.is_opaque:
            return OPAQUE
        return INDIRECT if self.type.upper() == "INDIRECT" else DIRECT


class ColumnEdge(NamedTuple):
    """An edge of columns that a job has."""

    source: Column | None
    job: int
    target: Column
    how: Origin
    seen: Seen


@dataclass(slots=True)
class Columns:
    """The graph of columns; `origins` has those of all steps that were asked for, and when each was seen."""

    connection: Connection
    asked: Question
    jobs: frozenset[int] = frozenset()  # where the walk starts, if that is a job
    origins: dict[WalkStep[Column], dict[Origin, Seen]] = field(default_factory=dict)
    looked: Looked = field(default_factory=Looked)
    left_out: set[tuple[WalkStep[Column], Origin]] = field(
        default_factory=set
    )  # edges of other dependencies

    def steps(
        self, nodes: Sequence[Column], way: Direction, limit: int
    ) -> Sequence[WalkStep[Column]]:
        """See core.lineage.Graph."""
        self.asked = replace(self.asked, view=with_known_runs(self.connection, self.asked.view))
        every = job_edges_of(self.connection, self.asked.view, self._jobs(nodes, way, limit))
        touched = without_nested(self.connection, every, self.jobs)
        found: dict[WalkStep[Column], dict[Origin, Seen]] = {}
        for step, how, seen in _leaving(edges_of(self.connection, touched), nodes, way):
            if self.asked.dependencies and how.dependency not in self.asked.dependencies:
                self.left_out.add((step, how))
                continue
            if step not in found and len(found) == limit:
                break
            of_step = found.setdefault(step, {})
            of_step[how] = of_step[how].joined(seen) if how in of_step else seen
        self.origins |= found
        steps = {_between_datasets(step) for step in found}
        self.looked.add({node for node, _ in nodes}, self.jobs, way, every, steps)
        return list(found)

    def _jobs(self, nodes: Sequence[Column], way: Direction, limit: int) -> list[int]:
        ids = {node for node, _ in nodes}
        starts, direction = (
            self.jobs.intersection(ids),
            SINK if way is Direction.UPSTREAM else SOURCE,
        )
        others = list(ids - starts)
        return [
            *starts,
            *(jobs_touching(self.connection, others, direction, limit) if others else ()),
        ]


def _between_datasets(step: WalkStep[Column]) -> WalkStep[int]:
    source, target = (None if end is None else end[0] for end in (step.source, step.target))
    return WalkStep(source, step.via[0], target)


def column_lineage_of(connection: Connection, asked: Question, column: str | None = None) -> Answer:
    """The lineage of one column of a dataset, or of all, or of all that a job makes."""
    by_index(connection)
    of_nodes = [(node, starts_of(connection, node, asked.view, column)) for node in asked.starts]
    starts = [start for _, of_node in of_nodes for start in of_node]
    called = frozenset(
        job for node, of_node in of_nodes if node.kind == "job" for job, _ in of_node
    )
    graph = Columns(connection, asked, called)
    found = walk(graph, starts, asked.direction, asked.depth, asked.most)
    if column is not None and not found.steps and not asked.view.past:
        refuse_unknown(connection, asked.node, column)
    answer = columns_answer(connection, graph, found, starts)
    del answer["names"]
    return answer


def columns_answer(
    connection: Connection, graph: Columns, found: Walk[Column], starts: Sequence[Column]
) -> Answer:
    """What a walk found, as JSON shows it; `names`: what each column and job is called there."""
    jobs = {step.via for step in found.steps} | {
        start for start in starts if start[0] in graph.jobs
    }
    names = nodes_of(connection, dict.fromkeys((node for node, _ in found.nodes), 0))
    nodes = _nodes(found, jobs, names)
    edges = in_order(_answers(connection, found.steps, nodes, names, graph.origins))
    in_distance = sorted(nodes.values(), key=lambda node: (node["distance"], node["id"]))
    shown = strongest(in_distance, edges, graph.asked.direction)
    by_id = {node["id"]: _plain(node) for node in names.values()}
    whole = outcome(
        found,
        graph.asked.view,
        graph.looked.hidden(connection, graph.asked.view),
        hidden_beside(connection, names),
    )
    whole["hidden"]["dependencies"] = len(graph.left_out)
    called = {node: one["id"] for node, one in nodes.items()} | {
        job: names[job[0]]["id"] for job in jobs
    }
    of_edges = sorted({edge["job"] for edge in edges})
    return {
        "nodes": shown,
        "edges": edges,
        "jobs": [by_id[job] for job in of_edges],
        "names": called,
    } | whole


def _nodes(
    found: Walk[Column], jobs: Collection[Column], names: Mapping[int, Answer]
) -> dict[Column, Answer]:
    """The columns that a walk found, as JSON shows them; what a key may not see has no name."""
    shown = {node: at for node, at in found.nodes.items() if node not in jobs and node[0] in names}
    return {node: _node(node, distance, names) for node, distance in shown.items()}


def _plain(node: Answer) -> Answer:
    return {name: node[name] for name in ("id", "type", "namespace", "name")}


def _near(edges: Iterable[Answer], direction: Direction) -> list[dict[str, list[tuple[str, str]]]]:
    """For each way to walk: by node the nodes that an edge leads to, with the edge's dependency."""
    near: dict[Direction, dict[str, list[tuple[str, str]]]] = {
        way: defaultdict(list) for way in direction.ways
    }
    for edge in edges:
        for way, onwards in near.items():
            here, there = (
                ("target", "source") if way is Direction.UPSTREAM else ("source", "target")
            )
            onwards[edge[here]].append((edge[there], edge["dependency"]))
    return list(near.values())


def strongest(nodes: list[Answer], edges: Iterable[Answer], direction: Direction) -> list[Answer]:
    """The nodes, each with its strongest dependency.

    Of the ways from a start the best, of each way the weakest edge.
    """
    near = _near(edges, direction)
    starts = [node["id"] for node in nodes if node["distance"] == 0]
    best: dict[str, str] = {}
    for admitted in (DEPENDENCIES[2:], DEPENDENCIES[1:], DEPENDENCIES):
        for onwards in near:
            for node in _reached(starts, onwards, frozenset(admitted)):
                best.setdefault(node, admitted[0])
    return [
        node | {"dependency": best.get(node["id"]) if node["distance"] else None} for node in nodes
    ]


def _reached(
    starts: Iterable[str], onwards: Mapping[str, list[tuple[str, str]]], admitted: frozenset[str]
) -> set[str]:
    found = set(starts)
    waiting = list(found)
    while waiting:
        for node, dependency in onwards.get(waiting.pop(), ()):
            if dependency in admitted and node not in found:
                found.add(node)
                waiting.append(node)
    return found


def starts_of(
    connection: Connection, node: Node, view: View, column: str | None = None
) -> list[Column]:
    """The column of a node, or all its columns.

    A job starts with all that it, or what ran below it, makes.
    """
    if node.kind == "job":
        return [(job, "") for job in jobs_for(connection, node, view)]
    if column is not None:
        return [(node.id, column)]
    names = columns_of(connection, node)
    if view.past:
        names += _columns_gone(connection, node, view, names)
    return [(node.id, name) for name in names] or [(node.id, "")]


def _columns_gone(
    connection: Connection, dataset: Node, view: View, named: Sequence[str]
) -> list[str]:
    """The columns that edges of a past moment name and the newest schema does not have.

    Dropped or renamed since then.
    """
    found = columns_named(connection, dataset, view)
    return sorted(one for one in found if not any(meet(one, other) for other in named))


def columns_named(connection: Connection, dataset: Node, view: View) -> set[str]:
    """The columns of a dataset that edges of any job name."""
    found: set[str] = set()
    for jobs in all_jobs_touching(connection, dataset.id, JOBS_AT_ONCE):
        touched = without_nested(connection, job_edges_of(connection, view, jobs), frozenset())
        ends = (
            end
            for edge in edges_of(connection, touched)
            for end in (edge.source, edge.target)
            if end is not None
        )
        found |= {column for id_, column in ends if id_ == dataset.id and column}
    return found


def refuse_unknown(connection: Connection, dataset: Node, column: str) -> None:
    """A misspelt column would seem to come from nothing; one inside of another is known by that."""
    columns = columns_of(connection, dataset) if dataset.kind == "dataset" else []
    if columns and column not in columns and column.partition(".")[0] not in columns:
        raise NotFoundError(
            f"unknown column of {dataset}: {column!r}",
            get_close_matches(column, columns) or columns[:MOST_CANDIDATES],
        )


def columns_of(connection: Connection, dataset: Node) -> list[str]:
    """The columns of a dataset: of its schema, else those that edges into it name."""
    ids = list(
        connection.scalars(select(datasets.c.id).where(datasets.c.canonical_id == dataset.id))
    )
    schema = value_of(connection, DATASET, ids, "schema")
    named = [one.name for one in (schema and schema.fields) or () if one.name]
    stated = (
        select(edge_columns.c.columns)
        .distinct()
        .join(edge_uses, edge_uses.c.set_hash == edge_columns.c.set_hash)
        .where(edge_uses.c.sink_id.in_(ids))
    )
    return named or sorted(
        {
            edge.sink_column
            for columns in connection.scalars(stated)
            for edge in edges_in(expand(columns))
        }
        - {""}
    )


def edges_of(connection: Connection, touched: Sequence[JobEdge]) -> Iterator[ColumnEdge]:
    """All edges of the jobs.

    As stated for each sink (stated_edges.py), and whole sources as table_graph.py has them.

    What runs of a job state alike is given once.
    """
    sets = edge_sets_of(
        connection, {one.run for one in touched if one.direction == SINK}, columns=True
    )
    sources, stated = sources_in(sets), StatedEdges(sets)
    for job in by_job(touched).values():
        alike: dict[tuple[int, tuple[SetUse, ...], frozenset[int]], list[JobEdge]] = defaultdict(
            list
        )
        for sink in job.written:
            use, read = (sink.run, sink.dataset), job.sources_of(sink)
            whole = sources[use].without_columns(read) if use in sources else frozenset(read)
            alike[sink.dataset, stated.counting(*use), whole].append(sink)
        for (_, uses, whole), sinks in alike.items():
            seen = sinks[0].seen._replace(
                at=sinks[-1].at, owners=frozenset([one.owner for one in sinks])
            )
            yield from (_edge(sinks[0], seen, edge) for edge in stated.edges(uses))
            yield from (_whole(sinks[0], seen, source) for source in whole)


def _whole(sink: JobEdge, seen: Seen, source: int) -> ColumnEdge:
    how = Origin(ALL_SOURCES, "", "", "", None, True)
    return ColumnEdge((source, ""), sink.job, (sink.dataset, ""), how, seen)


def _edge(sink: JobEdge, seen: Seen, stated: StatedEdge) -> ColumnEdge:
    edge = stated.edge
    rule, how_it_came = (
        RULES.get(stated.rule, ALL_SOURCES),
        (edge.type, edge.subtype, edge.transform, edge.masking),
    )
    how = Origin(rule, *how_it_came, rule == ALL_SOURCES or stated.is_opaque)
    return ColumnEdge(
        (stated.source, edge.source_column), sink.job, (sink.dataset, edge.sink_column), how, seen
    )


def _leaving(
    found: Iterable[ColumnEdge], nodes: Sequence[Column], way: Direction
) -> Iterator[tuple[WalkStep[Column], Origin, Seen]]:
    """Edges that leave the nodes.

    The near end is the node asked for, so that the answer hangs together.
    """
    here: dict[int, list[str]] = defaultdict(list)
    for dataset, column in nodes:
        here[dataset].append(column)
    for edge in found:
        via = (edge.job, "")
        if edge.job in here:
            yield WalkStep(edge.source, via, edge.target), edge.how, edge.seen
            continue
        near = edge.target if way is Direction.UPSTREAM else edge.source
        for column in here.get(near[0], ()) if near else ():
            if near and meet(column, near[1]):
                start = (near[0], column)
                ends = (edge.source, start) if way is Direction.UPSTREAM else (start, edge.target)
                yield WalkStep(ends[0], via, ends[1]), edge.how, edge.seen


def meet(column: str, other: str) -> bool:
    """Whether what is in one column may be in the other.

    All columns, the same one, or a field of it (`item.sku`).
    """
    if not column or not other or column == other:
        return True
    return column.startswith(f"{other}.") or other.startswith(f"{column}.")


def _node(node: Column, distance: int, names: Mapping[int, Answer]) -> Answer:
    name = names[node[0]]
    if not node[1]:
        return name | {"distance": distance, "column": None}
    id_ = f"{node_text('column', name['namespace'], name['name'])}:{node[1]}"
    return name | {"id": id_, "type": "column", "column": node[1], "distance": distance}


def _opaque_runs(origins: Iterable[Mapping[Origin, Seen]]) -> set[int]:
    """The runs that stated an edge with opaque steps."""
    seen = (seen for of_step in origins for how, seen in of_step.items() if how.is_opaque)
    return {run for one in seen for run in one.owners}


def _answers(
    connection: Connection,
    steps: Iterable[WalkStep[Column]],
    nodes: Mapping[Column, Answer],
    names: Mapping[int, Answer],
    origins: Mapping[WalkStep[Column], Mapping[Origin, Seen]],
) -> list[Answer]:
    shown = [step for step in steps if step.source in nodes and step.target in nodes]
    unfollowed = opaque_steps(connection, _opaque_runs(origins[step] for step in shown))
    found = []
    for step in shown:
        ends = {"source": nodes[step.source]["id"], "target": nodes[step.target]["id"]}  # type: ignore[index]
        job = {"job": names[step.via[0]]["id"]}
        for how, seen in origins[step].items():
            at = {"opaqueSteps": _named_in(unfollowed, seen.owners)} if how.is_opaque else {}
            found.append(ends | job | _how(how) | at | seen_answer(seen))
    return found


def _named_in(unfollowed: Mapping[int, Sequence[str]], runs: Iterable[int]) -> list[str]:
    return sorted({step for run in runs for step in unfollowed.get(run, ())})


def _how(how: Origin) -> Answer:
    how_it_came = {
        "type": how.type or None,
        "subtype": how.subtype or None,
        "transform": how.transform or None,
    }
    masking = None if how.masking is None else bool(how.masking)
    of_rule = {"rule": how.rule, "opaque": how.is_opaque, "dependency": how.dependency}
    return of_rule | how_it_came | {"masking": masking}
