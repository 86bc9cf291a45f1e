"""Streaming queries whose micro-batches are runs of their own: a job and a run for each query.

The stock Spark listener reports micro-batches so.

A query's job has the query's name; without one the application's with the query's sink, or at least
the query's id. Its run is the query within one application: it has no events, so the micro-batches'
tell of it, and it ends with the application. What one event says is ranked, so that the best name
counts whichever event came first.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID, uuid5

from strandline.core.changes.datasets import DatasetUse
from strandline.core.changes.extraction import SINK, Stamp
from strandline.core.changes.lineage import EventChange
from strandline.core.changes.memory import Memory
from strandline.core.changes.rows import ParentIds, RunParent, RunQuery, RunSeen
from strandline.core.openlineage import facets as f
from strandline.core.openlineage import run_states as states
from strandline.core.openlineage.names import id_of, key_text, own_job_name, run_id_of

NAMESPACE = UUID("b2b2b1a0-7a42-4c0e-9d0f-5f7c1a9c6a10")  # of the ids that queries' runs are given
NAMED, BY_SINK, BY_ID = 2, 1, 0
RANK = 2**60  # microseconds: a better name beats any later event

_QUERY_ID = re.compile(r"(?:^|\n|<br/?>|\s)id = ([0-9a-fA-F-]{36})")
_WHOLE = re.compile(r"[0-9]{1,17}")
_BATCH = re.compile(r"(?:^|\n|<br/?>|\s)batch = (\d{1,18})")


class SparkBatch(NamedTuple):
    """A micro-batch of a query. rank: a description counts more than captured properties."""

    rank: int
    query_id: str
    batch_id: int | None
    name: str = ""


class QueryContext(NamedTuple):
    """The run of a micro-batch, and the runs and jobs above it."""

    run_id: int
    namespace: str
    application: str  # its name
    parents: ParentIds | None


def batch_of(details: f.JobDetails | None, properties: f.Properties | None) -> SparkBatch | None:
    """Return the micro-batch that an event reports.

    Properties may be one batch behind, so the description ranks higher.

    >>> text = "q<br/>id = 0f2c6d0e-0000-4000-8000-000000000001<br/>runId = x<br/>batch = 3"
    >>> batch_of(f.JobDetails(text), None)
    SparkBatch(rank=2, query_id='0f2c6d0e-0000-4000-8000-000000000001', batch_id=3, name='q')
    """
    text = (details and details.job_description) or ""
    named = _QUERY_ID.search(text) if text else None
    if named:
        batch = _BATCH.search(text)
        return SparkBatch(
            2, named[1].lower(), int(batch[1]) if batch else None, text[: named.start()].strip()
        )
    query_id = properties.properties.get("sql.streaming.queryId") if properties else None
    if not (properties and query_id):
        return None
    batch_id = str(properties.properties.get("streaming.sql.batchId", ""))
    return SparkBatch(
        1, key_text(str(query_id)), int(batch_id) if _WHOLE.fullmatch(batch_id) else None
    )


def query_seen(
    memory: Memory,
    batch: SparkBatch,
    context: QueryContext,
    event_type: str | None,
    uses: Sequence[DatasetUse],
    stamp: Stamp,
) -> list[EventChange]:
    """Return the query that an event of a micro-batch names.

    Its job, its run in this application, and the batch in it.
    """
    rank, name = _name_of(batch, context, uses)
    job = memory.job(context.namespace, name)
    application_run = context.parents.parent_run_id if context.parents else ""
    run_id = str(uuid5(NAMESPACE, f"{application_run}/{batch.query_id}"))
    query = run_id_of(run_id, "", "")
    at, hash_ = stamp.at, stamp.hash
    has_begun = states.rank_of(event_type) != states.NONE
    query_run = RunSeen(
        id=query,
        run_id=run_id,
        job_id=job.id,
        job_at=at + (rank - NAMED) * RANK,
        job_hash=hash_,
        state=states.RUNNING if has_begun else states.NONE,
        first_at=at,
        newest_at=at,
        started_at=at if has_begun else None,
        received_at=stamp.received_at,
        streaming=1,
        query=1,
    )
    batch_run = RunQuery(
        run_id=context.run_id,
        query_id=batch.query_id,
        batch_id=batch.batch_id,
        job_id=id_of("job", *own_job_name(context.namespace, _by_id(batch))),
        owner_id=query,
        rank=batch.rank,
        at=at,
        hash=hash_,
    )
    changes: list[EventChange] = [job.between(at, at, noise=1, data=0), query_run, batch_run]
    if context.parents:
        changes.append(RunParent(query, *context.parents, at, hash_))
    return changes


def _name_of(
    batch: SparkBatch, context: QueryContext, uses: Sequence[DatasetUse]
) -> tuple[int, str]:
    """Return the name of the query's job, and how good it is."""
    if batch.name:
        return NAMED, batch.name
    sinks = sorted({_short(use) for use in uses if use.direction == SINK})
    if sinks:
        return BY_SINK, f"{context.application}.{sinks[0]}"
    return BY_ID, _by_id(batch)


def _by_id(batch: SparkBatch) -> str:
    return f"streaming_query.{batch.query_id}"


def _short(use: DatasetUse) -> str:
    """Return the label of a dataset: its table if it has one, else the end of its path."""
    names = [use.dataset, *(use.aliases.mentions if use.aliases else ())]
    tables = sorted(
        f"{name.database_name}.{name.table_name}" for name in names if name.database_name
    )
    if tables:
        return tables[0]
    path = use.dataset.name
    return path.rstrip("/").rpartition("/")[2] or path
