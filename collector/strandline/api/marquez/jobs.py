"""Jobs: lists by the state of their last run, details, versions, creating and deleting."""

from typing import Any, Literal

import msgspec

from strandline.api.endpoints.version_requests import body_as
from strandline.api.http.operations import Ask, Operation, Parameter
from strandline.api.http.paging import connected
from strandline.api.marquez.parameters import API, JOB, NAMESPACE, OBJECT, PAGE, VERSION, J, N, now_of, page_of
from strandline.api.marquez.shapes.jobs import job_answers
from strandline.api.marquez.writing import Json, event, facet, named, note, registration, write
from strandline.errors import NotFoundError
from strandline.store.catalog.runs_called import run_called, runs_by_id
from strandline.store.lineage.lookup import job_of
from strandline.store.marquez.annotations import DELETED, DESCRIPTION, Note
from strandline.store.marquez.jobs import RANKS, job_row, jobs_page
from strandline.store.marquez.names import namespace_called


class RunStates:
    """States of runs, in any case, with commas."""

    def parse(self, text: str) -> frozenset[str]:
        """The states."""
        states = frozenset(word.strip().upper() for word in text.split(",") if word.strip())
        if not states <= RANKS.keys():
            raise ValueError(f"is not one of {', '.join(RANKS)}")
        return states

    def schema(self) -> dict[str, Any]:
        """A string; examples say which."""
        return {"type": "string", "examples": ["FAILED", "RUNNING,NEW"]}


class NewJob(msgspec.Struct, rename="camel"):
    """The body of PUT."""

    type: Literal["BATCH", "STREAM", "SERVICE"] = "BATCH"
    inputs: list["NamedDataset"] = []
    outputs: list["NamedDataset"] = []
    location: str | None = None
    context: dict[str, Any] | None = None
    description: str | None = None
    run_id: str | None = None


class NamedDataset(msgspec.Struct):
    """A dataset in the body of PUT."""

    namespace: str
    name: str


def list_jobs(ask: Ask) -> dict[str, Any]:
    """A page of jobs, of one namespace or of all, the last heard of first."""
    states = ask.given["lastRunStates"] or frozenset()
    asked = ask.request.query_params.getlist("lastRunStates")
    for text in asked[:-1]:  # Marquez takes several of one name
        states |= RunStates().parse(text)
    with connected(ask) as connection:
        namespace = ask.given.get("namespace")
        within = None if namespace is None else namespace_called(connection, namespace)[1]
        rows, total = jobs_page(connection, within, states, now_of(ask), *page_of(ask))
        answers = job_answers(connection, rows, now_of(ask))
        return {"jobs": [answers[row.id] for row in rows], "totalCount": total}


def get_job(ask: Ask) -> dict[str, Any]:
    """One job."""
    with connected(ask) as connection:
        row = job_row(connection, ask.given["namespace"], ask.given["job"])
        return job_answers(connection, [row], now_of(ask))[row.id]


def put_job(ask: Ask) -> dict[str, Any]:
    """State what a job reads and writes, as an event; a description is an annotation. A deleted one is there again."""
    new, name = body_as(ask, NewJob), (ask.given["namespace"], ask.given["job"])
    stated: Json = {
        "job": named(*name, _facets(new)),
        "inputs": [named(one.namespace, one.name) for one in new.inputs],
        "outputs": [named(one.namespace, one.name) for one in new.outputs],
    }
    events = [event("JobEvent", ask.now, **stated)]
    if new.run_id is not None:
        with connected(ask) as connection:
            id_ = run_called(connection, new.run_id)
            run_id = runs_by_id(connection, [id_])[id_].run_id
        of_run = {"eventType": "OTHER", "run": {"runId": run_id, "facets": {}}}
        events.append(event("RunEvent", ask.now, **of_run, **stated))
    write(ask, *events)
    with connected(ask) as connection:
        found = job_of(connection, *name)
    entity = (found.id, str(found))
    described = [] if new.description is None else [Note(*entity, DESCRIPTION, value=new.description)]
    note(ask, described, [Note(*entity, DELETED)])
    return get_job(ask)


def _facets(new: NewJob) -> Json:
    found = {"jobType": _type_facet(new.type)}
    if new.location is not None:
        found["sourceCodeLocation"] = facet("SourceCodeLocationJobFacet", "1-0-1", type="git", url=new.location)
    context = new.context or {}
    sql = context.get("sql") or context.get("SQL")
    if isinstance(sql, str):
        found["sql"] = facet("SQLJobFacet", "1-1-0", query=sql)
    others = {key: value for key, value in context.items() if key.lower() != "sql"}
    return found | ({"strandline_registration": registration("Job", context=others)} if others else {})


def _type_facet(type_: str) -> Json:
    processing = "STREAMING" if type_ == "STREAM" else "BATCH"
    job = "SERVICE" if type_ == "SERVICE" else "JOB"
    return facet("JobTypeJobFacet", "2-0-3", processingType=processing, integration="MARQUEZ", jobType=job)


def delete_job(ask: Ask) -> dict[str, Any]:
    """Hide a job; what is stored of it stays."""
    answer = get_job(ask)
    with connected(ask) as connection:
        found = job_of(connection, ask.given["namespace"], ask.given["job"])
    note(ask, [Note(found.id, str(found), DELETED)])
    return answer


def list_versions(ask: Ask) -> dict[str, Any]:
    """The one version that is kept of a job: as it is."""
    limit, offset = page_of(ask)
    return {"versions": [_version(get_job(ask))][offset : offset + limit], "totalCount": 1}


def get_version(ask: Ask) -> dict[str, Any]:
    """The version of a job, where it is the one that is kept."""
    version = _version(get_job(ask))
    if version["version"] != ask.given["version"].lower():
        raise NotFoundError(f"unknown version of {ask.given['job']!r}: {ask.given['version']!r}", [version["version"]])
    return version


def _version(job: dict[str, Any]) -> dict[str, Any]:
    kept = ("type", "name", "createdAt", "namespace", "inputs", "outputs", "location", "context", "description")
    version = {"id": job["id"] | {"version": job["currentVersion"]}, "version": job["currentVersion"]}
    return version | {name: job[name] for name in (*kept, "latestRun", "facets")}


_STATES = Parameter("lastRunStates", f"Whose last run is {', '.join(RANKS)}, or several with commas", RunStates())
_ENDS = {
    "type": "array",
    "items": {
        "type": "object",
        "required": ["namespace", "name"],
        "properties": {"namespace": {"type": "string"}, "name": {"type": "string"}},
    },
}
_BODY = {
    "type": "object",
    "properties": {
        "type": {"type": "string", "enum": ["BATCH", "STREAM", "SERVICE"]},
        "inputs": _ENDS,
        "outputs": _ENDS,
        "location": {"type": ["string", "null"]},
        "context": {"type": ["object", "null"]},
        "description": {"type": ["string", "null"]},
        "runId": {"type": ["string", "null"]},
    },
}
_NAMED = (NAMESPACE, JOB)
OPERATIONS = (
    Operation("GET", f"{API}/jobs", "All jobs", list_jobs, (*PAGE, _STATES), answer=OBJECT, scope="read"),
    Operation(
        "GET", f"{N}/jobs", "The jobs of a namespace", list_jobs, (NAMESPACE, *PAGE, _STATES),
        answer=OBJECT, refusals=(404,), scope="read",
    ),
    Operation("GET", J, "A job", get_job, _NAMED, answer=OBJECT, refusals=(404,), scope="read"),
    Operation(
        "PUT", J, "State what a job reads and writes", put_job, _NAMED,
        body=_BODY, answer=OBJECT, refusals=(404, 422), scope="ingest",
    ),
    Operation("DELETE", J, "Hide a job", delete_job, _NAMED, answer=OBJECT, refusals=(404,), scope="admin"),
    Operation(
        "GET", f"{J}/versions", "The version of a job", list_versions, (*_NAMED, *PAGE),
        answer=OBJECT, refusals=(404,), scope="read",
    ),
    Operation(
        "GET", f"{J}/versions/{{version}}", "A version of a job", get_version, (*_NAMED, VERSION),
        answer=OBJECT, refusals=(404,), scope="read",
    ),
)  # fmt: skip
