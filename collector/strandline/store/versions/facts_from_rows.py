"""From news to facts: reads what ingest stored of a run or a barrier, and states it as facts.

The facts are those of core/barriers.py. Reading the same rows twice gives the same facts, and
taking a fact twice changes nothing. So it does not matter how often and in which order news tell of
a run.
"""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import orjson
from sqlalchemy import Connection, Select, select

from strandline.core.changes.rows import ELSEWHERE
from strandline.core.openlineage.facets import DATASET
from strandline.core.versions.facts import BarrierCommitted, Fact, Table
from strandline.store.schema.dataset_tables import datasets
from strandline.store.schema.relation_tables import relations
from strandline.store.schema.run_tables import job_groups, jobs, runs
from strandline.store.schema.snapshot_tables import job_barriers
from strandline.store.sql.compression import expand
from strandline.store.sql.facet_rows import facet_rows, newest_rows, one_of
from strandline.store.sql.id_lists import among_given, pairs_given
from strandline.store.versions.consumed import (
    StartedRun,
    batch_commits,
    batch_jobs,
    commit_of,
    uses_of,
)
from strandline.store.versions.fact_log import RUN, VersionNews
from strandline.store.versions.renamed_tables import called

COMMITTED = 2

canonical = datasets.alias("canonical")


def facts_of(connection: Connection, updates: Sequence[VersionNews]) -> list[Fact]:
    """The facts that the news of runs lead to, in the order of the news.

    The end of a run after all else of it.
    """
    marks = [(update.entity_id, update.barrier) for update in sorted(updates) if update.kind == RUN]
    runs = runs_of(connection, sorted({run for run, _ in marks}))
    barriers = _commits(connection, runs, marks)
    last = {run: place for place, (run, _) in enumerate(marks)}
    facts: dict[Fact, None] = {}
    for place, mark in enumerate(marks):
        run = runs.get(mark[0])
        if run is None:
            continue
        ended = run.ended() if last[mark[0]] == place else None
        facts |= dict.fromkeys(_present(run.started(), *barriers.get(mark, ()), ended))
    return list(facts)


def _present(*facts: Fact | None) -> list[Fact]:
    return [fact for fact in facts if fact is not None]


def runs_of(connection: Connection, ids: Sequence[int]) -> dict[int, StartedRun]:
    """The runs with these ids."""
    if not ids:
        return {}
    tables = _relations(connection, ids)
    rows = connection.execute(_runs(), {"runs": ids}).all()
    batch = batch_jobs(connection, {row.job_id for row in rows if not row.streaming})
    return {
        row.id: StartedRun(
            row,
            (row.namespace, row.name),
            row.group_name or None,
            *tables.get(row.id, ((), ())),
            row.job_id in batch,
        )
        for row in rows
    }


@cache
def _runs() -> Select[Any]:
    return (
        select(runs, jobs.c.namespace, jobs.c.name, job_groups.c.group_name)
        .join(jobs, jobs.c.id == runs.c.job_id)
        .outerjoin(job_groups, (job_groups.c.job_id == runs.c.job_id) & (job_groups.c.at > 0))
        .where(among_given(runs.c.id, "runs"))
    )


def _relations(
    connection: Connection, ids: Sequence[int]
) -> dict[int, tuple[tuple[Table, ...], tuple[Table, ...]]]:
    """Return the tables that each run reads and writes; a view is none, the tables below it are."""
    rows = connection.execute(_tables(), {"runs": ids}).all()
    named = {row.dataset_id for row in rows}
    views, names = _views(connection, named), called(connection, named)
    relations: dict[int, tuple[set[Table], set[Table]]] = {}
    for row in rows:
        if row.dataset_id not in views:
            table = names.get(row.dataset_id, (row.namespace, row.name))
            relations.setdefault(row.run_id, (set(), set()))[row.direction].add(table)
    return {
        run: (tuple(sorted(reads)), tuple(sorted(writes)))
        for run, (reads, writes) in relations.items()
    }


def _views(connection: Connection, dataset_ids: Collection[int]) -> set[int]:
    """Return the datasets whose newest `datasetType` facet says that they are views."""
    if not dataset_ids:
        return set()
    stated = facet_rows(one_of(dataset_ids), (DATASET,), one_of(["datasetType"]))
    rows = newest_rows(connection.execute(select(stated)))
    return {row.entity_id for row in rows if row.content is not None and _is_view(row.content)}


def _is_view(body: bytes) -> bool:
    try:
        return str(orjson.loads(expand(body)).get("datasetType")).upper() == "VIEW"
    except (ValueError, AttributeError):
        return False


@cache
def _tables() -> Select[Any]:
    return (
        select(relations.c.run_id, relations.c.direction, relations.c.dataset_id)
        .add_columns(canonical.c.namespace, canonical.c.name)
        .join(datasets, datasets.c.id == relations.c.dataset_id)
        .join(canonical, canonical.c.id == datasets.c.canonical_id)
        .where(among_given(relations.c.run_id, "runs"), relations.c.creates != ELSEWHERE)
        .order_by(canonical.c.namespace, canonical.c.name)
    )


def _commits(
    connection: Connection, commits: Mapping[int, StartedRun], marks: Iterable[tuple[int, int]]
) -> dict[tuple[int, int], list[BarrierCommitted]]:
    """The commits by run and barrier; those of batch runs under 0."""
    barriers = _barriers(connection, commits, sorted({mark for mark in marks if mark[1]}))
    return barriers | {
        (run, 0): [commit] for run, commit in batch_commits(connection, commits).items()
    }


def _barriers(
    connection: Connection, found: Mapping[int, StartedRun], marks: Iterable[tuple[int, int]]
) -> dict[tuple[int, int], list[BarrierCommitted]]:
    of_runs = [mark for mark in marks if mark[0] in found]
    if not of_runs:
        return {}
    uses = uses_of(connection, of_runs)
    commits: dict[tuple[int, int], list[BarrierCommitted]] = {}
    for row in connection.execute(_committed_barriers(), {"marks": json.dumps(of_runs)}):
        mark = (row.run_id, row.barrier)
        commits.setdefault(mark, []).append(commit_of(found[row.run_id], row, uses.get(mark, ())))
    return commits


@cache
def _committed_barriers() -> Select[Any]:
    marked = pairs_given(job_barriers.c.run_id, job_barriers.c.barrier, "marks")
    stored = job_barriers.c
    return select(
        stored.run_id,
        stored.barrier,
        stored.group_name,
        stored.batch_id,
        stored.checkpoint,
        stored.started_at,
        stored.committed_at,
        stored.at,
        stored.query_id,
        stored.facet,
    ).where(marked, stored.phase == COMMITTED)
