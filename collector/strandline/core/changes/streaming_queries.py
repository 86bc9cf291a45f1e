"""Streaming queries whose micro-batches are runs of their own (the stock Spark listener).

A job and a run for each.

A query's job has the query's name; without one the application's with the query's sink, or at least
the query's id. Its run is the query within one application: it has no events, so the micro-batches'
tell of it, and it ends with the application. What one event says is ranked, so that the best name
counts whichever event came first.
"""

import re
from typing import NamedTuple
from uuid import UUID, uuid5

from strandline.core.changes.bundles import Link, ParentIds, Statement
from strandline.core.changes.extraction import SINK, Stamp
from strandline.core.changes.parse_cache import Memo
from strandline.core.changes.rows import RunParent, RunQuery, RunSeen
from strandline.core.openlineage import facets as f
from strandline.core.openlineage import run_states as states
from strandline.core.openlineage.names import key_text, run_id_of

NAMESPACE = UUID("b2b2b1a0-7a42-4c0e-9d0f-5f7c1a9c6a10")  # of the ids that queries' runs are given
NAMED, BY_SINK, BY_ID = 2, 1, 0
RANK = 2**60  # microseconds: a better name beats any later event

_QUERY_ID = re.compile(r"(?:^|\n|<br/?>|\s)id = ([0-9a-fA-F-]{36})")
_WHOLE = re.compile(r"[0-9]{1,17}")
_BATCH = re.compile(r"(?:^|\n|<br/?>|\s)batch = (\d{1,18})")


class SparkBatch(NamedTuple):
    """A micro-batch: of which query, and how sure that is.

    The description counts more than captured properties.
    """

    rank: int
    query_id: str
    batch_id: int | None
    name: str = ""


class QueryContext(NamedTuple):
    """The run of a micro-batch, and what its event says of those above it, as `RunParent` has it."""

    run_id: int
    namespace: str
    application: str  # its name
    parents: ParentIds | None


def batch_of(details: f.JobDetails | None, properties: f.Properties | None) -> SparkBatch | None:
    """The micro-batch that an event tells of.

    Properties may be one batch behind, so the description ranks higher.

    >>> batch_of(f.JobDetails("q<br/>id = 0f2c6d0e-0000-4000-8000-000000000001<br/>runId = x<br/>batch = 3"), None)
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
    memo: Memo,
    batch: SparkBatch,
    under: QueryContext,
    event_type: str | None,
    links: list[Link],
    stamp: Stamp,
) -> list[Statement]:
    """What an event of a micro-batch says of its query.

    Its job, its run in this application, and the batch in it.
    """
    rank, name = _name_of(batch, under, links)
    job, any_name = memo.job(under.namespace, name), memo.job(under.namespace, _by_id(batch))
    text = str(
        uuid5(NAMESPACE, f"{under.parents.parent_run_id if under.parents else ''}/{batch.query_id}")
    )
    query = run_id_of(text, "", "")
    at, hash_, received_at = stamp
    began = states.rank_of(event_type) != states.NONE
    found: list[Statement] = [
        job.between(at, at, noise=1, data=0),
        RunSeen(
            query,
            text,
            job.id,
            at + (rank - NAMED) * RANK,
            hash_,
            states.RUNNING if began else states.NONE,
            at,
            at,
            started_at=at if began else None,
            received_at=received_at,
            streaming=1,
            query=1,
        ),
        RunQuery(
            under.run_id, batch.query_id, batch.batch_id, any_name.id, query, batch.rank, at, hash_
        ),
    ]
    if under.parents:
        found.append(RunParent(query, *under.parents, at, hash_))
    return found


def _name_of(batch: SparkBatch, under: QueryContext, links: list[Link]) -> tuple[int, str]:
    if batch.name:
        return NAMED, batch.name
    sinks = sorted({_short(link) for link in links if link.direction == SINK})
    if sinks:
        return BY_SINK, f"{under.application}.{sinks[0]}"
    return BY_ID, _by_id(batch)


def _by_id(batch: SparkBatch) -> str:
    return f"streaming_query.{batch.query_id}"


def _short(link: Link) -> str:
    """What people call a dataset.

    By its table, if any of its names is one, else the end of its path.
    """
    names = [link.dataset, *(link.group.aliases.mentions if link.group.aliases else ())]
    called = sorted(f"{one.database_name}.{one.table_name}" for one in names if one.database_name)
    path = link.dataset.name
    return called[0] if called else path.rstrip("/").rpartition("/")[2] or path
