"""Lineage from column to column, with the expression that made one from the other.

A sink whose job states no columns (its step is opaque) depends on whole sources. A node without
column stands for all columns of its dataset, so a walk goes on through it. So does an origin that
every column of a sink has (a filter, a join).
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import chain

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
    edges_of,
    uncovered,
)
from strandline.store.lineage.column_names import NAMED_AT, renamed_columns_of, spellings_of
from strandline.store.lineage.facets import value_of
from strandline.store.lineage.failures import opaque_steps
from strandline.store.lineage.hidden_edges import Looked
from strandline.store.lineage.hidden_nodes import hidden_beside
from strandline.store.lineage.job_steps import VIEW, by_job
from strandline.store.lineage.known_jobs import KnownJob, KnownJobs, stated_of
from strandline.store.lineage.lookup import MOST_CANDIDATES, Node, node_text
from strandline.store.lineage.nested_commands import without_nested
from strandline.store.lineage.recent_runs import JobEdge, Seen
from strandline.store.lineage.relations import all_jobs_touching, job_edges_of
from strandline.store.lineage.run_state import View
from strandline.store.lineage.table_graph import Question, jobs_for, outcome
from strandline.store.lineage.table_lineage import Answer, in_order, nodes_of, seen_answer
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
    `into_views`: also step into views, for readers that do not say what these show.
    """

    known: KnownJobs
    asked: Question
    jobs: frozenset[int] = frozenset()
    starts: frozenset[int] | None = None  # datasets that the walk starts from; None: all nodes
    into_views: bool = False
    origins: dict[WalkStep[Column], dict[Origin, Seen]] = field(default_factory=dict)
    looked: Looked = field(default_factory=Looked)
    left_out: set[tuple[WalkStep[Column], Origin]] = field(default_factory=set)
    _columns: dict[int, JobColumns] = field(default_factory=dict)

    def steps(
        self, nodes: Sequence[Column], way: Direction, limit: int
    ) -> Sequence[WalkStep[Column]]:
        """Return the steps that leave these columns; see core.walk.Graph."""
        jobs = self.known.around(dict.fromkeys(node for node, _ in nodes), self.jobs, way, limit)
        edges = [edge for job in jobs.values() for edge in job.edges]
        origins: dict[WalkStep[Column], dict[Origin, Seen]] = {}
        leaving = self._leaving(nodes, way, self._columns_of(jobs, edges))
        if self.into_views and way is Direction.DOWNSTREAM:
            leaving = chain(leaving, self._steps_into_views(nodes, jobs, limit))
        for step, how, sighting in leaving:
            if self.asked.dependencies and how.dependency not in self.asked.dependencies:
                self.left_out.add((step, how))
                continue
            if step not in origins and len(origins) == limit:
                break
            of_step = origins.setdefault(step, {})
            of_step[how] = of_step[how].joined(sighting) if how in of_step else sighting
        self.origins |= origins
        steps = {_between_datasets(step) for step in origins}
        self.looked.add({node for node, _ in nodes}, self.jobs, way, edges, steps)
        return list(origins)

    def _columns_of(
        self, jobs: Mapping[int, KnownJob], edges: Sequence[JobEdge]
    ) -> dict[int, JobColumns]:
        """Return the edges of columns of these jobs, without those of nested commands."""
        shown = without_nested(self.known.connection, edges, self.jobs)
        until = self.asked.view.at if self.asked.view.past else None
        if len(shown) < len(edges):
            relations = by_job(shown)
            return columns_of_jobs(
                self.known.connection, relations, stated_of(jobs.values()), until
            )
        new = {id_: job for id_, job in jobs.items() if id_ not in self._columns}
        if new:
            relations = {id_: job.relations for id_, job in new.items()}
            self._columns |= columns_of_jobs(
                self.known.connection, relations, stated_of(new.values()), until
            )
        return {id_: self._columns[id_] for id_ in jobs}

    def _leaving(
        self, nodes: Sequence[Column], way: Direction, columns: Mapping[int, JobColumns]
    ) -> Iterator[tuple[WalkStep[Column], Origin, Seen]]:
        """Yield the steps that leave columns, each from the column itself.

        An edge may end in a field of the column or in what it is a field of; with the column as
        its end the answer hangs together.
        """
        wanted, places = set(nodes), defaultdict[int, list[tuple[int, Column]]](list)
        for place, node in enumerate(nodes):
            places[node[0]].append((place, node))
        for job, of_job in columns.items():
            via = (job, "")
            if via in wanted:
                for edge in of_job.edges():
                    yield WalkStep(edge.source, via, edge.target), edge.how, edge.seen
                continue
            here = places.keys() & of_job.datasets(way)
            for _, node in sorted(place for dataset in here for place in places[dataset]):
                for edge in self._edges_at(of_job, node, way):
                    ends = (edge.source, node) if way is Direction.UPSTREAM else (node, edge.target)
                    yield WalkStep(ends[0], via, ends[1]), edge.how, edge.seen

    def _steps_into_views(
        self, nodes: Sequence[Column], jobs: Mapping[int, KnownJob], limit: int
    ) -> Iterator[tuple[WalkStep[Column], Origin, Seen]]:
        """Yield the steps into views that some readers say show a table, and others do not.

        A view that a job wrote is reached by way of that job.
        """
        steps: list[tuple[WalkStep[Column], Seen]] = []
        for id_, job in jobs.items():
            for run, of_run in job.stated.views.items():
                reads = job.relations.by_run.get(run, {})
                for node in nodes:
                    if node[0] in reads:
                        for view in of_run.around(node[0])[1:]:
                            step = WalkStep(node, (id_, ""), (view, ""))
                            steps.append((step, reads[node[0]].seen))
        unstated = self._read_unstated({step.target[0] for step, _ in steps if step.target}, limit)
        how = Origin(VIEW, "", "", "", None, True)
        for step, sighting in steps:
            if step.target is not None and step.target[0] in unstated:
                yield step, how, sighting

    def _read_unstated(self, views: Collection[int], limit: int) -> set[int]:
        """Return the views that nobody wrote, and that a run read without saying what they show."""
        unwritten = {view for view in views if not self.known.touching([view], SINK, 1)}
        if not unwritten:
            return set()
        readers = self.known.called(self.known.touching(unwritten, SOURCE, limit))
        unstated = set[int]()
        for job in readers.values():
            for run, reads in job.relations.by_run.items():
                of_run = job.stated.views.get(run)
                stated = () if of_run is None else of_run.below.keys()
                unstated |= unwritten.intersection(reads).difference(stated)
        return unstated

    def _edges_at(self, job: JobColumns, node: Column, way: Direction) -> Iterator[ColumnEdge]:
        """Yield the edges of a job that leave a column.

        Which of a view's columns the job used only its tables' edges tell, so these are followed,
        unless the view itself is asked for.
        """
        yield from job.leaving(*node, way)
        if way is Direction.DOWNSTREAM and (self.starts is None or node[0] in self.starts):
            yield from job.shown_by(node[0])

    def named(self, dataset: int, direction: Direction) -> set[str]:
        """Return the columns of a dataset that edges on these sides of it name."""
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


@dataclass(frozen=True, slots=True)
class WalkedColumns:
    """A walk between columns as its key sees it.

    `nodes` has the columns as JSON shows them, the nearest first, each with its strongest
    dependency; `steps` lead between them. `names` has their datasets, and the jobs.
    """

    graph: Columns
    found: Walk[Column]
    nodes: Mapping[Column, Answer]
    steps: Sequence[tuple[Column, Column, WalkStep[Column]]]
    names: Mapping[int, Answer]

    def outcome(self, connection: Connection) -> Answer:
        """Return the answer's fields about its size."""
        view = self.graph.asked.view
        hidden = len(self.graph.looked.hidden(connection, view))
        size = outcome(self.found, view, hidden, hidden_beside(connection, self.names))
        size["hidden"]["dependencies"] = len(self.graph.left_out)
        return size

    def id_of(self, node: Column) -> str | None:
        """Return the id of a column or a job in answers; None if the key does not see it."""
        shown = self.nodes.get(node) or self.names.get(node[0])
        return None if shown is None else shown["id"]


def column_lineage_of(
    connection: Connection, question: Question, column: str | None = None
) -> Answer:
    """Return the lineage of one column of a dataset, or of all, or of all that a job makes."""
    return columns_answer(
        connection,
        walk_columns(connection, Columns(KnownJobs(connection, question.view), question), column),
    )


def walk_columns(
    connection: Connection, graph: Columns, column: str | None = None
) -> WalkedColumns:
    """Walk from a column, or from all columns of the nodes of the graph's question."""
    by_index(connection)
    question = graph.asked
    of_nodes = [(node, starts_of(graph, node, column)) for node in question.starts]
    starts = [start for _, of_node in of_nodes for start in of_node]
    graph.jobs = frozenset(
        job for node, of_node in of_nodes if node.kind == "job" for job, _ in of_node
    )
    graph.starts = frozenset(dataset for dataset, _ in starts)
    walked = walk(graph, starts, question.direction, question.depth, question.most)
    if column is not None and not walked.steps and not question.view.past:
        refuse_unknown(connection, question.node, column, question.view)
    return shown_columns(connection, graph, walked, starts)


def shown_columns(
    connection: Connection, graph: Columns, walked: Walk[Column], starts: Iterable[Column]
) -> WalkedColumns:
    """Return a walk without the columns that its key does not see."""
    jobs = {step.via for step in walked.steps}
    jobs |= {start for start in starts if start[0] in graph.jobs}
    names = nodes_of(connection, dict.fromkeys((node for node, _ in walked.nodes), 0))
    nodes = {
        node: _node(node, distance, names)
        for node, distance in walked.nodes.items()
        if node not in jobs and node[0] in names
    }
    steps = [
        (step.source, step.target, step)
        for step in walked.steps
        if step.source is not None
        and step.target is not None
        and step.source in nodes
        and step.target in nodes
    ]
    strongest = _strongest(nodes, steps, graph)
    for node, answer in nodes.items():
        answer["dependency"] = strongest.get(node) if answer["distance"] else None
    in_order = sorted(nodes.items(), key=lambda pair: (pair[1]["distance"], pair[1]["id"]))
    return WalkedColumns(graph, walked, dict(in_order), steps, names)


def columns_answer(connection: Connection, walked: WalkedColumns) -> Answer:
    """Return a walk between columns as JSON."""
    jobs = {step.via[0] for _, _, step in walked.steps}
    named = sorted((walked.names[job] for job in jobs), key=lambda job: str(job["id"]))
    return {
        "nodes": list(walked.nodes.values()),
        "edges": in_order(_edge_answers(connection, walked)),
        "jobs": [
            {name: job[name] for name in ("id", "type", "namespace", "name")} for job in named
        ],
    } | walked.outcome(connection)


def _strongest(
    nodes: Mapping[Column, Answer],
    steps: Iterable[tuple[Column, Column, WalkStep[Column]]],
    graph: Columns,
) -> dict[Column, str]:
    """Map nodes to their strongest dependency.

    Of the ways from a start the best, of each way the weakest edge.
    """
    near: dict[Direction, dict[Column, list[tuple[Column, str]]]] = {
        way: defaultdict(list) for way in graph.asked.direction.ways
    }
    for source, target, step in steps:
        dependencies = {how.dependency for how in graph.origins[step]}
        for way, onwards in near.items():
            here, there = (target, source) if way is Direction.UPSTREAM else (source, target)
            onwards[here].extend((there, dependency) for dependency in dependencies)
    starts = [node for node, answer in nodes.items() if answer["distance"] == 0]
    best: dict[Column, str] = {}
    for admitted in (DEPENDENCIES[2:], DEPENDENCIES[1:], DEPENDENCIES):
        for onwards in near.values():
            for node in _reached(starts, onwards, admitted):
                best.setdefault(node, admitted[0])
    return best


def _reached(
    starts: Iterable[Column],
    onwards: Mapping[Column, list[tuple[Column, str]]],
    admitted: Collection[str],
) -> set[Column]:
    nodes = set(starts)
    waiting = list(nodes)
    while waiting:
        for node, dependency in onwards.get(waiting.pop(), ()):
            if dependency in admitted and node not in nodes:
                nodes.add(node)
                waiting.append(node)
    return nodes


def starts_of(graph: Columns, node: Node, column: str | None = None) -> list[Column]:
    """Return the column of a node, or all its columns.

    They are those of its schema and those that edges name, whether the schema lists them or not. A
    job starts with all that it, or what ran below it, makes.
    """
    if node.kind == "job":
        return [(job, "") for job in jobs_for(graph.known.connection, node, graph.known)]
    if column is not None:
        return [(node.id, spelled(graph.known.connection, node, column, graph.asked.view))]
    names = columns_of(graph.known.connection, node)
    direction = Direction.BOTH if graph.asked.view.past else graph.asked.direction
    names += uncovered(graph.named(node.id, direction), names)
    return [(node.id, name) for name in names] or [(node.id, "")]


def spelled(connection: Connection, dataset: Node, column: str, view: View) -> str:
    """Return a column as the schema of its dataset spells it, where case alone differs."""
    until = view.at if view.past else None
    spellings = spellings_of(connection, {dataset.id: [column]}, until)
    return spellings.get((dataset.id, column), column)


def columns_named(connection: Connection, dataset: Node, view: View) -> set[str]:
    """Return the columns of a dataset that edges of any job name."""
    names: set[str] = set()
    for jobs in all_jobs_touching(connection, dataset.id, JOBS_AT_ONCE):
        shown = without_nested(connection, job_edges_of(connection, view, jobs), frozenset())
        for edge in edges_of(connection, shown, view.at if view.past else None):
            names |= {end[1] for end in (edge.source, edge.target) if end and end[0] == dataset.id}
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
    listed = [field.name for field in (schema and schema.fields) or () if field.name]
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


def _node(node: Column, distance: int, names: Mapping[int, Answer]) -> Answer:
    name = names[node[0]]
    if not node[1]:
        return name | {"distance": distance, "column": None}
    id_ = f"{node_text('column', name['namespace'], name['name'])}:{node[1]}"
    return name | {"id": id_, "type": "column", "column": node[1], "distance": distance}


def _edge_answers(connection: Connection, walked: WalkedColumns) -> Iterator[Answer]:
    origins = walked.graph.origins
    opaque_runs: set[int] = set()
    for _, _, step in walked.steps:
        for how, seen in origins[step].items():
            if how.is_opaque:
                opaque_runs |= seen.owners
    unfollowed = opaque_steps(connection, opaque_runs)
    for source, target, step in walked.steps:
        go_on()
        ends = {"source": walked.nodes[source]["id"], "target": walked.nodes[target]["id"]}
        job = walked.names[step.via[0]]["id"]
        for how, seen in origins[step].items():
            answer = ends | {"job": job} | _how(how)
            if how.is_opaque:
                steps = {opaque for run in seen.owners for opaque in unfollowed.get(run, ())}
                answer["opaqueSteps"] = sorted(steps)
            if how.other_case:
                answer["otherCase"] = list(how.other_case)
            yield answer | seen_answer(seen)


def _how(how: Origin) -> Answer:
    how_it_came = {
        "type": how.type or None,
        "subtype": how.subtype or None,
        "transform": how.transform or None,
    }
    masking = None if how.masking is None else bool(how.masking)
    of_rule = {"rule": how.rule, "opaque": how.is_opaque, "dependency": how.dependency}
    return of_rule | how_it_came | {"masking": masking}
