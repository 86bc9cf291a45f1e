"""The last reader of a table with its time, and the last run of a job.

Now or at a moment, each for many tables or jobs at once.
"""

from collections.abc import Collection
from functools import cache
from typing import Any

from sqlalchemy import Connection, Select, select

from strandline.core.changes.extraction import SOURCE
from strandline.store.catalog.runs import latest_run_of_each
from strandline.store.lineage.lookup import node_text
from strandline.store.lineage.run_state import MOMENT, View, iso, run_owners
from strandline.store.schema.dataset_tables import datasets
from strandline.store.schema.relation_tables import job_relations, relations
from strandline.store.schema.run_tables import jobs, runs
from strandline.store.sql.id_lists import among_given

Answer = dict[str, Any]

MOST_PAST = 100_000  # relations; of the past every run's count


def last_reads(
    connection: Connection, dataset_ids: Collection[int], view: View
) -> dict[int, Answer]:
    """Of each dataset by its canonical id.

    `lastReadAt`, and `lastReadBy` with the job and the run.
    """
    if not dataset_ids:
        return {}
    parameters = {"ids": list(dataset_ids)} | ({"moment": view.at} if view.past else {})
    newest: dict[int, Any] = {}
    for row in connection.execute(_past_reads() if view.past else _reads(), parameters):
        at = min(row.at, view.at)
        if row.dataset not in newest or (at, row.run_id) > (
            newest[row.dataset][0],
            newest[row.dataset][1].run_id,
        ):
            newest[row.dataset] = at, row
    return {
        dataset: {
            "lastReadAt": iso(at),
            "lastReadBy": {"job": node_text("job", row.namespace, row.name), "runId": row.run_id},
        }
        for dataset, (at, row) in newest.items()
    }


SHOWN = (runs.c.run_id, jobs.c.namespace, jobs.c.name, datasets.c.canonical_id.label("dataset"))


@cache
def _reads() -> Select[Any]:
    joined = job_relations.join(datasets, datasets.c.id == job_relations.c.dataset_id)
    joined = joined.join(runs, runs.c.id == job_relations.c.run_id)
    joined = joined.join(run_owners, run_owners.c.run_id == runs.c.id).join(
        jobs, jobs.c.id == run_owners.c.job_id
    )
    return (
        select(*SHOWN, job_relations.c.at)
        .select_from(joined)
        .where(among_given(datasets.c.canonical_id, "ids"), job_relations.c.direction == SOURCE)
        .where(job_relations.c.ran == 1)
    )


@cache
def _past_reads() -> Select[Any]:
    joined = relations.join(datasets, datasets.c.id == relations.c.dataset_id)
    joined = joined.join(runs, runs.c.id == relations.c.run_id)
    joined = joined.join(run_owners, run_owners.c.run_id == runs.c.id).join(
        jobs, jobs.c.id == run_owners.c.job_id
    )
    begun = (relations.c.direction == SOURCE, relations.c.first_at <= MOMENT, runs.c.design == 0)
    return (
        select(*SHOWN, relations.c.newest_at.label("at"))
        .select_from(joined)
        .where(among_given(datasets.c.canonical_id, "ids"), *begun)
        .order_by(relations.c.first_at.desc())
        .limit(MOST_PAST)
    )


def last_runs(connection: Connection, job_ids: Collection[int], view: View) -> dict[int, Answer]:
    """Of each job: `lastRunAt`, when its latest run was last heard of, and that run's state."""
    moment = view.at if view.past else None
    latest = latest_run_of_each(connection, list(job_ids), view.at, moment) if job_ids else {}
    return {
        job: {"lastRunAt": iso(min(run.heard_at, view.at)), "lastRunState": run.state.state}
        for job, run in latest.items()
    }
