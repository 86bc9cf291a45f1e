"""Lists and details of datasets, jobs and runs; their snapshots and barriers.

The search for a name.
"""

from datetime import datetime
from typing import Annotated, Any, NotRequired

from fastapi import APIRouter
from fastapi import Query as InQuery
from sqlalchemy import Connection
from typing_extensions import TypedDict

from strandline.api.http.answers import JSON, Named, Page
from strandline.api.http.route import Route, refused
from strandline.api.http.session import ReadSession, Session
from strandline.core.openlineage.times import micros_of
from strandline.core.versions.delays import lag_seconds
from strandline.errors import ParameterError
from strandline.questions.catalog import (
    NodeListQuery,
    OfJobQuery,
    PartsQuery,
    RunListQuery,
    RunQuery,
    SearchQuery,
)
from strandline.questions.parameters import NamedQuery, SpanQuery
from strandline.store.catalog import details
from strandline.store.catalog import lists as listing
from strandline.store.catalog.filters import Filter
from strandline.store.catalog.search import search_page
from strandline.store.catalog.totals import count_datasets, count_jobs
from strandline.store.lineage.lookup import Node, dataset_of, job_called, job_of
from strandline.store.lineage.snapshot_lineage import snapshot_answer, snapshots_of
from strandline.store.versions.lookup import known_name

router = APIRouter(prefix="/api/v2", tags=["catalog"], route_class=Route)
Answer = dict[str, Any]


class Detail(TypedDict):
    """A dataset or job with its facets."""

    namespace: str
    name: str
    facets: NotRequired[JSON]
    quarantined: NotRequired[JSON]


class Run(TypedDict):
    """A run."""

    runId: str
    state: str
    running: NotRequired[bool]
    job: NotRequired[JSON]
    startedAt: NotRequired[str | None]
    endedAt: NotRequired[str | None]
    error: NotRequired[str | None]
    failedChildren: NotRequired[int]


class Snapshot(TypedDict):
    """A snapshot of a dataset."""

    snapshotId: str
    observed: NotRequired[bool]
    barrierId: NotRequired[int | None]
    committedAt: NotRequired[str | None]


class Barrier(TypedDict):
    """A barrier of a streaming job."""

    phase: str
    barrierId: NotRequired[int]
    batchId: NotRequired[int | None]
    committedAt: NotRequired[str | None]


@router.get("/datasets", response_model=Page[Named])
def get_datasets(query: Annotated[NodeListQuery, InQuery()], session: ReadSession) -> Answer:
    """Return datasets by name, each with its latest write and its newest snapshot.

    `lagSeconds` is the age of the first barrier that a table lacks; null without barriers and at a
    past moment.
    """
    filters = _filter(query, session, query.namespace)
    with session.connected() as connection:
        page = listing.datasets_page(connection, filters, session.micros, query.limit, query.cursor)
        if _has_total(page, query, filters):
            page["total"] = count_datasets(connection, query.namespace)
    with session.follower.question(session.access) as (connection, model):
        listing.add_lags(connection, model, page, filters, session.now.timestamp())
    return page


@router.get("/datasets/detail", response_model=Detail, responses=refused(404))
def get_dataset(query: Annotated[NamedQuery, InQuery()], session: ReadSession) -> Answer:
    """Return a dataset with all its names and facets.

    `lagSeconds` is the age of the first barrier that a table lacks; null without barriers.
    """
    with session.connected() as connection:
        dataset_id = dataset_of(connection, query.namespace, query.name)
        detail = details.dataset_detail(connection, dataset_id, session.micros)
    with session.follower.question(session.access) as (connection, model):
        table = known_name(connection, model, (detail["namespace"], detail["name"]))
        lag = lag_seconds(model, table, session.now.timestamp())
    return detail | {"lagSeconds": lag}


@router.get("/datasets/snapshots", response_model=Page[Snapshot], responses=refused(404))
def get_snapshots(query: Annotated[PartsQuery, InQuery()], session: ReadSession) -> Answer:
    """Return the snapshots of a dataset, the newest first."""
    with session.connected() as connection:
        dataset_id = dataset_of(connection, query.namespace, query.name)
        page = snapshots_of(connection, dataset_id, query.limit, query.cursor)
        return page.of([snapshot_answer(row) for row in page.rows])


@router.get("/jobs", response_model=Page[Named])
def get_jobs(query: Annotated[NodeListQuery, InQuery()], session: ReadSession) -> Answer:
    """Jobs by name, each with its latest run."""
    filters = _filter(query, session, query.namespace)
    with session.connected() as connection:
        page = listing.jobs_page(connection, filters, session.micros, query.limit, query.cursor)
        if _has_total(page, query, filters):
            page["total"] = count_jobs(connection, query.namespace)
        return page


@router.get("/jobs/detail", response_model=Detail, responses=refused(404))
def get_job(query: Annotated[NamedQuery, InQuery()], session: ReadSession) -> Answer:
    """Return a job with its latest run, what ran below it, and all its facets.

    A streaming query also has its batches.
    """
    with session.connected() as connection:
        job_id = job_of(connection, query.namespace, query.name)
        return details.job_detail(connection, job_id, session.micros)


@router.get("/jobs/barriers", response_model=Page[Barrier], responses=refused(404))
def get_barriers(query: Annotated[PartsQuery, InQuery()], session: ReadSession) -> Answer:
    """List the barriers of a streaming job, the greatest first."""
    with session.connected() as connection:
        job_id = job_of(connection, query.namespace, query.name)
        return listing.barriers_page(connection, job_id, query.limit, query.cursor)


@router.get("/runs", response_model=Page[Run], responses=refused(404))
def get_runs(query: Annotated[RunListQuery, InQuery()], session: ReadSession) -> Answer:
    """List the runs, the newest first, failed ones with the reason."""
    filters = _filter(query, session, query.namespace)
    with session.connected() as connection:
        job = _job_asked(connection, query)
        return listing.runs_page(
            connection,
            job,
            filters,
            session.micros,
            query.limit,
            query.cursor,
            parent=query.parent,
        )


@router.get("/runs/detail", response_model=Run, responses=refused(404))
def get_run(query: Annotated[RunQuery, InQuery()], session: ReadSession) -> Answer:
    """Return a run with inputs, outputs, what ran below it, and all facets."""
    with session.connected() as connection:
        job = _job_asked(connection, query)
        return details.run_detail(connection, query.run_id, session.micros, job)


@router.get("/search", response_model=Page[Named])
def get_search(query: Annotated[SearchQuery, InQuery()], session: ReadSession) -> Answer:
    """Datasets, jobs and runs by a part of a name, a tag, a column, an SQL text or by an id.

    `matched` says of which: name, run, application, snapshot, tag, column or sql. An application is
    the run of a Spark application, with its id as `label`. A snapshot is the table that has it,
    with its id as `text`.
    """
    with session.connected() as connection:
        return search_page(connection, query.q, query.limit, query.cursor, session.micros)


def _job_asked(connection: Connection, query: OfJobQuery) -> Node | None:
    named = None
    if query.name is not None:
        namespace = "default" if query.namespace is None else query.namespace
        named = job_of(connection, namespace, query.name)
    if query.job is None:
        return named
    called = job_called(connection, query.job)
    if named is not None and named != called:
        raise ParameterError(f"parameters job and name are of two jobs: {called} and {named}")
    return called


def _has_total(page: Answer, query: NodeListQuery, filters: Filter) -> bool:
    """Return true for a first page that is not all of a list whose length is soon counted."""
    is_part = page["nextCursor"] is not None and query.cursor is None
    return is_part and filters.as_of is None and not filters.leaves_few


def _filter(query: SpanQuery, session: Session, namespace: str | None) -> Filter:
    """Return the conditions of a list; a moment that is not past is now."""
    as_of = query.as_of if query.as_of is None or query.as_of < session.now else None
    since, until, then = map(_micros_if_any, (query.since, query.until, as_of))
    labels = (query.tag, query.owner) if isinstance(query, NodeListQuery) else ()
    return Filter(namespace, query.state or frozenset(), since, until, then, *labels)


def _micros_if_any(moment: datetime | None) -> int | None:
    return None if moment is None else micros_of(moment)
