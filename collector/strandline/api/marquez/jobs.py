"""Jobs: lists by the state of their last run, details, versions, hiding."""

from typing import Any

from strandline.api.http.operations import Ask, Operation, Parameter
from strandline.api.http.paging import connected
from strandline.api.marquez.notes import write_notes
from strandline.api.marquez.parameters import (
    API,
    JOB,
    NAMESPACE,
    OBJECT,
    PAGE,
    VERSION,
    J,
    N,
    now_of,
    page_of,
)
from strandline.api.marquez.shapes.jobs import job_answers
from strandline.errors import NotFoundError
from strandline.store.lineage.lookup import job_of
from strandline.store.marquez.annotations import Note
from strandline.store.marquez.jobs import RANKS, job_row, jobs_page
from strandline.store.marquez.names import namespace_called
from strandline.store.schema.annotation_tables import DELETED


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


def delete_job(ask: Ask) -> dict[str, Any]:
    """Hide a job in this API; what is stored of it stays."""
    answer = get_job(ask)
    with connected(ask) as connection:
        found = job_of(connection, ask.given["namespace"], ask.given["job"])
    write_notes(ask, [Note(found.id, str(found), DELETED)])
    return answer


def list_versions(ask: Ask) -> dict[str, Any]:
    """The one version that is kept of a job: as it is."""
    limit, offset = page_of(ask)
    return {"versions": [_version(get_job(ask))][offset : offset + limit], "totalCount": 1}


def get_version(ask: Ask) -> dict[str, Any]:
    """The version of a job, where it is the one that is kept."""
    version = _version(get_job(ask))
    if version["version"] != ask.given["version"].lower():
        raise NotFoundError(
            f"unknown version of {ask.given['job']!r}: {ask.given['version']!r}",
            [version["version"]],
        )
    return version


def _version(job: dict[str, Any]) -> dict[str, Any]:
    kept = (
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
    return version | {name: job[name] for name in (*kept, "latestRun", "facets")}


_STATES = Parameter(
    "lastRunStates", f"Whose last run is {', '.join(RANKS)}, or several with commas", RunStates()
)
_NAMED = (NAMESPACE, JOB)
OPERATIONS = (
    Operation("GET", f"{API}/jobs", "All jobs", list_jobs, (*PAGE, _STATES), answer=OBJECT, scope="read"),
    Operation(
        "GET", f"{N}/jobs", "The jobs of a namespace", list_jobs, (NAMESPACE, *PAGE, _STATES),
        answer=OBJECT, refusals=(404,), scope="read",
    ),
    Operation("GET", J, "A job", get_job, _NAMED, answer=OBJECT, refusals=(404,), scope="read"),
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
