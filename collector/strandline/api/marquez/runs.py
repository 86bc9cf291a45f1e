"""Runs: of a job, one by its id, their facets; creating one and moving it on."""

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import msgspec
from sqlalchemy import Connection

from strandline.api.endpoints.version_requests import body_as
from strandline.api.http.operations import Ask, Choice, Operation, Parameter
from strandline.api.http.paging import connected
from strandline.api.marquez.parameters import (
    API,
    AT,
    JOB,
    NAMESPACE,
    OBJECT,
    PAGE,
    RUN,
    J,
    moment_of_run,
    now_of,
    page_of,
)
from strandline.api.marquez.shapes.runs import REGISTRATION, run_answers
from strandline.api.marquez.shapes.times import time_text
from strandline.api.marquez.writing import Json, event, facet, named, registration, write
from strandline.core.changes.extraction import SINK, SOURCE
from strandline.core.openlineage.facets import DATASET
from strandline.core.openlineage.facets import JOB as OF_JOB
from strandline.core.openlineage.facets import RUN as OF_RUN
from strandline.core.openlineage.times import micros
from strandline.store.catalog.runs_called import run_called, runs_by_id
from strandline.store.lineage.facets import merged_facets
from strandline.store.marquez.jobs import job_row, runs_of_job
from strandline.store.marquez.runs import stated_ends

TRANSITIONS = {"start": "START", "complete": "COMPLETE", "fail": "FAIL", "abort": "ABORT"}


class NewRun(msgspec.Struct, rename="camel"):
    """The body of POST."""

    id: str | None = None
    nominal_start_time: str | None = None
    nominal_end_time: str | None = None
    args: dict[str, Any] | None = None


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
        return _answer(connection, ask, ask.given["id"])


def _answer(connection: Connection, ask: Ask, run_id: str) -> dict[str, Any]:
    id_ = run_called(connection, run_id)
    return run_answers(connection, [id_], now_of(ask), whole=True)[id_]


def get_facets(ask: Ask) -> dict[str, Any]:
    """The facets of a run, of its job, or of what it read and wrote."""
    with connected(ask) as connection:
        id_ = run_called(connection, ask.given["id"])
        row = runs_by_id(connection, [id_])[id_]
        kind = ask.given["type"].lower()
        ids = {"run": [id_], "job": [row.job_id], "dataset": [one.id for one in stated_ends(connection, id_)]}[kind]
        facets = merged_facets(connection, {"run": OF_RUN, "job": OF_JOB, "dataset": DATASET}[kind], ids)
        return {"runId": row.run_id, "facets": facets}


def post_run(ask: Ask) -> dict[str, Any]:
    """Create a run of a job that is known, as an event that says nothing of its state."""
    new = body_as(ask, NewRun)
    with connected(ask) as connection:
        row = job_row(connection, ask.given["namespace"], ask.given["job"])
    run_id = new.id or str(uuid4())
    run = {"runId": run_id, "facets": _facets(new)}
    job = named(row.namespace, row.name)
    write(ask, event("RunEvent", ask.now, eventType="OTHER", run=run, job=job, inputs=[], outputs=[]))
    with connected(ask) as connection:
        return _answer(connection, ask, run_id)


def _facets(new: NewRun) -> Json:
    start, end = (None if text is None else micros(text) for text in (new.nominal_start_time, new.nominal_end_time))
    found: Json = {}
    if start is not None:
        until = {} if end is None else {"nominalEndTime": time_text(end)}
        found["nominalTime"] = facet("NominalTimeRunFacet", "1-0-1", nominalStartTime=time_text(start), **until)
    return found | ({REGISTRATION: registration("Run", args=new.args)} if new.args else {})


def _transition(kind: str) -> Callable[[Ask], dict[str, Any]]:
    def move(ask: Ask) -> dict[str, Any]:
        with connected(ask) as connection:
            id_ = run_called(connection, ask.given["id"])
            row, ends = runs_by_id(connection, [id_])[id_], stated_ends(connection, id_)
        found = {
            way: [named(one.namespace, one.name) for one in ends if one.direction == way] for way in (SOURCE, SINK)
        }
        of_run: Json = {"eventType": kind, "run": {"runId": row.run_id, "facets": {}}}
        of_run |= {"job": named(row.job_namespace, row.job_name), "inputs": found[SOURCE], "outputs": found[SINK]}
        write(ask, event("RunEvent", moment_of_run(ask), **of_run))
        return get_run(ask)

    move.__doc__ = f"Say that a run has come to {kind}, as an event with what its job has said to read and write."
    return move


_BODY = {
    "type": "object",
    "properties": {
        "id": {"type": ["string", "null"]},
        "nominalStartTime": {"type": ["string", "null"]},
        "nominalEndTime": {"type": ["string", "null"]},
        "args": {"type": ["object", "null"]},
    },
}
_ONE = f"{API}/jobs/runs/{{id}}"
_TYPE = Parameter(
    "type", "Of the run, of its job, or of its datasets", Choice(("run", "job", "dataset")), default="run"
)
OPERATIONS = (
    Operation(
        "GET", f"{J}/runs", "The runs of a job", list_runs, (NAMESPACE, JOB, *PAGE),
        answer=OBJECT, refusals=(404,), scope="read",
    ),
    Operation(
        "POST", f"{J}/runs", "Create a run", post_run, (NAMESPACE, JOB),
        body=_BODY, answer=OBJECT, status=201, refusals=(404, 422), scope="ingest",
    ),
    Operation("GET", _ONE, "A run", get_run, (RUN,), answer=OBJECT, refusals=(404,), scope="read"),
    Operation(
        "GET", f"{_ONE}/facets", "The facets of a run", get_facets, (RUN, _TYPE),
        answer=OBJECT, refusals=(404,), scope="read",
    ),
    *(
        Operation(
            "POST", f"{_ONE}/{word}", f"Say that a run has come to {kind}", _transition(kind), (RUN, AT),
            answer=OBJECT, refusals=(404, 422), scope="ingest",
        )
        for word, kind in TRANSITIONS.items()
    ),
)  # fmt: skip
