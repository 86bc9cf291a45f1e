"""The impact of removing a table or a column.

The columns, tables and jobs that depend on it, with owners and last readers.

A job that only reads is no way to anywhere and yet breaks, so it is looked for beside the columns
that a walk finds. What depends on a column's values (direct) is told from what depends on its being
there (indirect: a filter, a join). Opaque is what may, because no column lineage says otherwise.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sqlalchemy import Connection

from strandline.core.openlineage.facets import DATASET
from strandline.core.walk import Direction, WalkStep
from strandline.store.catalog.owners import owners_of_datasets, owners_of_jobs
from strandline.store.lineage.column_edges import DIRECT, OPAQUE, Column
from strandline.store.lineage.column_lineage import (
    DEPENDENCIES,
    Columns,
    WalkedColumns,
    walk_columns,
)
from strandline.store.lineage.dropped import drop_answers
from strandline.store.lineage.facets import values_among
from strandline.store.lineage.job_steps import VIEW
from strandline.store.lineage.known_jobs import KnownJobs, SharedJobs
from strandline.store.lineage.lookup import Node, names_of_datasets
from strandline.store.lineage.run_state import View
from strandline.store.lineage.table_graph import Question, TableGraph, WalkedTables, walk_tables
from strandline.store.lineage.table_lineage import nodes_of
from strandline.store.questions.last_use import last_reads, last_runs
from strandline.store.questions.selection import Selection

Answer = dict[str, Any]

MOST_READERS = 100_000
KINDS = ("column", "dataset", "job")
SHOWN = (
    "id",
    "type",
    "namespace",
    "name",
    "catalog",
    "database",
    "table",
    "column",
    "distance",
    "dependency",
    "jobs",
)


@dataclass(frozen=True, slots=True)
class Removal:
    """The removed thing: a dataset, or one column of it.

    A removed job takes with it what it makes.
    """

    node: Node
    column: str | None
    view: View
    depth: int | None
    most: int
    selection: Selection = field(default_factory=Selection)

    @property
    def question(self) -> Question:
        """The question for everything made from it."""
        return Question(self.node, self.view, Direction.DOWNSTREAM, self.depth, self.most)


class Affected(NamedTuple):
    """A thing that would break: the id of its dataset or job, and how an answer shows it."""

    entity: int
    answer: Answer


def impact_of(connection: Connection, removal: Removal, shared: SharedJobs | None = None) -> Answer:
    """Everything that depends on it, the nearest first.

    `affected` counts it by kind, `hidden` what is not shown. `shared` are jobs that outlive the
    question.
    """
    affected, sizes = _affected(connection, removal, shared)
    shown = _selected(connection, affected, removal.selection)
    start = nodes_of(connection, {removal.node.id: 0})[removal.node.id]
    of_start = Affected(removal.node.id, start)
    node, *items = _with_people(connection, [of_start, *shown], removal.view)
    items.sort(key=lambda item: (item["distance"], KINDS.index(item["type"]), item["id"]))
    kinds = Counter(item["type"] for item in items)
    cut = next((size["truncatedBy"] for size in sizes if not size["complete"]), None)
    return {
        "node": node | {"column": removal.column},
        "items": items,
        "affected": {f"{kind}s": kinds[kind] for kind in KINDS},
        "complete": cut is None,
        "truncatedBy": cut,
        "asOf": sizes[0]["asOf"],
        "hidden": _most_hidden(sizes) | {"filtered": len(affected) - len(shown)},
    }


def _affected(
    connection: Connection, removal: Removal, shared: SharedJobs | None
) -> tuple[list[Affected], list[Answer]]:
    """Return everything that depends on the removed thing, and the sizes of the walks to it."""
    known = KnownJobs(connection, removal.view, shared)
    affected: list[Affected] = []
    sizes: list[Answer] = []
    if removal.column is None:
        tables = walk_tables(connection, removal.question, known)
        of_tables, size = _of_tables(connection, tables, removal.view)
        affected += of_tables
        sizes.append(size)
    if removal.column is not None or known.state_columns:
        graph = Columns(known, removal.question, into_views=True)
        columns = walk_columns(connection, graph, removal.column)
        affected += _columns(columns)
        sizes.append(columns.outcome(connection))
        if removal.column is not None:
            affected += _of_columns(connection, columns, removal)
    return [
        node
        for node in affected
        if node.answer["distance"] > 0 and node.answer["id"] != str(removal.node)
    ], sizes


def _selected(
    connection: Connection, affected: list[Affected], selection: Selection
) -> list[Affected]:
    """Return the things that a selection takes."""
    if selection.is_empty:
        return affected
    items = selection.items(connection, [node.answer for node in affected])
    ids = {item["id"] for item in items}
    return [node for node in affected if node.answer["id"] in ids]


def _most_hidden(sizes: Iterable[Answer]) -> dict[str, int]:
    """Return by name the greatest number that one of the walks hid.

    Steps of other dependencies are not hidden: all were followed.
    """
    hidden: dict[str, int] = {}
    for size in sizes:
        for name, number in size["hidden"].items():
            if name != "dependencies":
                hidden[name] = max(number, hidden.get(name, 0))
    return dict(sorted(hidden.items()))


def _columns(walked: WalkedColumns) -> list[Affected]:
    """Return the columns that are made from it, each with how, and by which jobs.

    `otherCase` are the stated names that differ from listed columns in case alone.
    """
    makers: dict[Column, set[str]] = defaultdict(set)
    other_case: dict[Column, set[str]] = defaultdict(set)
    for _, target, step in walked.steps:
        makers[target].add(walked.names[step.via[0]]["id"])
        other_case[target].update(
            name for how in walked.graph.origins[step] for name in how.other_case
        )
    return [
        Affected(
            node[0],
            _item(answer, answer["dependency"], makers.get(node, ()))
            | ({"otherCase": sorted(other_case[node])} if other_case[node] else {}),
        )
        for node, answer in walked.nodes.items()
        if answer["type"] == "column" and answer["distance"]
    ]


def _item(node: Answer, dependency: str | None, jobs: Iterable[str]) -> Answer:
    place = {name: node.get(name) for name in SHOWN}
    return place | {"dependency": dependency, "jobs": sorted(jobs)}


def _of_tables(
    connection: Connection, walked: WalkedTables, view: View
) -> tuple[list[Affected], Answer]:
    """Return the tables and jobs that a whole table, or a job, takes with it, and the size."""
    nodes = nodes_of(connection, walked.distances)
    makers: dict[int, set[str]] = defaultdict(set)
    for step, _ in walked.steps:
        if step.target is not None and not step.is_view:
            makers[step.target].add(nodes[step.via]["id"])
    items = [Affected(id_, _item(node, None, makers.get(id_, ()))) for id_, node in nodes.items()]
    return items, walked.outcome(connection, view, nodes)[0]


def _of_columns(connection: Connection, walked: WalkedColumns, removal: Removal) -> list[Affected]:
    """Return the tables with affected columns, the jobs that make them, and their other readers."""
    tables: dict[int, Answer] = {}
    for (dataset, _), node in walked.nodes.items():
        _keep(tables, dataset, walked.names[dataset], node["distance"], node["dependency"])
    jobs: dict[int, Answer] = {}
    makers: dict[int, set[str]] = defaultdict(set)
    for source, target, step in walked.steps:
        job, from_ = step.via[0], walked.nodes[source]
        if not _is_into_view(walked, step):
            makers[target[0]].add(walked.names[job]["id"])
        for how in walked.graph.origins[step]:
            # A job reached by way of a weak edge breaks no harder than what it reads.
            weaker = min(how.dependency, from_["dependency"] or DIRECT, key=DEPENDENCIES.index)
            _keep(jobs, job, walked.names[job], from_["distance"] + 1, weaker)
    for job, node in _only_reading(connection, walked, removal.depth, tables).items():
        _keep(jobs, job, node, node["distance"], OPAQUE)
    return [
        Affected(id_, _item(node, node["dependency"], makers.get(id_, ())))
        for nodes in (tables, jobs)
        for id_, node in nodes.items()
    ]


def _is_into_view(walked: WalkedColumns, step: WalkStep[Column]) -> bool:
    """Return whether a step leads to a view that its job read, and did not make."""
    return all(how.rule == VIEW for how in walked.graph.origins[step])


def _keep(
    items: dict[int, Answer], id_: int, node: Answer, distance: int, dependency: str | None
) -> None:
    """Keep the nearest and strongest of what is found of a node."""
    strength = dependency or DIRECT
    item = items.setdefault(id_, node | {"distance": distance, "dependency": strength})
    item["distance"] = min(item["distance"], distance)
    item["dependency"] = max(item["dependency"], strength, key=DEPENDENCIES.index)


def _only_reading(
    connection: Connection, walked: WalkedColumns, depth: int | None, tables: Mapping[int, Answer]
) -> dict[int, Answer]:
    """Return the jobs that read these tables and write nothing.

    A walk through columns does not reach them.
    """
    distances = {id_: table["distance"] for id_, table in tables.items()}
    within = [id_ for id_, distance in distances.items() if depth is None or distance < depth]
    start = frozenset([walked.graph.asked.node.id])
    graph = TableGraph(walked.graph.known, starts=start)
    readers: dict[int, int] = {}
    while within:
        steps, views = graph.steps(within, Direction.DOWNSTREAM, MOST_READERS), list[int]()
        for step in steps:
            if step.source is None:
                continue
            if step.is_view and step.via not in distances:
                distances[step.via] = distances[step.source]
                views.append(step.via)
            elif step.target is None:
                distance = distances[step.source] + 1
                readers[step.via] = min(distance, readers.get(step.via, distance))
        within = views
    return nodes_of(connection, readers)


def _with_people(connection: Connection, affected: Sequence[Affected], view: View) -> list[Answer]:
    """Return the answers with owners, who read a table last, and when a job ran last."""
    tables = {node.entity for node in affected if node.answer["type"] != "job"}
    jobs = {node.entity for node in affected if node.answer["type"] == "job"}
    columns = [node for node in affected if node.answer["type"] == "column"]
    owners = {**owners_of_datasets(connection, tables), **owners_of_jobs(connection, jobs)}
    used = last_reads(connection, tables, view) | last_runs(connection, jobs, view)
    dropped = drop_answers(connection, tables, view.at, past=view.past)
    there = {} if view.past else _in_schemas(connection, columns)
    nothing = {"lastReadAt": None, "lastReadBy": None, "lastRunAt": None, "lastRunState": None}
    return [
        answer
        | {"owners": owners.get(id_, []), "inSchema": there.get(answer["id"])}
        | nothing
        | used.get(id_, {})
        | dropped.get(id_, {})
        for id_, answer in affected
    ]


def _in_schemas(connection: Connection, columns: Sequence[Affected]) -> dict[str, bool]:
    """Return whether the newest schema of its table has each column.

    A run of before may have made one that is gone.

    Of a table with several names the schema under any of them counts; where none was stated nothing
    is claimed.
    """
    canonical = names_of_datasets(connection, {column.entity for column in columns})
    names: dict[int, set[str]] = defaultdict(set)
    for id_, schema in values_among(connection, DATASET, canonical, "schema"):
        fields = schema.get("fields") or ()
        names[canonical[id_]].update(field["name"] for field in fields if field.get("name"))
    return {
        answer["id"]: not names[table].isdisjoint(
            (answer["column"], answer["column"].partition(".")[0])
        )
        for table, answer in columns
        if names.get(table)
    }
