"""Lists and details of datasets, jobs and runs; their snapshots and barriers.

The search for a name.
"""

from typing import Annotated, Any, NotRequired

from fastapi import APIRouter
from fastapi import Query as InQuery
from typing_extensions import TypedDict

from strandline.api.http.answers import JSON, Named, Page
from strandline.api.http.route import Route, refused
from strandline.api.http.session import ReadSession
from strandline.core.versions.delays import lag_seconds
from strandline.questions import answers
from strandline.questions.catalog import (
    JoinedNamesQuery,
    NodeListQuery,
    PartsQuery,
    RunListQuery,
    RunQuery,
    SearchQuery,
    SimilarJobsQuery,
)
from strandline.questions.names import names, similar_jobs
from strandline.questions.parameters import NamedQuery
from strandline.store.catalog import details, lists
from strandline.store.lineage.lookup import dataset_of, job_of
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


class OtherName(TypedDict):
    """A further name of a dataset, and why it is one."""

    namespace: str
    name: str
    reasons: list[str]


class JoinedNames(TypedDict):
    """A dataset with its further names."""

    namespace: str
    name: str
    alsoCalled: list[OtherName]


class Family(TypedDict):
    """A pattern that joins the jobs whose names it matches."""

    namespace: str
    pattern: str


class NamesPage(Page[JoinedNames]):
    """A page of datasets with several names, and the rules that join names."""

    joined: int
    patterns: list[str]
    families: list[Family]


class SimilarJobs(Family):
    """Jobs whose names differ only in a date, an id or a number (not `sure`: a number alone)."""

    jobs: int
    sure: bool
    example: str


class SimilarJobsList(TypedDict):
    """A list of similar jobs; not `complete`: a greater `limit` shows more."""

    items: list[SimilarJobs]
    complete: bool


@router.get("/datasets", response_model=Page[Named])
def get_datasets(query: Annotated[NodeListQuery, InQuery()], session: ReadSession) -> Answer:
    """Return datasets by name, each with its latest write and its newest snapshot.

    `lagSeconds` is the age of the first barrier that a table lacks; null without barriers and at a
    past moment.
    """
    return answers.datasets(session, query)


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
    return answers.snapshots(session, query)


@router.get("/jobs", response_model=Page[Named])
def get_jobs(query: Annotated[NodeListQuery, InQuery()], session: ReadSession) -> Answer:
    """Jobs by name, each with its latest run."""
    return answers.jobs(session, query)


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
        return lists.barriers_page(connection, job_id, query.limit, query.cursor)


@router.get("/runs", response_model=Page[Run], responses=refused(404))
def get_runs(query: Annotated[RunListQuery, InQuery()], session: ReadSession) -> Answer:
    """List the runs, the newest first, failed ones with the reason."""
    return answers.runs(session, query)


@router.get("/runs/detail", response_model=Run, responses=refused(404))
def get_run(query: Annotated[RunQuery, InQuery()], session: ReadSession) -> Answer:
    """Return a run with inputs, outputs, what ran below it, and all facets."""
    with session.connected() as connection:
        job = answers.job_asked(connection, query)
        return details.run_detail(connection, query.run_id, session.micros, job)


@router.get("/search", response_model=Page[Named])
def get_search(query: Annotated[SearchQuery, InQuery()], session: ReadSession) -> Answer:
    """Datasets, jobs and runs by a part of a name, a tag, a column, an SQL text or by an id.

    `matched` says of which: name, run, application, snapshot, tag, column or sql. An application is
    the run of a Spark application, with its id as `label`. A snapshot is the table that has it,
    with its id as `text`.
    """
    return answers.search(session, query)


@router.get("/names", response_model=NamesPage)
def get_names(query: Annotated[JoinedNamesQuery, InQuery()], session: ReadSession) -> Answer:
    """Return the datasets that have several names, and the rules that join names.

    `joined`: how many names are further names of another one's dataset.
    """
    return names(session, query)


@router.get("/names/jobs", response_model=SimilarJobsList)
def get_similar_jobs(query: Annotated[SimilarJobsQuery, InQuery()], session: ReadSession) -> Answer:
    """Return the jobs whose names differ only in a date, an id or a number."""
    return similar_jobs(session, query)
