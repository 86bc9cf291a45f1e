"""The impact of removing a table or a column.

The columns, tables and jobs that depend on it, with owners and last readers.

A job that only reads is no way to anywhere and yet breaks, so it is looked for beside the columns
that a walk finds. Of a column, what depends on its values (direct), what on its being there
(indirect: a filter, a join), and what may, because no column lineage says otherwise (opaque), are
told apart.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection

from strandline.core.openlineage.names import id_of
from strandline.core.walk import Direction
from strandline.store.catalog.owners import owner_names, owners_of_jobs
from strandline.store.lineage.column_edges import DIRECT, OPAQUE
from strandline.store.lineage.column_lineage import DEPENDENCIES, column_lineage_of
from strandline.store.lineage.dropped import drop_answers
from strandline.store.lineage.lookup import Node, node_text
from strandline.store.lineage.relations import View
from strandline.store.lineage.table_graph import TableGraph
from strandline.store.lineage.table_lineage import Question, lineage_of, nodes_of
from strandline.store.questions.last_use import last_reads, last_runs
from strandline.store.questions.selection import Selection, facets_of_nodes

Answer = dict[str, Any]
Items = dict[str, Answer]

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

    Or a job, and with it what it makes.
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


def impact_of(connection: Connection, removal: Removal) -> Answer:
    """Everything that depends on it, the nearest first.

    `affected` counts it by kind, `hidden` what is not shown.
    """
    columns = column_lineage_of(connection, removal.question, removal.column)
    graphs = (
        [columns]
        if removal.column is not None
        else [columns, lineage_of(connection, removal.question)]
    )
    others = (
        _of_columns(connection, columns, removal)
        if removal.column is not None
        else _of_tables(graphs[1])
    )
    found = [*_columns(columns), *others]
    affected = [one for one in found if one["distance"] > 0 and one["id"] != str(removal.node)]
    shown = removal.selection.items(connection, affected)
    start = next(iter(nodes_of(connection, {removal.node.id: 0}).values()))
    items = _with_people(connection, [start, *shown], removal.view)
    cut = next((graph["truncatedBy"] for graph in graphs if not graph["complete"]), None)
    counted = {name for graph in graphs for name in graph["hidden"]} - {
        "dependencies"
    }  # all of them were followed
    hidden = {
        name: max(graph["hidden"].get(name, 0) for graph in graphs) for name in sorted(counted)
    }
    return {
        "node": items[0] | {"column": removal.column},
        "items": sorted(
            items[1:], key=lambda one: (one["distance"], KINDS.index(one["type"]), one["id"])
        ),
        "affected": {f"{kind}s": sum(item["type"] == kind for item in shown) for kind in KINDS},
        "complete": cut is None,
        "truncatedBy": cut,
        "asOf": columns["asOf"],
        "hidden": hidden | {"filtered": len(affected) - len(shown)},
    }


def _columns(graph: Answer) -> list[Answer]:
    """The columns that are made from it, each with how, and by which jobs."""
    makers = _makers((edge["target"], edge["job"]) for edge in graph["edges"])
    of_columns = [node for node in graph["nodes"] if node["type"] == "column"]
    return [
        _item(node, node["dependency"], makers.get(node["id"], ()))
        for node in of_columns
        if node["distance"]
    ]


def _makers(pairs: Iterable[tuple[str, str]]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for target, job in pairs:
        found.setdefault(target, set()).add(job)
    return found


def _item(node: Answer, dependency: str | None, jobs: Iterable[str]) -> Answer:
    whole = {"column": None} | node | {"dependency": dependency, "jobs": sorted(jobs)}
    return {name: whole.get(name) for name in SHOWN}


def _of_tables(graph: Answer) -> list[Answer]:
    """The tables and jobs that a whole table, or a job, takes with it."""
    jobs = {node["id"] for node in graph["nodes"] if node["type"] == "job"}
    makers = _makers(
        (edge["target"], edge["source"]) for edge in graph["edges"] if edge["source"] in jobs
    )
    return [_item(node, None, makers.get(node["id"], ())) for node in graph["nodes"]]


def _of_columns(connection: Connection, graph: Answer, removal: Removal) -> list[Answer]:
    """The tables whose columns are affected, the jobs that make those, and the jobs that only read the tables."""
    nodes = {node["id"]: node for node in graph["nodes"]}
    tables: Items = {}
    for node in graph["nodes"]:
        _keep(tables, _table(node), node["distance"], node["dependency"] or DIRECT)
    jobs: Items = {}
    on_the_way = {job["id"]: job for job in graph["jobs"]}
    for edge in graph["edges"]:
        # A job reached by way of a weak edge breaks no harder than what it reads.
        strength = min(
            edge["dependency"],
            nodes[edge["source"]]["dependency"] or DIRECT,
            key=DEPENDENCIES.index,
        )
        _keep(jobs, on_the_way[edge["job"]], nodes[edge["source"]]["distance"] + 1, strength)
    for job in _only_reading(connection, removal, tables):
        _keep(jobs, job, job["distance"], OPAQUE)
    makers = _makers((_table(nodes[edge["target"]])["id"], edge["job"]) for edge in graph["edges"])
    return [
        _item(one, one["dependency"], makers.get(one["id"], ()))
        for one in [*tables.values(), *jobs.values()]
    ]


def _table(node: Answer) -> Answer:
    """The dataset of a column."""
    whole = {name: value for name, value in node.items() if name != "column"}
    return whole | {"id": node_text("dataset", node["namespace"], node["name"]), "type": "dataset"}


def _keep(items: Items, node: Answer, distance: int, strength: str) -> None:
    """The nearest and strongest of what is found of a node counts."""
    item = items.setdefault(node["id"], node | {"distance": distance, "dependency": strength})
    item["distance"] = min(item["distance"], distance)
    item["dependency"] = max(item["dependency"], strength, key=DEPENDENCIES.index)


def _only_reading(connection: Connection, removal: Removal, tables: Items) -> list[Answer]:
    """The jobs that read these tables and write nothing: no walk through columns comes by them."""
    distances = {
        id_of("dataset", one["namespace"], one["name"]): one["distance"] for one in tables.values()
    }
    within = [
        id_
        for id_, distance in distances.items()
        if removal.depth is None or distance < removal.depth
    ]
    graph = TableGraph(connection, removal.view, starts=frozenset([removal.node.id]))
    readers: dict[int, int] = {}
    for step in graph.steps(within, Direction.DOWNSTREAM, MOST_READERS) if within else ():
        if step.is_view and step.source is not None:
            distances.setdefault(step.via, distances[step.source])
        elif step.target is None and step.source is not None:
            distance = distances[step.source] + 1
            readers[step.via] = min(distance, readers.get(step.via, distance))
    return list(nodes_of(connection, readers).values())


def _with_people(connection: Connection, items: list[Answer], view: View) -> list[Answer]:
    """The items with the owners of each, who read a table last, and when a job ran last."""
    owned = facets_of_nodes(connection, [one for one in items if one["type"] != "job"], "ownership")
    tables = {
        id_of("dataset", one["namespace"], one["name"]) for one in items if one["type"] != "job"
    }
    jobs = {id_of("job", one["namespace"], one["name"]) for one in items if one["type"] == "job"}
    of_jobs = owners_of_jobs(connection, jobs)
    reads, runs = last_reads(connection, tables, view), last_runs(connection, jobs, view)
    dropped = drop_answers(connection, tables, view.at, past=view.past)
    there = (
        {}
        if view.past
        else _in_schemas(connection, [one for one in items if one["type"] == "column"])
    )
    nothing = {"lastReadAt": None, "lastReadBy": None, "lastRunAt": None, "lastRunState": None}
    found = []
    for one in items:
        kind = "job" if one["type"] == "job" else "dataset"
        id_ = id_of(kind, one["namespace"], one["name"])
        used = (runs if kind == "job" else reads).get(id_, {}) | dropped.get(id_, {})
        owners = of_jobs.get(id_, []) if kind == "job" else _names(owned.get(one["id"], ()))
        more = {"owners": owners, "inSchema": there.get(one["id"])}
        found.append(one | more | nothing | used)
    return found


def _in_schemas(connection: Connection, columns: list[Answer]) -> dict[str, bool]:
    """Return whether the newest schema of its table has each column.

    A run of before may have made one that is gone.

    Of a table with several names the schema under any of them counts; where none was stated nothing
    is claimed.
    """
    schemas = facets_of_nodes(connection, columns, "schema")
    found = {}
    for one in columns:
        fields = [
            each for facet in schemas.get(one["id"], ()) for each in facet.get("fields") or ()
        ]
        names = {each["name"] for each in fields if each.get("name")}
        if names:
            found[one["id"]] = not names.isdisjoint(
                (one["column"], one["column"].partition(".")[0])
            )
    return found


def _names(facets: Iterable[Any]) -> list[str]:
    """The owners that facets name, each once."""
    return sorted({name for facet in facets for name in owner_names(facet)})
