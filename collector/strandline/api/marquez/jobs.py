"""Jobs: lists by the state of their last run, details, versions, hiding."""

from typing import Annotated, Any

from fastapi import Query as InQuery
from pydantic import AfterValidator, Field
from typing_extensions import TypedDict

from strandline.api.http.route import refused
from strandline.api.http.session import AdminSession, ReadSession, Session
from strandline.api.marquez.models import MarquezJob, MarquezJobVersion
from strandline.api.marquez.notes import write_notes
from strandline.api.marquez.parameters import (
    JSON,
    J,
    JobName,
    N,
    NamespaceName,
    PageQuery,
    VersionId,
    marquez_router,
)
from strandline.api.marquez.shapes.jobs import job_answers
from strandline.errors import NotFoundError
from strandline.store.lineage.lookup import job_of
from strandline.store.marquez.annotations import Note
from strandline.store.marquez.jobs import RANKS, job_row, jobs_page
from strandline.store.marquez.names import namespace_called
from strandline.store.schema.annotation_tables import DELETED

router = marquez_router()


def _known(text: str) -> str:
    states = {word.strip().upper() for word in text.split(",") if word.strip()}
    if not states <= RANKS.keys():
        raise ValueError(f"is not one of {', '.join(RANKS)}")
    return text.upper()


class JobsQuery(PageQuery):
    """A page of jobs."""

    last_run_states: Annotated[
        tuple[Annotated[str, AfterValidator(_known)], ...],
        Field(description=f"State of the last run: {', '.join(RANKS)}, or several with commas",
              examples=[["FAILED"], ["RUNNING,NEW"]]),
    ] = ()  # fmt: skip

    @property
    def states(self) -> frozenset[str]:
        """The states of all values together."""
        words = ",".join(self.last_run_states).split(",")
        return frozenset(word.strip() for word in words if word.strip())


class Jobs(TypedDict):
    """A page of jobs."""

    jobs: list[MarquezJob]
    totalCount: int


class JobVersions(TypedDict):
    """The one version that is kept of a job."""

    versions: list[MarquezJobVersion]
    totalCount: int


@router.get("/jobs", response_model=Jobs)
def list_jobs(query: Annotated[JobsQuery, InQuery()], session: ReadSession) -> JSON:
    """All jobs, the one with the latest event first."""
    return _page(session, query, None)


@router.get(f"{N}/jobs", response_model=Jobs, responses=refused(404))
def list_jobs_within(
    namespace: NamespaceName, query: Annotated[JobsQuery, InQuery()], session: ReadSession
) -> JSON:
    """Return the jobs of a namespace, the one with the latest event first."""
    return _page(session, query, namespace)


def _page(session: Session, query: JobsQuery, namespace: str | None) -> JSON:
    with session.connected() as connection:
        within = None if namespace is None else namespace_called(connection, namespace)[1]
        rows, total = jobs_page(connection, within, query.states, session.micros, *query.page)
        answers = job_answers(connection, rows, session.micros)
        return {"jobs": [answers[row.id] for row in rows], "totalCount": total}


@router.get(J, response_model=MarquezJob, responses=refused(404))
def get_job(namespace: NamespaceName, job: JobName, session: ReadSession) -> JSON:
    """Return a job."""
    with session.connected() as connection:
        row = job_row(connection, namespace, job)
        return job_answers(connection, [row], session.micros)[row.id]


@router.delete(J, response_model=MarquezJob, responses=refused(404))
def delete_job(namespace: NamespaceName, job: JobName, session: AdminSession) -> JSON:
    """Hide a job in this API; its events stay."""
    answer = get_job(namespace, job, session)
    with session.connected() as connection:
        job_id = job_of(connection, namespace, job)
    write_notes(session, [Note(job_id.id, str(job_id), DELETED)])
    return answer


@router.get(f"{J}/versions", response_model=JobVersions, responses=refused(404))
def list_versions(
    namespace: NamespaceName,
    job: JobName,
    query: Annotated[PageQuery, InQuery()],
    session: ReadSession,
) -> JSON:
    """Return the only version of a job: its present state."""
    limit, offset = query.page
    return {
        "versions": [_version(get_job(namespace, job, session))][offset : offset + limit],
        "totalCount": 1,
    }


@router.get(
    J + "/versions/{version:name}", response_model=MarquezJobVersion, responses=refused(404)
)
def get_version(
    namespace: NamespaceName, job: JobName, version: VersionId, session: ReadSession
) -> JSON:
    """Return the only version of a job by its id."""
    only = _version(get_job(namespace, job, session))
    if only["version"] != version.lower():
        raise NotFoundError(f"unknown version of {job!r}: {version!r}", [only["version"]])
    return only


def _version(job: dict[str, Any]) -> dict[str, Any]:
    members = (
        "type",
        "name",
        "createdAt",
        "namespace",
        "inputs",
        "outputs",
        "location",
        "context",
        "description",
    )
    version = {
        "id": job["id"] | {"version": job["currentVersion"]},
        "version": job["currentVersion"],
    }
    return version | {name: job[name] for name in (*members, "latestRun", "facets")}
