"""Runs: of a job, one by its id, their facets."""

from typing import Any

from strandline.api.http.operations import Ask, Choice, Operation, Parameter
from strandline.api.http.paging import connected
from strandline.api.marquez.parameters import (
    API,
    JOB,
    NAMESPACE,
    OBJECT,
    PAGE,
    RUN,
    J,
    now_of,
    page_of,
)
from strandline.api.marquez.shapes.runs import run_answers
from strandline.core.openlineage.facets import DATASET
from strandline.core.openlineage.facets import JOB as OF_JOB
from strandline.core.openlineage.facets import RUN as OF_RUN
from strandline.store.catalog.runs_called import run_called, runs_by_id
from strandline.store.lineage.facets import merged_facets
from strandline.store.marquez.jobs import job_row, runs_of_job
from strandline.store.marquez.runs import stated_ends


def list_runs(ask: Ask) -> dict[str, Any]:
    """A page of a job's runs, the newest first."""
    with connected(ask) as connection:
        row = job_row(connection, ask.given["namespace"], ask.given["job"])
        ids, total = runs_of_job(connection, row.id, *page_of(ask))
        answers = run_answers(connection, ids, now_of(ask), whole=True)
        return {"runs": [answers[id_] for id_ in ids if id_ in answers], "totalCount": total}


def get_run(ask: Ask) -> dict[str, Any]:
    """One run by its id."""
    with connected(ask) as connection:
        id_ = run_called(connection, ask.given["id"])
        return run_answers(connection, [id_], now_of(ask), whole=True)[id_]


def get_facets(ask: Ask) -> dict[str, Any]:
    """The facets of a run, of its job, or of what it read and wrote."""
    with connected(ask) as connection:
        id_ = run_called(connection, ask.given["id"])
        row = runs_by_id(connection, [id_])[id_]
        kind = ask.given["type"].lower()
        ids = {
            "run": [id_],
            "job": [row.job_id],
            "dataset": [one.id for one in stated_ends(connection, id_)],
        }[kind]
        facets = merged_facets(
            connection, {"run": OF_RUN, "job": OF_JOB, "dataset": DATASET}[kind], ids
        )
        return {"runId": row.run_id, "facets": facets}


_ONE = f"{API}/jobs/runs/{{id}}"
_TYPE = Parameter(
    "type",
    "Of the run, of its job, or of its datasets",
    Choice(("run", "job", "dataset")),
    default="run",
)
OPERATIONS = (
    Operation(
        "GET", f"{J}/runs", "The runs of a job", list_runs, (NAMESPACE, JOB, *PAGE),
        answer=OBJECT, refusals=(404,), scope="read",
    ),
    Operation("GET", _ONE, "A run", get_run, (RUN,), answer=OBJECT, refusals=(404,), scope="read"),
    Operation(
        "GET", f"{_ONE}/facets", "The facets of a run", get_facets, (RUN, _TYPE),
        answer=OBJECT, refusals=(404,), scope="read",
    ),
)  # fmt: skip
