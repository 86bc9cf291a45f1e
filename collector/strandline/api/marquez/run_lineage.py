"""The runs that a run's inputs came from."""

from typing import Annotated, Any

from fastapi import Query as InQuery
from pydantic import Field
from typing_extensions import TypedDict

from strandline.api.http.route import refused
from strandline.api.http.session import ReadSession
from strandline.api.marquez.parameters import JSON, Depth, marquez_router
from strandline.api.marquez.shapes.times import STATES, time_or_none
from strandline.core.openlineage.names import id_of
from strandline.questions.parameters import Query, Word
from strandline.store.catalog.runs import run_called
from strandline.store.lineage.run_state import run_state
from strandline.store.marquez.runs import version_id
from strandline.store.questions.run_graph import Input, RunInputs, names_of_runs, upstream_runs

router = marquez_router()


class UpstreamQuery(Query):
    """The runs before a run."""

    run_id: Annotated[Word, Field(description="The id of the run")]
    depth: Depth = 20


class Upstream(TypedDict):
    """A run, the runs that made what it read, and so on."""

    runs: list[JSON]


@router.get("/runlineage/upstream", response_model=Upstream, responses=refused(404))
def get_upstream(query: Annotated[UpstreamQuery, InQuery()], session: ReadSession) -> JSON:
    """Return the runs that a run's inputs came from, theirs, and so on."""
    with session.connected() as connection:
        id_ = run_called(connection, query.run_id)
        upstream = upstream_runs(connection, id_, query.depth)
        names = names_of_runs(connection, upstream)
    return {"runs": [_answer(run, names, session.micros) for run in upstream]}


def _answer(run_inputs: RunInputs, names: dict[int, str], now: int) -> dict[str, Any]:
    state, row = run_state(run_inputs.row, now), run_inputs.row
    version = str(version_id(id_of("job", row.job_namespace, row.job_name), "", 0))
    return {
        "job": {"namespace": row.job_namespace, "name": row.job_name, "version": version},
        "run": {
            "id": state.run_id,
            "start": time_or_none(state.since),
            "end": time_or_none(state.until),
            "status": STATES[state.state],
        },
        "inputs": [_input(each, names) for each in run_inputs.inputs],
    }


def _input(input_: Input, names: dict[int, str]) -> dict[str, Any]:
    has_version = input_.snapshot or input_.producer
    return {
        "namespace": input_.namespace,
        "name": input_.name,
        "version": str(version_id(input_.dataset, input_.snapshot, input_.producer or 0))
        if has_version
        else None,
        "producedByRunId": names.get(input_.producer or 0),
    }
