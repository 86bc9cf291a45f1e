"""GET /api/v2/lineage and what else is asked of graphs: impact, ways, changes, namespaces, runs."""

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, NotRequired

from fastapi import APIRouter
from fastapi import Query as InQuery
from sqlalchemy import Connection
from typing_extensions import TypedDict

from strandline.api.http.answers import (
    JSON,
    Graph,
    Hidden,
    LineageEdge,
    LineageNode,
    Named,
)
from strandline.api.http.route import Route, refused
from strandline.api.http.session import ReadSession, Session
from strandline.core.around import graph_around, nodes_of_step
from strandline.core.limits import MOST_OF_DATABASE
from strandline.errors import ParameterError
from strandline.questions import answers
from strandline.questions import lineage as asking
from strandline.questions.parameters import Query
from strandline.store.lineage.known_jobs import SharedJobs
from strandline.store.lineage.lookup import newest_datasets
from strandline.store.lineage.run_state import View
from strandline.store.lineage.table_lineage import lineage_of, only_nodes, whole_graph
from strandline.store.questions.lineage_answers import (
    cut_answer,
    impact,
    nodes_called,
    question_of,
    selection_between,
)
from strandline.store.sql.engine import by_itself

router = APIRouter(prefix="/api/v2", tags=["lineage"], route_class=Route)


class SnapshotNode(Named):
    """A snapshot; `snapshotId` null: it is known by `approximateSnapshotId` alone.

    `sameRowsAs`: the earlier snapshot whose rows it shows, where compaction or the like left it.
    `inputsOfUnknownSnapshots`: what the run that made it read besides.
    """

    snapshotId: str | None
    approximateSnapshotId: NotRequired[str]
    observed: NotRequired[bool]
    barrierId: NotRequired[int | None]
    sameRowsAs: NotRequired[str]
    inputsOfUnknownSnapshots: NotRequired[list[JSON]]


class SnapshotStep(TypedDict):
    """The derivation of a snapshot from another by a job."""

    source: str
    target: str
    job: str | None
    observed: NotRequired[bool]
    barrierId: NotRequired[int | None]


class Box(Named):
    """A place of the map with what lies in it, or a table."""

    within: str | None
    datasets: int
    jobs: NotRequired[int]
    jobsInside: NotRequired[int]
    states: NotRequired[JSON]
    boxes: NotRequired[int]


class BoxEdge(TypedDict):
    """The number of jobs that lead from one box to another."""

    source: str
    target: str
    jobs: int


class NearNode(TypedDict):
    """A node that a lineage leads to."""

    id: str
    distance: NotRequired[int]


class NodeList(TypedDict):
    """The nodes of a lineage, the nearest first."""

    items: list[NearNode]
    complete: bool
    truncatedBy: str | None
    asOf: str
    hidden: Hidden


class Affected(Named):
    """A thing that would break."""

    column: NotRequired[str | None]
    distance: NotRequired[int]
    dependency: NotRequired[str | None]
    jobs: NotRequired[list[Any]]
    owners: NotRequired[list[Any]]
    lastReadAt: NotRequired[str | None]
    lastReadBy: NotRequired[JSON | None]
    lastRunAt: NotRequired[str | None]
    lastRunState: NotRequired[str | None]
    inSchema: NotRequired[bool | None]


class Impact(TypedDict):
    """The things that would break, and their numbers."""

    node: JSON
    affected: JSON
    items: list[Affected]
    complete: bool
    truncatedBy: str | None
    asOf: str
    hidden: Hidden


class Change(TypedDict):
    """A thing that came, went or changed."""

    change: str
    kind: str
    id: NotRequired[str | None]
    source: NotRequired[str | None]
    target: NotRequired[str | None]
    job: NotRequired[str | None]
    dependency: NotRequired[str | None]
    transform: NotRequired[str | None]
    before: NotRequired[str | None]
    after: NotRequired[str | None]


class Changes(TypedDict):
    """The changes between two moments."""

    since: str
    until: str
    added: int
    removed: int
    changed: int
    labels: JSON
    items: list[Change]
    complete: bool
    hidden: Hidden


class Feeding(TypedDict):
    """The number of jobs that read from one namespace and write to another."""

    source: str
    target: str
    jobs: int


class RunNode(Named):
    """A run of a graph of runs."""

    runId: str
    state: str | None
    job: Any
    running: NotRequired[bool]


class RunEdge(TypedDict):
    """The run that made an input of another run."""

    source: str
    target: str
    dataset: str
    rule: str
    snapshotId: NotRequired[str | None]


@router.get("/lineage", response_model=Graph[LineageNode, LineageEdge], responses=refused(404))
def get_lineage(
    query: Annotated[asking.LineageQuery, InQuery()], session: ReadSession
) -> dict[str, Any]:
    """Return the lineage of datasets or jobs: jobs, datasets, and the rule that made each edge."""
    if query.granularity == "column":
        return session.answer("/lineage", query)
    if query.around:
        return _around(session, query, query.around)
    selection = selection_between(query.asked())
    with session.connected() as connection:
        connection = by_itself(connection)
        return selection.of(connection, _between_tables(session, connection, query))


def _around(session: Session, query: asking.LineageQuery, around: str) -> dict[str, Any]:
    """Return the steps around one node, or a page of one of them."""
    depth = 1 if query.depth is None else query.depth
    wide = query.model_copy(update={"node": (around,), "depth": depth, "limit": MOST_OF_DATABASE})
    selection = selection_between(wide.asked())
    with session.connected() as connection:
        connection = by_itself(connection)
        answer = selection.of(connection, _between_tables(session, connection, wide))
        pinned = {str(node) for node in nodes_called(connection, query.pin)}
    middle = next(node["id"] for node in answer["nodes"] if node["distance"] == 0)
    if query.step is None:
        return graph_around(answer, middle, pinned)
    first = query.cursor or "0"
    if not first.isdecimal():
        raise ParameterError("invalid cursor for this list: send `nextCursor` as it came")
    return nodes_of_step(answer, middle, query.step, int(first), query.limit, pinned)


def _between_tables(session: Session, connection: Connection, query: Query) -> dict[str, Any]:
    """Return lineage between tables, of jobs in memory where they are kept."""
    question = question_of(connection, query.asked(), session.view(query))
    ask = partial(lineage_of, connection, question)
    return _of_kept_jobs(session, connection, question.view, ask)


def _of_kept_jobs(
    session: Session,
    connection: Connection,
    view: View,
    ask: Callable[[SharedJobs | None], dict[str, Any]],
) -> dict[str, Any]:
    """Return the answer from the jobs that this process keeps, and count them."""
    shared = session.state.graph.view(connection, view)
    answer = ask(shared)
    if shared is not None:
        jobs = session.state.metrics.kept.graph_jobs
        jobs.labels("memory").inc(shared.from_memory)
        jobs.labels("database").inc(shared.from_database)
    return answer


@router.get("/lineage/nodes", response_model=NodeList, responses=refused(404))
def get_nodes(
    query: Annotated[asking.NodesQuery, InQuery()], session: ReadSession
) -> dict[str, Any]:
    """Return the nodes of that lineage with their distances, the nearest first, without edges."""
    selection = selection_between(query.asked())
    with session.connected() as connection:
        connection = by_itself(connection)
        return only_nodes(selection.of(connection, _between_tables(session, connection, query)))


@router.get("/lineage/map", response_model=Graph[Box, BoxEdge], responses=refused(404))
def get_map(query: Annotated[asking.MapQuery, InQuery()], session: ReadSession) -> dict[str, Any]:
    """Return the whole graph as at most 40 boxes.

    Boxes are catalogs, buckets, databases or folders, then tables. They have counts by state; edges
    have the number of jobs that lead from box to box, of all that was reported by then.
    """
    return session.answer("/lineage/map", query)


@router.get("/graph", response_model=Graph[LineageNode, LineageEdge])
def get_whole_graph(
    query: Annotated[asking.WholeGraphQuery, InQuery()], session: ReadSession
) -> dict[str, Any]:
    """Return the whole graph: the newest datasets, with all jobs that read or write them."""
    with session.connected() as connection:
        starts, more = newest_datasets(connection, query.namespace, query.limit)
        answer = whole_graph(connection, session.view(query), starts, 2 * query.limit)
    return answer | cut_answer(answer, more) if more else answer


@router.get(
    "/snapshots/lineage",
    response_model=Graph[SnapshotNode, SnapshotStep],
    responses=refused(404),
)
def get_snapshot_lineage(
    query: Annotated[asking.SnapshotLineageQuery, InQuery()], session: ReadSession
) -> dict[str, Any]:
    """Return the snapshots that a snapshot was made from, and those made from it.

    With job and barrier.
    """
    return answers.snapshot_lineage(session, query)


@router.get("/impact", response_model=Impact, responses=refused(404))
def get_impact(
    query: Annotated[asking.ImpactQuery, InQuery()], session: ReadSession
) -> dict[str, Any]:
    """List the columns, tables and jobs that depend on a table or a column.

    With owners and last readers.
    """
    with session.connected() as connection:
        connection, view = by_itself(connection), session.view(query)
        ask = partial(impact, connection, query.asked(), view)
        return _of_kept_jobs(session, connection, view, ask)


@router.get(
    "/lineage/paths", response_model=Graph[LineageNode, LineageEdge], responses=refused(404)
)
def get_paths(
    query: Annotated[asking.PathsQuery, InQuery()], session: ReadSession
) -> dict[str, Any]:
    """Return the paths from one node to another, and a shortest one."""
    return session.answer("/lineage/paths", query)


@router.get("/lineage/changes", response_model=Changes, responses=refused(404))
def get_changes(
    query: Annotated[asking.ChangesQuery, InQuery()], session: ReadSession
) -> dict[str, Any]:
    """List the datasets, jobs and edges added or removed between two moments.

    By column also columns and their types.
    """
    return answers.changes(session, query)


@router.get("/namespaces", response_model=Graph[Named, Feeding])
def get_namespaces(
    query: Annotated[asking.NamespacesQuery, InQuery()], session: ReadSession
) -> dict[str, Any]:
    """Namespaces, and how many jobs read from one and write to another."""
    return session.answer("/namespaces", query)


@router.get("/runs/lineage", response_model=Graph[RunNode, RunEdge], responses=refused(404))
def get_run_graph(
    query: Annotated[asking.RunGraphQuery, InQuery()], session: ReadSession
) -> dict[str, Any]:
    """Return the runs that made what a run read, and those that made what they read.

    By snapshot, else by the last writer.
    """
    return session.answer("/runs/lineage", query)
