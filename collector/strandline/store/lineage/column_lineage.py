"""Lineage from column to column, with the expression that made one from the other.

A sink whose job states no columns (its step is opaque) depends on whole sources: a node without
column stands for all columns of its dataset, so a walk goes on through it. So does an origin that
every column of a sink has (a filter, a join).
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches

from sqlalchemy import Connection, func, select

from strandline.core.changes.edges import edges_in
from strandline.core.changes.extraction import SINK, SOURCE
from strandline.core.openlineage.facets import DATASET
from strandline.core.stopping import go_on
from strandline.core.walk import Direction, Walk, WalkStep, walk
from strandline.errors import NotFoundError
from strandline.store.lineage.column_edges import (
    DIRECT,
    INDIRECT,
    OPAQUE,
    Column,
    ColumnEdge,
    JobColumns,
    Origin,
    columns_of_jobs,
    uncovered,
)
from strandline.store.lineage.facets import value_of
from strandline.store.lineage.failures import opaque_steps
from strandline.store.lineage.hidden import Looked
from strandline.store.lineage.hidden_nodes import hidden_beside
from strandline.store.lineage.known_jobs import KnownJob, KnownJobs
from strandline.store.lineage.lookup import MOST_CANDIDATES, Node, node_text
from strandline.store.lineage.nested_commands import without_nested
from strandline.store.lineage.relations import (
    JobEdge,
    Seen,
    View,
    all_jobs_touching,
    job_edges_of,
    with_known_runs,
)
from strandline.store.lineage.renamed_columns import NAMED_AT, renamed_columns_of
from strandline.store.lineage.table_edges import seen_answer
from strandline.store.lineage.table_lineage import (
    Answer,
    Question,
    in_order,
    jobs_for,
    nodes_of,
    outcome,
)
from strandline.store.schema.dataset_tables import datasets
from strandline.store.schema.relation_tables import edge_columns, edge_uses
from strandline.store.schema.run_tables import runs
from strandline.store.sql.compression import expand
from strandline.store.sql.engine import by_index

# How a column depends on another, the strongest last: by its value, by being there (a filter, a
# join), or perhaps, because no column lineage says otherwise.
DEPENDENCIES = (OPAQUE, INDIRECT, DIRECT)

JOBS_AT_ONCE = 1_000  # of which the columns of a dataset are read
MOST_JOBS = 100_000  # at one dataset


@dataclass(slots=True)
class Columns:
    """The graph of columns; `origins` has those of all steps that a walk asked for.

    `jobs` are the starts of the walk that are jobs, `left_out` the edges of other dependencies.
    """

    connection: Connection
    asked: Question
    jobs: frozenset[int] = frozenset()
    starts: frozenset[int] | None = None  # datasets that the walk starts from; None: all nodes
    known: KnownJobs | None = None
    origins: dict[WalkStep[Column], dict[Origin, Seen]] = field(default_factory=dict)
    looked: Looked = field(default_factory=Looked)
    left_out: set[tuple[WalkStep[Column], Origin]] = field(default_factory=set)
    _columns: dict[int, JobColumns] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.known is None:
            view = with_known_runs(self.connection, self.asked.view)
            self.known = KnownJobs(self.connection, view)

    def steps(
        self, nodes: Sequence[Column], way: Direction, limit: int
    ) -> Sequence[WalkStep[Column]]:
        """Return the steps that leave these columns; see core.walk.Graph."""
        jobs = self._jobs_at(nodes, way, limit)
        edges = [edge for job in jobs.values() for edge in job.edges]
        origins: dict[WalkStep[Column], dict[Origin, Seen]] = {}
        for step, how, seen in self._leaving(nodes, way, self._columns_of(jobs, edges)):
            if self.asked.dependencies and how.dependency not in self.asked.dependencies:
                self.left_out.add((step, how))
                continue
            if step not in origins and len(origins) == limit:
                break
            of_step = origins.setdefault(step, {})
            of_step[how] = of_step[how].joined(seen) if how in of_step else seen
        self.origins |= origins
        steps = {_between_datasets(step) for step in origins}
        self.looked.add({node for node, _ in nodes}, self.jobs, way, edges, steps)
        return list(origins)

    def _columns_of(
        self, jobs: Mapping[int, KnownJob], edges: Sequence[JobEdge]
    ) -> dict[int, JobColumns]:
        """Return the edges of columns of these jobs, without those of nested commands."""
        shown = without_nested(self.connection, edges, self.jobs)
        until = self.asked.view.at if self.asked.view.past else None
        if len(shown) < len(edges):
            return columns_of_jobs(self.connection, shown, until)
        new = [edge for edge in edges if edge.job not in self._columns]
        if new:
            self._columns |= columns_of_jobs(self.connection, new, until)
        return {id_: self._columns[id_] for id_ in jobs if id_ in self._columns}

    def _leaving(
        self, nodes: Sequence[Column], way: Direction, columns: Mapping[int, JobColumns]
    ) -> Iterator[tuple[WalkStep[Column], Origin, Seen]]:
        """Yield the steps that leave columns, each from the column itself.

        An edge may end in a field of the column or in what it is a field of; with the column as
        its end the answer hangs together.
        """
        asked, places = set(nodes), defaultdict[int, list[tuple[int, Column]]](list)
        for place, node in enumerate(nodes):
            places[node[0]].append((place, node))
        for job, of_job in columns.items():
            via = (job, "")
            if via in asked:
                for edge in of_job.edges():
                    yield WalkStep(edge.source, via, edge.target), edge.how, edge.seen
                continue
            here = places.keys() & of_job.datasets(way)
            for _, node in sorted(one for dataset in here for one in places[dataset]):
                for edge in self._edges_at(of_job, node, way):
                    ends = (edge.source, node) if way is Direction.UPSTREAM else (node, edge.target)
                    yield WalkStep(ends[0], via, ends[1]), edge.how, edge.seen

    def _edges_at(self, job: JobColumns, node: Column, way: Direction) -> Iterator[ColumnEdge]:
        """Yield the edges of a job that leave a column.

        Which of a view's columns the job used only its tables' edges tell, so these are followed,
        unless the view itself is asked for.
        """
        yield from job.leaving(*node, way)
        if way is Direction.DOWNSTREAM and (self.starts is None or node[0] in self.starts):
            yield from job.shown_by(node[0])

    def _jobs_at(self, nodes: Sequence[Column], way: Direction, limit: int) -> dict[int, KnownJob]:
        """Return the jobs among these nodes, and those that touch the datasets among them."""
        assert self.known is not None
        ids = {node for node, _ in nodes}
        direction = SINK if way is Direction.UPSTREAM else SOURCE
        starts = self.jobs & ids
        others = ids - starts
        names = self.known.touching(others, direction, limit) if others else []
        return self.known.called([*starts, *names])

    def named(self, dataset: int, direction: Direction) -> set[str]:
        """Return the columns of a dataset that edges on these sides of it name."""
        assert self.known is not None
        names: set[str] = set()
        for way in direction.ways:
            side = SINK if way is Direction.UPSTREAM else SOURCE
            jobs = self.known.called(self.known.touching([dataset], side, MOST_JOBS))
            edges = [edge for job in jobs.values() for edge in job.edges]
            for of_job in self._columns_of(jobs, edges).values():
                names |= {
                    end[1]
                    for edge in of_job.leaving(dataset, "", way)
                    for end in (edge.source, edge.target)
                    if end is not None and end[0] == dataset
                }
        return names - {""}


def _between_datasets(step: WalkStep[Column]) -> WalkStep[int]:
    source, target = (None if end is None else end[0] for end in (step.source, step.target))
    return WalkStep(source, step.via[0], target)


def column_lineage_of(connection: Connection, asked: Question, column: str | None = None) -> Answer:
    """Return the lineage of one column of a dataset, or of all, or of all that a job makes."""
    by_index(connection)
    graph = Columns(connection, asked)
    of_nodes = [(node, starts_of(graph, node, column)) for node in asked.starts]
    starts = [start for _, of_node in of_nodes for start in of_node]
    graph.jobs = frozenset(
        job for node, of_node in of_nodes if node.kind == "job" for job, _ in of_node
    )
    graph.starts = frozenset(dataset for dataset, _ in starts)
    found = walk(graph, starts, asked.direction, asked.depth, asked.most)
    if column is not None and not found.steps and not asked.view.past:
        refuse_unknown(connection, asked.node, column, asked.view)
    answer = columns_answer(connection, graph, found, starts)
    del answer["names"]
    return answer


def columns_answer(
    connection: Connection, graph: Columns, found: Walk[Column], starts: Sequence[Column]
) -> Answer:
    """Return the result of a walk as JSON; `names` are the names of columns and jobs there."""
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
        len(graph.looked.hidden(connection, graph.asked.view)),
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


def starts_of(graph: Columns, node: Node, column: str | None = None) -> list[Column]:
    """Return the column of a node, or all its columns.

    They are those of its schema and those that edges name, whether the schema lists them or not. A
    job starts with all that it, or what ran below it, makes.
    """
    if node.kind == "job":
        return [(job, "") for job in jobs_for(graph.connection, node, graph.asked.view)]
    if column is not None:
        return [(node.id, column)]
    names = columns_of(graph.connection, node)
    direction = Direction.BOTH if graph.asked.view.past else graph.asked.direction
    names += uncovered(graph.named(node.id, direction), names)
    return [(node.id, name) for name in names] or [(node.id, "")]


def columns_named(connection: Connection, dataset: Node, view: View) -> set[str]:
    """Return the columns of a dataset that edges of any job name."""
    names: set[str] = set()
    for jobs in all_jobs_touching(connection, dataset.id, JOBS_AT_ONCE):
        shown = without_nested(connection, job_edges_of(connection, view, jobs), frozenset())
        until = view.at if view.past else None
        for of_job in columns_of_jobs(connection, shown, until).values():
            names |= {edge.target[1] for edge in of_job.into(dataset.id, "")}
            names |= {edge.source[1] for edge in of_job.out_of(dataset.id, "") if edge.source}
    return names - {""}


def refuse_unknown(connection: Connection, dataset: Node, column: str, view: View) -> None:
    """Raise NotFoundError for a column that neither the schema nor an edge has.

    A misspelt column would seem to come from nothing; a field is known by its column. A dataset
    that nothing is known to write columns into may have any.
    """
    columns = columns_of(connection, dataset) if dataset.kind == "dataset" else []
    if not columns or _is_among(column, columns):
        return
    columns += uncovered(columns_named(connection, dataset, view), columns)
    if not _is_among(column, columns):
        raise NotFoundError(
            f"unknown column of {dataset}: {column!r}",
            get_close_matches(column, columns) or columns[:MOST_CANDIDATES],
        )


def _is_among(column: str, columns: Collection[str]) -> bool:
    return column in columns or column.partition(".")[0] in columns


def columns_of(connection: Connection, dataset: Node) -> list[str]:
    """Return the columns of a dataset that its newest schema lists.

    Without a schema they are those that any edge into it has ever named.
    """
    ids = list(
        connection.scalars(select(datasets.c.id).where(datasets.c.canonical_id == dataset.id))
    )
    schema = value_of(connection, DATASET, ids, "schema")
    listed = [one.name for one in (schema and schema.fields) or () if one.name]
    if listed:
        return listed
    stated = (
        select(edge_columns.c.columns, func.max(NAMED_AT).label("at"))
        .join(edge_uses, edge_uses.c.set_hash == edge_columns.c.set_hash)
        .join(runs, runs.c.id == edge_uses.c.run_id)
        .where(edge_uses.c.sink_id.in_(ids))
        .group_by(edge_columns.c.set_hash, edge_columns.c.source_id)
    )
    renamed = renamed_columns_of(connection, [dataset.id])
    names = {
        renamed.name(dataset.id, edge.sink_column, row.at)
        for row in connection.execute(stated)
        for edge in edges_in(expand(row.columns))
    }
    return sorted(names - {""})


def meet(column: str, other: str) -> bool:
    """Return whether what is in one column may be in the other.

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
        go_on()
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
