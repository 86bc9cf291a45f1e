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
from strandline.core.walk import MOST_NODES, Direction, Walk
from strandline.store.lineage.dropped import drop_answers
from strandline.store.lineage.failures import outcomes
from strandline.store.lineage.hidden_nodes import seen_jobs
from strandline.store.lineage.hierarchy import Above
from strandline.store.lineage.job_steps import ALL_SOURCES, VIEW
from strandline.store.lineage.known_jobs import KnownJobs, SharedJobs
from strandline.store.lineage.lookup import Node, node_text
from strandline.store.lineage.recent_runs import JobEdge, Seen, age_of, latest_runs
from strandline.store.lineage.relations import job_edges_of
from strandline.store.lineage.run_state import RunState, View, iso, run_states
from strandline.store.lineage.table_graph import (
    Question,
    Steps,
    TableGraph,
    WalkedTables,
    as_shown,
    relations_in,
    walk_tables,
)
from strandline.store.schema.dataset_tables import datasets
from strandline.store.schema.run_tables import jobs
from strandline.store.sql.engine import by_index
from strandline.store.sql.id_lists import among_given

Answer = dict[str, Any]

STRENGTH = (VIEW, ALL_SOURCES, "columnLineage", "lineage")  # of rules, the strongest last
MOST_FAILED = 10  # jobs that an answer names whose failed runs left out edges


@dataclass(slots=True)
class FoundEdge:
    """An edge of an answer, of all steps that it stands for.

    The strongest rule, the newest relation.
    """

    rule: str
    related: JobEdge | None
    seen: Seen

    def join(self, rule: str, related: JobEdge | None, sighting: Seen) -> None:
        """Let it stand for another step as well."""
        if rule != self.rule:
            self.rule = max(self.rule, rule, key=STRENGTH.index)
        if sighting is not self.seen:
            self.seen = self.seen.joined(sighting)
        if related is not self.related and (
            self.related is None or (related is not None and age_of(related) > age_of(self.related))
        ):
            self.related = related


def edge_answer(
    answer: Answer, edge: FoundEdge, states: Mapping[int, RunState], latest: int | None
) -> Answer:
    """Complete an edge as answers show it.

    That is the run that it was last seen in if that has a state, when it was seen, and the latest
    run of its job if that failed later.
    """
    shown = states.get(edge.related.owner) if edge.related else None
    if edge.related is not None and shown is not None:
        answer["runId"] = shown.run_id
        answer["state"] = shown.state
        answer["running"] = shown.live
        answer["since"] = iso(edge.related.since)
        answer["until"] = iso(shown.until)
    answer.update(seen_answer(edge.seen))
    last = None if latest is None else states.get(latest)
    if shown is not None and last is not None and _failed_later(last, shown):
        run = {"runId": last.run_id, "state": last.state, "endedAt": iso(last.until)}
        answer["latestRun"] = run
    return answer


def _failed_later(last: RunState, shown: RunState) -> bool:
    if last.state not in ("FAIL", "ABORT", "LOST") or last.state == shown.state:
        return False
    return begun_at(last) > begun_at(shown)


def begun_at(state: RunState) -> tuple[int, str]:
    """Return the order of runs: their start, and among equal starts their ids."""
    return state.since or 0, state.run_id


def seen_answer(sighting: Seen) -> Answer:
    """Return when an edge was last seen, in how many of the answer's runs, and if in the latest."""
    return {
        "lastSeen": iso(sighting.at),
        "runs": len(sighting.owners),
        "ofRuns": len(sighting.among),
        "inLatest": not sighting.newest.isdisjoint(sighting.owners),
    }


def lineage_of(
    connection: Connection, question: Question, shared: SharedJobs | None = None
) -> Answer:
    """Return the lineage of a node, or of several together, between datasets and jobs.

    `shared` are jobs that outlive the question.
    """
    by_index(connection)
    known = KnownJobs(connection, question.view, shared)
    return _answer(connection, walk_tables(connection, question, known), question)


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
    graph, nowhere = TableGraph(KnownJobs(connection, view)), Node("dataset", 0, "", "")
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
    return _answer(connection, as_shown(connection, graph, walked, question), question)


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
        if edge.direction == SINK:
            last[edge.job] = max(last.get(edge.job, edge), edge, key=age_of)
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


def in_order(edges: Iterable[Answer]) -> list[Answer]:
    """Edges by their ends, of columns by their job then.

    The same question has the same answer, to the byte.
    """
    return sorted(edges, key=lambda edge: (edge["target"], edge["source"], edge.get("job") or ""))


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
