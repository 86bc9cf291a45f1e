"""Lineage from column to column, with the expression that made one from the other.

A sink whose job states no columns (its step is opaque) depends on whole sources: a node without column stands for all columns
of its dataset, so a walk goes on through it. So does an origin that every column of a sink has (a filter, a join).
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, NamedTuple

from sqlalchemy import Connection, Select, select

from strandline.core.changes import edges
from strandline.core.changes.edges import NOTHING_SAID, edges_in
from strandline.core.changes.extraction import SINK, SOURCE
from strandline.core.openlineage.facets import DATASET
from strandline.core.walk import Direction, Step, Walk, walk
from strandline.errors import NotFoundError
from strandline.store.lineage.facets import value_of
from strandline.store.lineage.failures import opaque_steps
from strandline.store.lineage.hidden import Looked
from strandline.store.lineage.hidden_nodes import hidden_beside
from strandline.store.lineage.lookup import MOST_CANDIDATES, Node, node_text
from strandline.store.lineage.nested_commands import without_nested
from strandline.store.lineage.relations import Related, Seen, jobs_called, jobs_touching, relations_of
from strandline.store.lineage.table_graph import ALL_SOURCES, RULES, by_job, seen_in, stated_sources
from strandline.store.lineage.table_lineage import Answer, Question, in_order, nodes_of, outcome, seen_answer
from strandline.store.schema.tables import datasets, edge_columns, edge_uses
from strandline.store.sql.compression import expand
from strandline.store.sql.engine import by_index
from strandline.store.sql.id_lists import among

DIRECT, INDIRECT, OPAQUE = "direct", "indirect", "opaque"
DEPENDENCIES = (OPAQUE, INDIRECT, DIRECT)
"""How a column depends on another, the strongest last: by its value, by being there (a filter, a join), or perhaps, because
no column lineage says otherwise."""

Column = tuple[int, str]  # (canonical dataset, column), '' for all of them; or (job, '')


class Origin(NamedTuple):
    """How a column comes from another."""

    rule: str
    type: str
    subtype: str
    transform: str
    masking: int | None

    @property
    def is_opaque(self) -> bool:
        """Whether it is only known that the dataset was read."""
        return self.rule == ALL_SOURCES

    @property
    def dependency(self) -> str:
        """Which of the three it is."""
        if self.is_opaque:
            return OPAQUE
        return INDIRECT if self.type.upper() == "INDIRECT" else DIRECT


class Said(NamedTuple):
    """An edge as it was stated, by a rule, from a dataset that stands for its group of names."""

    edge: edges.Edge
    rule: int
    source: int


class Edge(NamedTuple):
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
    origins: dict[Step[Column], dict[Origin, Seen]] = field(default_factory=dict)
    looked: Looked = field(default_factory=Looked)
    left_out: set[tuple[Step[Column], Origin]] = field(default_factory=set)  # edges of other dependencies

    def steps(self, nodes: Sequence[Column], way: Direction, limit: int) -> Sequence[Step[Column]]:
        """See core.lineage.Graph."""
        every = relations_of(self.connection, self.asked.view, self._jobs(nodes, way, limit))
        touched = without_nested(self.connection, every, self.jobs)
        found: dict[Step[Column], dict[Origin, Seen]] = {}
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
        starts, direction = self.jobs.intersection(ids), SINK if way is Direction.UPSTREAM else SOURCE
        others = list(ids - starts)
        return [*starts, *(jobs_touching(self.connection, others, direction, limit) if others else ())]


def _between_datasets(step: Step[Column]) -> Step[int]:
    source, target = (None if end is None else end[0] for end in (step.source, step.target))
    return Step(source, step.via[0], target)


def column_lineage_of(connection: Connection, asked: Question, column: str | None = None) -> Answer:
    """The lineage of one column of a dataset, or of all, or of all that a job makes."""
    by_index(connection)
    starts = [start for node in asked.starts for start in starts_of(connection, node, column)]
    called = frozenset(job for node in asked.starts if node.kind == "job" for job, _ in starts_of(connection, node))
    graph = Columns(connection, asked, called)
    found = walk(graph, starts, asked.direction, asked.depth, asked.most)
    if column is not None and not found.steps:
        refuse_unknown(connection, asked.node, column)
    answer = columns_answer(connection, graph, found, starts)
    del answer["names"]
    return answer


def columns_answer(connection: Connection, graph: Columns, found: Walk[Column], starts: Sequence[Column]) -> Answer:
    """What a walk found, as JSON shows it; `names`: what each column and job is called there."""
    jobs = {step.via for step in found.steps} | {start for start in starts if start[0] in graph.jobs}
    names = nodes_of(connection, dict.fromkeys((node for node, _ in found.nodes), 0))
    shown_at = {node: distance for node, distance in found.nodes.items() if node not in jobs and node[0] in names}
    nodes = {node: _node(node, distance, names) for node, distance in shown_at.items()}
    edges = in_order(_answers(connection, found.steps, nodes, names, graph.origins))
    in_distance = sorted(nodes.values(), key=lambda node: (node["distance"], node["id"]))
    shown = strongest(in_distance, edges, graph.asked.direction)
    by_id = {node["id"]: {name: node[name] for name in ("id", "type", "namespace", "name")} for node in names.values()}
    whole = outcome(
        found, graph.asked.view, graph.looked.hidden(connection, graph.asked.view), hidden_beside(connection, names)
    )
    whole["hidden"]["dependencies"] = len(graph.left_out)
    called = {node: one["id"] for node, one in nodes.items()} | {job: names[job[0]]["id"] for job in jobs}
    of_edges = sorted({edge["job"] for edge in edges})
    return {"nodes": shown, "edges": edges, "jobs": [by_id[job] for job in of_edges], "names": called} | whole


def strongest(nodes: list[Answer], edges: Iterable[Answer], direction: Direction) -> list[Answer]:
    """The nodes, each with its strongest dependency: of the ways from a start the best, of each way the weakest edge."""
    near: dict[Direction, dict[str, list[tuple[str, str]]]] = {way: defaultdict(list) for way in direction.ways}
    for edge in edges:
        for way, onwards in near.items():
            here, there = ("target", "source") if way is Direction.UPSTREAM else ("source", "target")
            onwards[edge[here]].append((edge[there], edge["dependency"]))
    starts = [node["id"] for node in nodes if node["distance"] == 0]
    best: dict[str, str] = {}
    for admitted in (DEPENDENCIES[2:], DEPENDENCIES[1:], DEPENDENCIES):
        for onwards in near.values():
            for node in _reached(starts, onwards, frozenset(admitted)):
                best.setdefault(node, admitted[0])
    return [node | {"dependency": best.get(node["id"]) if node["distance"] else None} for node in nodes]


def _reached(starts: Iterable[str], onwards: Mapping[str, list[tuple[str, str]]], admitted: frozenset[str]) -> set[str]:
    found = set(starts)
    waiting = list(found)
    while waiting:
        for node, dependency in onwards.get(waiting.pop(), ()):
            if dependency in admitted and node not in found:
                found.add(node)
                waiting.append(node)
    return found


def starts_of(connection: Connection, node: Node, column: str | None = None) -> list[Column]:
    """The column of a node, or all its columns; a job starts with all that it makes."""
    if node.kind == "job":
        return [(job, "") for job in jobs_called(connection, node.id)]
    if column is not None:
        return [(node.id, column)]
    return [(node.id, name) for name in columns_of(connection, node)] or [(node.id, "")]


def refuse_unknown(connection: Connection, dataset: Node, column: str) -> None:
    """A misspelt column would seem to come from nothing; one inside of another is known by that."""
    known = columns_of(connection, dataset) if dataset.kind == "dataset" else []
    if known and column not in known and column.partition(".")[0] not in known:
        raise NotFoundError(
            f"unknown column of {dataset}: {column!r}", get_close_matches(column, known) or known[:MOST_CANDIDATES]
        )


def columns_of(connection: Connection, dataset: Node) -> list[str]:
    """The columns of a dataset: of its schema, else those that edges into it name."""
    ids = list(connection.scalars(select(datasets.c.id).where(datasets.c.canonical_id == dataset.id)))
    schema = value_of(connection, DATASET, ids, "schema")
    named = [one.name for one in (schema and schema.fields) or () if one.name]
    stated = (
        select(edge_columns.c.columns)
        .distinct()
        .join(edge_uses, edge_uses.c.set_hash == edge_columns.c.set_hash)
        .where(edge_uses.c.sink_id.in_(ids))
    )
    return named or sorted(
        {edge.sink_column for columns in connection.scalars(stated) for edge in edges_in(expand(columns))} - {""}
    )


def edges_of(connection: Connection, touched: Sequence[Related]) -> Iterator[Edge]:
    """All edges of the jobs: as stated for each sink by its strongest rule, and whole sources as graphs.py has them."""
    stated = _stated(connection, {one.run for one in touched if one.direction == SINK})
    sources = stated_sources(connection, touched)
    for job in by_job(touched):
        for sink in job.written:
            use, read = (sink.run, sink.dataset), job.sources_of(sink)
            yield from (_edge(sink, row) for row in stated.get(use, ()))
            yield from _whole(sink, sources[use].without_columns(read) if use in sources else read)


def _stated(connection: Connection, runs: Iterable[int]) -> dict[tuple[int, int], list[Said]]:
    """The edges into each sink of a run, in the order in which they were stated."""
    found: dict[tuple[int, int], tuple[int, list[Any]]] = {}
    for row in connection.execute(_strongest_last(runs)):
        rule, known = found.setdefault((row.run_id, row.sink), (row.rule, []))
        if rule < row.rule:
            known = []
            found[row.run_id, row.sink] = row.rule, known
        known.append(row)
    return {sink: _unpacked(rule, rows) for sink, (rule, rows) in found.items()}


def _unpacked(rule: int, rows: Iterable[Any]) -> list[Said]:
    known = [row for row in rows if row.source is not None]
    return sorted(Said(edge, rule, row.source) for row in known for edge in edges_in(expand(row.columns)))


def _strongest_last(runs: Iterable[int]) -> Select[Any]:
    sinks = datasets.alias("sinks")
    ends = (sinks.c.canonical_id.label("sink"), datasets.c.canonical_id.label("source"))
    return (
        select(edge_uses.c.run_id, edge_uses.c.rule, *ends, edge_columns.c.columns)
        .join_from(edge_uses, sinks, sinks.c.id == edge_uses.c.sink_id)
        .outerjoin(edge_columns, edge_columns.c.set_hash == edge_uses.c.set_hash)
        .outerjoin(datasets, datasets.c.id == edge_columns.c.source_id)
        .where(among(edge_uses.c.run_id, runs), edge_uses.c.set_hash != NOTHING_SAID.hash)
        .order_by(edge_uses.c.rule)
    )


def _whole(sink: Related, reads: Iterable[int]) -> Iterator[Edge]:
    for source in reads:
        how = Origin(ALL_SOURCES, "", "", "", None)
        yield Edge((source, ""), sink.job, (sink.dataset, ""), how, seen_in(sink))


def _edge(sink: Related, said: Said) -> Edge:
    edge = said.edge
    how = Origin(RULES.get(said.rule, ALL_SOURCES), edge.type, edge.subtype, edge.transform, edge.masking)
    return Edge((said.source, edge.source_column), sink.job, (sink.dataset, edge.sink_column), how, seen_in(sink))


def _leaving(
    found: Iterable[Edge], nodes: Sequence[Column], way: Direction
) -> Iterator[tuple[Step[Column], Origin, Seen]]:
    """Edges that leave the nodes; the near end is the node asked for, so that the answer hangs together."""
    here: dict[int, list[str]] = defaultdict(list)
    for dataset, column in nodes:
        here[dataset].append(column)
    for edge in found:
        via = (edge.job, "")
        if edge.job in here:
            yield Step(edge.source, via, edge.target), edge.how, edge.seen
            continue
        near = edge.target if way is Direction.UPSTREAM else edge.source
        for column in here.get(near[0], ()) if near else ():
            if near and meet(column, near[1]):
                start = (near[0], column)
                ends = (edge.source, start) if way is Direction.UPSTREAM else (start, edge.target)
                yield Step(ends[0], via, ends[1]), edge.how, edge.seen


def meet(column: str, other: str) -> bool:
    """Whether what is in one column may be in the other: all columns, the same one, or a field of it (`item.sku`)."""
    if not column or not other or column == other:
        return True
    return column.startswith(f"{other}.") or other.startswith(f"{column}.")


def _node(node: Column, distance: int, names: Mapping[int, Answer]) -> Answer:
    name = names[node[0]]
    if not node[1]:
        return name | {"distance": distance, "column": None}
    id_ = f"{node_text('column', name['namespace'], name['name'])}:{node[1]}"
    return name | {"id": id_, "type": "column", "column": node[1], "distance": distance}


def _answers(
    connection: Connection,
    steps: Iterable[Step[Column]],
    nodes: Mapping[Column, Answer],
    names: Mapping[int, Answer],
    origins: Mapping[Step[Column], Mapping[Origin, Seen]],
) -> list[Answer]:
    shown = [step for step in steps if step.source in nodes and step.target in nodes]
    opaque = {run for step in shown for how, seen in origins[step].items() if how.is_opaque for run in seen.owners}
    unfollowed = opaque_steps(connection, opaque)
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
    said = {"type": how.type or None, "subtype": how.subtype or None, "transform": how.transform or None}
    masking = None if how.masking is None else bool(how.masking)
    of_rule = {"rule": how.rule, "opaque": how.is_opaque, "dependency": how.dependency}
    return of_rule | said | {"masking": masking}
