"""Runs: of a job, one by its id, their facets."""

from typing import Annotated

from fastapi import Query as InQuery
from pydantic import Field
from typing_extensions import TypedDict

from strandline.api.http.route import refused
from strandline.api.http.session import ReadSession
from strandline.api.marquez.models import MarquezRun
from strandline.api.marquez.parameters import (
    JSON,
    Facets,
    J,
    JobName,
    NamespaceName,
    PageQuery,
    RunId,
    marquez_router,
)
from strandline.api.marquez.shapes.runs import run_answers
from strandline.core.openlineage.facets import DATASET
from strandline.core.openlineage.facets import JOB as OF_JOB
from strandline.core.openlineage.facets import RUN as OF_RUN
from strandline.questions.parameters import Query
from strandline.store.catalog.runs import run_called, runs_by_id
from strandline.store.lineage.facets import merged_facets
from strandline.store.marquez.jobs import job_row, runs_of_job
from strandline.store.marquez.runs import stated_ends

router = marquez_router()


class FacetsQuery(Query):
    """The choice of a run's facets."""

    type: Annotated[Facets, Field(description="Of the run, of its job, or of its datasets")] = "run"


class Runs(TypedDict):
    """A page of runs."""

    runs: list[MarquezRun]
    totalCount: int


class RunFacets(TypedDict):
    """Facets by their names."""

    runId: str
    facets: JSON


@router.get(f"{J}/runs", response_model=Runs, responses=refused(404))
def list_runs(
    namespace: NamespaceName,
    job: JobName,
    query: Annotated[PageQuery, InQuery()],
    session: ReadSession,
) -> JSON:
    """Return the runs of a job, the newest first."""
    with session.connected() as connection:
        row = job_row(connection, namespace, job)
        ids, total = runs_of_job(connection, row.id, *query.page)
        answers = run_answers(connection, ids, session.micros, whole=True)
        return {"runs": [answers[id_] for id_ in ids if id_ in answers], "totalCount": total}


@router.get("/jobs/runs/{id:name}", response_model=MarquezRun, responses=refused(404))
def get_run(run_id: RunId, session: ReadSession) -> JSON:
    """Return a run by its id."""
    with session.connected() as connection:
        id_ = run_called(connection, run_id)
        return run_answers(connection, [id_], session.micros, whole=True)[id_]


@router.get("/jobs/runs/{id:name}/facets", response_model=RunFacets, responses=refused(404))
def get_facets(
    run_id: RunId, query: Annotated[FacetsQuery, InQuery()], session: ReadSession
) -> JSON:
    """Return the facets of a run, of its job, or of what it read and wrote."""
    with session.connected() as connection:
        id_ = run_called(connection, run_id)
        row = runs_by_id(connection, [id_])[id_]
        ids = {
            "run": [id_],
            "job": [row.job_id],
            "dataset": [stated_end.id for stated_end in stated_ends(connection, id_)],
        }[query.type]
        facets = merged_facets(
            connection, {"run": OF_RUN, "job": OF_JOB, "dataset": DATASET}[query.type], ids
        )
        return {"runId": row.run_id, "facets": facets}
