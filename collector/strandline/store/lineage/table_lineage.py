"""Lineage of a dataset or a job as an answer: nodes, edges, and whether something was left out.

A step from dataset to dataset through a job is two edges, dataset -> job and job -> dataset; the
second names the origins that the job made it from. Every edge has its rule, the run that it was
last seen in with that run's state, and in how many of the job's last runs it was seen.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from sqlalchemy import Connection, Select, select

from strandline.core.changes.extraction import SINK, SOURCE
from strandline.core.walk import MOST_NODES, Direction, Walk, WalkStep
from strandline.store.lineage.dropped import drop_answers
from strandline.store.lineage.failures import outcomes
from strandline.store.lineage.hidden import Key
from strandline.store.lineage.hidden_nodes import hidden_beside, seen_jobs
from strandline.store.lineage.hierarchy import Above, above, jobs_of, runs_below
from strandline.store.lineage.job_steps import Reason
from strandline.store.lineage.known_jobs import KnownJobs, SharedJobs
from strandline.store.lineage.lookup import Node, node_text
from strandline.store.lineage.recent_runs import JobEdge, Seen, latest_runs
from strandline.store.lineage.relations import job_edges_of, jobs_called, last_runs, with_known_runs
from strandline.store.lineage.run_state import RunState, View, iso, run_states
from strandline.store.lineage.table_edges import FoundEdge, age, begun_at, edge_answer
from strandline.store.lineage.table_graph import TableGraph
from strandline.store.schema.dataset_tables import datasets
from strandline.store.schema.run_tables import jobs
from strandline.store.sql.engine import by_index
from strandline.store.sql.id_lists import among_given

Answer = dict[str, Any]
Steps = Sequence[tuple[WalkStep[int], Reason]]

MOST_FAILED = 10  # jobs that an answer names whose failed runs left out edges


@dataclass(frozen=True, slots=True)
class Question:
    """A question about a node. depth: jobs on the way, None for all; collapse.

    None, parent or root.

    A job that is asked for with collapse, or that touches nothing itself, stands for all that ran
    below it.
    """

    node: Node
    view: View
    direction: Direction = Direction.BOTH
    depth: int | None = None
    most: int = MOST_NODES
    collapse: str = "none"
    others: tuple[Node, ...] = ()  # further nodes to start from
    dependencies: tuple[str, ...] = ()  # between columns: only edges of these; none: all

    @property
    def starts(self) -> tuple[Node, ...]:
        """All nodes that are asked for, each once."""
        return tuple(dict.fromkeys((self.node, *self.others)))


def lineage_of(
    connection: Connection, question: Question, shared: SharedJobs | None = None
) -> Answer:
    """Return the lineage of a node, or of several together, between datasets and jobs.

    `shared` are jobs that outlive the question.
    """
    by_index(connection)
    known = KnownJobs(connection, with_known_runs(connection, question.view), shared)
    return _answer(connection, walk_tables(connection, question, known), question)


@dataclass(frozen=True, slots=True)
class WalkedTables:
    """A walk between tables with the jobs that an answer shows: those above others in their place.

    `higher` maps owning runs to what is shown in their place.
    """

    graph: TableGraph
    found: Walk[int]
    distances: Mapping[int, int]
    steps: Steps
    higher: Mapping[int, Above]

    def outcome(
        self, connection: Connection, view: View, shown: Iterable[int]
    ) -> tuple[Answer, set[Key]]:
        """Return the answer's fields about its size, and the edges that it leaves out."""
        hidden = self.graph.looked.hidden(connection, view)
        return outcome(self.found, view, len(hidden), hidden_beside(connection, shown)), hidden


def walk_tables(connection: Connection, question: Question, known: KnownJobs) -> WalkedTables:
    """Walk between tables and jobs from the nodes of a question."""
    wholes = [_Whole.of(connection, question, node, known) for node in question.starts]
    starts = list(dict.fromkeys(start for whole in wholes for start in whole.jobs or [whole.node]))
    start_jobs = frozenset(job for whole in wholes for job in whole.jobs)
    graph = TableGraph(connection, question.view, start_jobs, known)
    walked = graph.walk(starts, question.direction, question.depth, question.most)
    return _as_shown(connection, graph, walked, question, wholes)


def _as_shown(
    connection: Connection,
    graph: TableGraph,
    walked: Walk[int],
    question: Question,
    wholes: Sequence["_Whole"] = (),
) -> WalkedTables:
    steps: Steps = [(step, graph.reasons[step]) for step in walked.steps]
    distances = walked.nodes
    higher: dict[int, Above] = {}
    if question.collapse != "none" or any(whole.below for whole in wholes):
        owners = {relation.owner for _, reason in steps for relation in relations_in(reason)}
        higher = above(connection, owners, question.collapse)
        for whole in wholes:
            higher |= whole.above(owners)
        higher = _seen_above(connection, higher)
    for whole in wholes:
        distances = whole.joined(distances)
    if higher or any(whole.below for whole in wholes):
        distances, steps = _collapsed(distances, steps, higher)
    return WalkedTables(graph, walked, distances, steps, higher)


def only_nodes(answer: Answer) -> Answer:
    """A graph as the list of its nodes by id and distance, without edges."""
    items = [{"id": node["id"], "distance": node["distance"]} for node in answer["nodes"]]
    rest = {name: value for name, value in answer.items() if name not in ("nodes", "edges")}
    return {"items": items} | rest


def whole_graph(
    connection: Connection, view: View, starts: Sequence[int], most: int = MOST_NODES
) -> Answer:
    """Everything that touches these datasets.

    The jobs that read or write them, and what else those read and write.

    At a moment in the past, and where only what runs is asked for, a dataset that nothing touches
    is left out.
    """
    graph, nowhere = TableGraph(connection, view, frozenset()), Node("dataset", 0, "", "")
    walked = graph.walk(starts, Direction.BOTH, 1, most)
    answer = answer_of(connection, graph, walked, Question(nowhere, view))
    if view.past or view.live:
        ends = {edge[end] for edge in answer["edges"] for end in ("source", "target")}
        answer["nodes"] = [node for node in answer["nodes"] if node["id"] in ends]
    return answer


def answer_of(
    connection: Connection,
    graph: TableGraph,
    walked: Walk[int],
    question: Question,
) -> Answer:
    """Return the result of a walk as JSON."""
    return _answer(connection, _as_shown(connection, graph, walked, question), question)


def _answer(connection: Connection, walked: WalkedTables, question: Question) -> Answer:
    steps, higher, view = walked.steps, walked.higher, question.view
    owners, told_by = set[int](), set[int]()
    for _, reason in steps:
        for edge in relations_in(reason):
            owners.add(edge.owner)
            told_by.add(edge.run)
    latest = {}
    if not (view.live or higher):
        jobs_shown = {step.via for step, _ in steps if not step.is_view}
        latest = {
            job: latest_run.run
            for job, latest_run in latest_runs(connection, jobs_shown, view).items()
        }
    shown_runs = owners | {run.run for run in higher.values()} | set(latest.values())
    states = run_states(connection, shown_runs, view, told_by)
    nodes = nodes_of(connection, walked.distances)
    edges = in_order(_edges(nodes, steps, states, latest))
    _tell_states(connection, nodes, states, _newest_runs(steps, states, higher), view)
    _tell_drops(connection, nodes, view)
    size, hidden = walked.outcome(connection, view, nodes)
    answer = {"nodes": list(nodes.values()), "edges": edges} | size
    if hidden and (view.newest or not edges) and not view.live:
        failed = _failed_runs(connection, {job for job, *_ in hidden}, view)
        return answer | ({"failedRuns": failed} if failed else {})
    return answer


def _failed_runs(connection: Connection, job_ids: Iterable[int], view: View) -> list[Answer]:
    """Return the latest runs of these jobs that failed, were aborted or lost.

    Beside the latest run alone stands what the job wrote last before it failed.
    """
    latest = latest_runs(connection, seen_jobs(connection, job_ids), view)
    states = run_states(connection, (run.run for run in latest.values()), view)
    failed = {
        job: run.run
        for job, run in latest.items()
        if run.run in states and states[run.run].state in ("FAIL", "ABORT", "LOST")
    }
    named = nodes_of(connection, dict.fromkeys(failed, 0))
    first = sorted(failed, key=lambda job: named[job]["id"])[:MOST_FAILED]
    errors = outcomes(
        connection, {failed[job]: True for job in first}, view.at if view.past else None
    )
    writes = _last_writes(connection, first, replace(view, newest=False)) if view.newest else {}
    answers = []
    for job in first:
        run = failed[job]
        answer = {"job": named[job]["id"], "name": named[job]["name"]} | states[run].answer()
        answer["error"] = errors[run]["error"]
        if job in writes:
            answer["lastWrite"] = writes[job]
        answers.append(answer)
    return answers


def _last_writes(connection: Connection, job_ids: Sequence[int], view: View) -> dict[int, Answer]:
    """Map each of these jobs to its last run that wrote something, with what it read and wrote."""
    edges = job_edges_of(connection, view, job_ids)
    last: dict[int, JobEdge] = {}
    for edge in edges:
        if edge.direction == SINK and (edge.job not in last or age(edge) > age(last[edge.job])):
            last[edge.job] = edge
    owners = {edge.owner for edge in last.values()}
    of_runs = [edge for edge in edges if edge.owner in owners]
    states = run_states(connection, owners, view, {edge.run for edge in of_runs})
    nodes = nodes_of(connection, dict.fromkeys((edge.dataset for edge in of_runs), 0))
    writes = {}
    for job, write in last.items():
        if write.owner in states:
            of_run = [edge for edge in of_runs if edge.owner == write.owner]
            writes[job] = states[write.owner].answer() | {
                "reads": _ends(nodes, of_run, SOURCE),
                "writes": _ends(nodes, of_run, SINK),
            }
    return writes


def _ends(nodes: Mapping[int, Answer], edges: Iterable[JobEdge], direction: int) -> list[Answer]:
    """Return the datasets of the edges of one direction, by id."""
    ends = {edge.dataset for edge in edges if edge.direction == direction}
    ends_shown = [nodes[end] for end in ends if end in nodes]
    return sorted(ends_shown, key=lambda node: str(node["id"]))


def _seen_above(connection: Connection, higher: Mapping[int, Above]) -> dict[int, Above]:
    """A job above that the key does not see stands for nothing."""
    visible = seen_jobs(connection, {run.job for run in higher.values()})
    return {owner: run for owner, run in higher.items() if run.job in visible}


@dataclass(frozen=True, slots=True)
class _Whole:
    """The jobs that a walk starts from.

    The one asked for, and where it is shown for all that ran below it, those.

    below: the run of the asked job that each of the runs is below.
    """

    node: int
    jobs: list[int]
    below: Mapping[int, int]

    @classmethod
    def of(
        cls, connection: Connection, question: Question, node: Node, known: KnownJobs
    ) -> "_Whole":
        if node.kind != "job":
            return cls(node.id, [], {})
        jobs = jobs_called(connection, node.id)
        if question.collapse == "none" and known.called([node.id])[node.id].edges:
            return cls(node.id, jobs, {})
        below = runs_below(connection, last_runs(connection, node.id, question.view))
        return cls(node.id, list(dict.fromkeys([*jobs, *jobs_of(connection, below)])), below)

    def above(self, owners: Iterable[int]) -> dict[int, Above]:
        """The asked job in the place of each owner that ran below it."""
        return {
            owner: Above(self.below[owner], self.node) for owner in owners if owner in self.below
        }

    def joined(self, distances: Mapping[int, int]) -> dict[int, int]:
        """The distances without the jobs that the asked one stands for."""
        if not self.jobs:
            return dict(distances)
        others = {job for job in self.jobs if job != self.node} if self.below else set()
        return {node: distance for node, distance in distances.items() if node not in others} | {
            self.node: 0
        }


def jobs_for(connection: Connection, node: Node, known: KnownJobs) -> list[int]:
    """Return the jobs that a job stands for.

    Itself, and where it touches nothing all that ran below its last runs.
    """
    return _Whole.of(connection, Question(node, known.view), node, known).jobs


def in_order(edges: Iterable[Answer]) -> list[Answer]:
    """Edges by their ends, of columns by their job then.

    The same question has the same answer, to the byte.
    """
    return sorted(edges, key=lambda edge: (edge["target"], edge["source"], edge.get("job") or ""))


def outcome(walked: Walk[Any], view: View, hidden: int, unseen: int) -> Answer:
    """Return the size of the walk's graph, its moment, and the numbers of what is hidden.

    unseen: how many nodes beside it are in namespaces that the key does not see.
    """
    shown = {"complete": walked.complete, "truncatedBy": walked.truncated_by, "asOf": iso(view.at)}
    left_out = {"nodes": len(walked.left_out), "edges": hidden}
    if not unseen:
        return shown | {"hidden": left_out}
    shown |= {"complete": False, "truncatedBy": walked.truncated_by or "access"}
    return shown | {"hidden": left_out | {"access": unseen}}


def nodes_of(connection: Connection, distances: Mapping[int, int]) -> dict[int, Answer]:
    """The nodes of an answer by id, the nearest first."""
    nodes: list[tuple[int, Answer]] = []
    parameters = {"ids": list(distances)}
    for id_, namespace, name, catalog, database, table in connection.execute(
        _datasets(), parameters
    ).all():
        node = _node("dataset", namespace, name, distances[id_])
        node["catalog"], node["database"], node["table"] = catalog, database, table
        nodes.append((id_, node))
    for id_, namespace, name in connection.execute(_jobs(), parameters).all():
        nodes.append((id_, _node("job", namespace, name, distances[id_])))
    nodes.sort(key=lambda pair: (pair[1]["distance"], pair[1]["id"]))
    return dict(nodes)


@cache
def _datasets() -> Select[Any]:
    place = datasets.c.catalog, datasets.c.database_name, datasets.c.table_name
    return select(datasets.c.id, datasets.c.namespace, datasets.c.name, *place).where(
        among_given(datasets.c.id, "ids")
    )


@cache
def _jobs() -> Select[Any]:
    return select(jobs.c.id, jobs.c.namespace, jobs.c.name).where(among_given(jobs.c.id, "ids"))


def node_ids(connection: Connection, ids: Sequence[int]) -> list[str]:
    """Return the labels of these nodes, in their order."""
    named = nodes_of(connection, dict.fromkeys(ids, 0))
    return [named[id_]["id"] for id_ in ids if id_ in named]


def _node(kind: str, namespace: str, name: str, distance: int) -> Answer:
    id_ = node_text(kind, namespace, name)
    return {"id": id_, "type": kind, "namespace": namespace, "name": name, "distance": distance}


def relations_in(reason: Reason) -> Iterable[JobEdge]:
    """The relations that a step stands on."""
    return (side for side in (reason.read, reason.written) if side is not None)


def _edges(
    nodes: Mapping[int, Answer],
    steps: Steps,
    states: Mapping[int, RunState],
    latest: Mapping[int, int],
) -> Iterator[Answer]:
    """Yield the edges of steps.

    An end that is not among the nodes belongs to the other direction, which was not asked for.
    """
    reads: dict[tuple[int, int], FoundEdge] = {}
    writes: dict[tuple[int, int], FoundEdge] = {}
    origins: dict[tuple[int, int], list[str]] = defaultdict(list)
    for step, reason in steps:
        source, target = step.source, step.target
        if source is not None and source in nodes:
            sighting = reason.read.seen if reason.read else reason.seen
            _join(reads, (source, step.via), reason.rule, reason.read or reason.written, sighting)
        if not step.is_view and target is not None and target in nodes:
            sighting = reason.written.seen if reason.written else reason.seen
            _join(writes, (step.via, target), reason.rule, reason.written, sighting)
            if source is not None and source in nodes:
                origins[step.via, target].append(nodes[source]["id"])
    for (source, job), edge in reads.items():
        answer = {"source": nodes[source]["id"], "target": nodes[job]["id"], "rule": edge.rule}
        yield edge_answer(answer, edge, states, latest.get(job))
    for (job, target), edge in writes.items():
        answer = {"source": nodes[job]["id"], "target": nodes[target]["id"], "rule": edge.rule}
        made_from = {"origins": sorted(set(origins[job, target]))}
        yield edge_answer(answer, edge, states, latest.get(job)) | made_from


def _join(
    edges: dict[tuple[int, int], FoundEdge],
    ends: tuple[int, int],
    rule: str,
    related: JobEdge | None,
    sighting: Seen,
) -> None:
    edge = edges.get(ends)
    if edge is None:
        edges[ends] = FoundEdge(rule, related, sighting)
    else:
        edge.join(rule, related, sighting)


def _newest_runs(
    steps: Steps, states: Mapping[int, RunState], higher: Mapping[int, Above]
) -> dict[int, int]:
    """By job the run that began last, of those that have a state."""
    newest: dict[int, int] = {}
    for step, reason in steps:
        for related in () if step.is_view else relations_in(reason):
            run = higher[related.owner].run if related.owner in higher else related.owner
            shown = newest.get(step.via)
            if run in states and (shown is None or begun_at(states[run]) > begun_at(states[shown])):
                newest[step.via] = run
    return newest


def _tell_states(
    connection: Connection,
    nodes: Mapping[int, Answer],
    states: Mapping[int, RunState],
    newest: Mapping[int, int],
    view: View,
) -> None:
    """Show with each job the newest of its runs that the answer is about.

    An owner that expired has no state.
    """
    failed = {run: states[run].state == "FAIL" for run in newest.values()}
    more = outcomes(connection, failed, view.at if view.past else None)
    for job, run in newest.items():
        if job in nodes:
            nodes[job].update(states[run].answer() | more[run])


def _tell_drops(connection: Connection, nodes: Mapping[int, Answer], view: View) -> None:
    tables = [id_ for id_, node in nodes.items() if node["type"] == "dataset"]
    for id_, more in drop_answers(connection, tables, view.at, past=view.past).items():
        nodes[id_].update(more)


def _collapsed(
    distances: Mapping[int, int], steps: Steps, higher: Mapping[int, Above]
) -> tuple[dict[int, int], Steps]:
    """The same with every job replaced by the job above the run that the step is known from."""
    shown: list[tuple[WalkStep[int], Reason]] = []
    instead: dict[int, set[int]] = {}
    for step, reason in steps:
        if step.is_view:
            shown.append((step, reason))
            continue
        owner = next(side.owner for side in (reason.written, reason.read) if side is not None)
        job = higher[owner].job if owner in higher else step.via
        shown.append((WalkStep(step.source, job, step.target), reason))
        instead.setdefault(step.via, set()).add(job)
    nodes: dict[int, int] = {}
    for node, distance in distances.items():
        for node_shown in instead.get(node, {node}):
            nodes[node_shown] = min(distance, nodes.get(node_shown, distance))
    for step, _ in shown:
        nodes.setdefault(step.via, 1)
    return nodes, shown
