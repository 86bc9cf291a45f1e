"""A job as Marquez shows it."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection

from strandline.api.marquez.shapes.runs import run_answers
from strandline.api.marquez.shapes.tags import tags_by_field
from strandline.api.marquez.shapes.times import time_text
from strandline.core.changes.extraction import SINK, SOURCE
from strandline.core.openlineage.facets import JOB
from strandline.store.catalog.runs import newest_run_ids
from strandline.store.lineage.hierarchy import parent_jobs
from strandline.store.lineage.relations import job_edges_of
from strandline.store.lineage.run_state import View
from strandline.store.marquez.annotations import Annotations, annotations_of
from strandline.store.marquez.datasets import rows_of
from strandline.store.marquez.facet_values import all_facets, facet_values
from strandline.store.marquez.jobs import newest_of_each
from strandline.store.marquez.names import first_mentions
from strandline.store.marquez.runs import version_id

KEYS = ("jobType", "documentation", "sourceCodeLocation", "sql", "tags")
LATEST_RUNS = 10
Answer = dict[str, Any]
Ends = dict[int, tuple[list[Answer], list[Answer]]]


def job_answers(
    connection: Connection, rows: Sequence[Any], now: int, *, whole: bool = True
) -> dict[int, Answer]:
    """Return these jobs by the ids of their rows.

    `whole`: with their facets, inputs and outputs, and their last runs with theirs, not the newest
    alone. What a graph has, its edges say.
    """
    ids = [row.id for row in rows]
    own = {id_: id_ for id_ in ids}
    facets, noted = facet_values(connection, JOB, own, KEYS), annotations_of(connection, own)
    created = _created(connection, rows, now)
    ends, latest = (
        _ends(connection, ids if whole else [], now),
        _latest(connection, ids, whole=whole),
    )
    ids_of_runs = [run for of_job in latest.values() for run in of_job]
    runs = run_answers(connection, ids_of_runs, now, whole=whole)
    parents = parent_jobs(connection, [of_job[0] for of_job in latest.values() if of_job])
    answers = {}
    for row in rows:
        answer = _job(row, facets.get(row.id, {}), noted[row.id], created[row.id])
        answer["inputs"], answer["outputs"] = ends[row.id]
        last = latest.get(row.id, [])
        answer |= _runs([runs[run] for run in last if run in runs], whole=whole)
        answers[row.id] = answer | _parent(parents.get(last[0]) if last else None)
    return _with_facets(connection, answers) if whole else answers


def _created(connection: Connection, rows: Sequence[Any], now: int) -> dict[int, int]:
    """Return the time at which each was first seen, if only in statements of others."""
    unseen = [row.id for row in rows if row.first_at is None]
    mentions = first_mentions(connection, unseen, {}) if unseen else {}
    return {
        row.id: mentions.get(row.id, now) if row.first_at is None else row.first_at for row in rows
    }


def _with_facets(connection: Connection, answers: dict[int, Answer]) -> dict[int, Answer]:
    facets = all_facets(connection, JOB, {id_: id_ for id_ in answers})
    return {id_: answer | {"facets": facets.get(id_, {})} for id_, answer in answers.items()}


def _job(
    row: Any, facets: Mapping[str, Mapping[str, Any]], noted: Annotations, created: int
) -> Answer:
    query = facets.get("sql", {}).get("query")
    return {
        "id": {"namespace": row.namespace, "name": row.name},
        "type": _type(facets),
        "name": row.name,
        "simpleName": row.name.rpartition(".")[2] or row.name,
        "createdAt": time_text(created),
        "updatedAt": time_text(max(row.newest_at or 0, created)),
        "namespace": row.namespace,
        "location": facets.get("sourceCodeLocation", {}).get("url"),
        "context": {"sql": query} if query else {},
        "description": facets.get("documentation", {}).get("description"),
        "tags": tags_by_field(noted, facets).get("", []),
        "labels": [],
        "currentVersion": str(version_id(row.id, "", 0)),
    }


def _type(facets: Mapping[str, Mapping[str, Any]]) -> str:
    kind = facets.get("jobType", {})
    if str(kind.get("jobType") or "").upper() == "SERVICE":
        return "SERVICE"
    return (
        "STREAM"
        if str(kind.get("processingType") or "").upper() in ("STREAMING", "STREAM")
        else "BATCH"
    )


def _ends(connection: Connection, ids: Sequence[int], now: int) -> Ends:
    """Return the datasets that each job's last runs read and write, without deleted ones."""
    job_edges = {
        (job_edge.job, job_edge.direction, job_edge.dataset)
        for job_edge in job_edges_of(connection, View(now), ids)
    }
    named = rows_of(connection, {job_edge[2] for job_edge in job_edges}).values()
    names = {row.id: {"namespace": row.namespace, "name": row.name} for row in named}
    ends: Ends = defaultdict(lambda: ([], []))
    for job, direction, dataset in sorted(
        job_edges, key=lambda item: tuple(names.get(item[2], {}).values())
    ):
        if dataset in names and direction in (SOURCE, SINK):
            ends[job][direction].append(names[dataset])
    return ends


def _latest(connection: Connection, ids: Sequence[int], *, whole: bool) -> dict[int, list[int]]:
    if whole:
        return newest_of_each(connection, ids, LATEST_RUNS)
    return {job: [run] for job, run in newest_run_ids(connection, ids).items()}


def _runs(latest: list[Answer], *, whole: bool) -> Answer:
    """`latestRuns` is null rather than empty: Marquez' page reads the first of them."""
    newest = {"latestRun": latest[0] if latest else None}
    return newest | {"latestRuns": latest or None} if whole else newest


def _parent(job: Mapping[str, Any] | None) -> Answer:
    if job is None:
        return {"parentJobName": None, "parentJobUuid": None}
    named = f"{job['namespace']}:{job['name']}"
    return {"parentJobName": job["name"], "parentJobUuid": str(version_id(0, named, 0))}
