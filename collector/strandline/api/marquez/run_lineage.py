"""The runs that a run's inputs came from."""

from typing import Any

from strandline.api.http.operations import Ask, Operation, Parameter, Text
from strandline.api.http.paging import connected
from strandline.api.marquez.parameters import API, DEPTH, OBJECT, now_of
from strandline.api.marquez.shapes.times import STATES, time_or_none
from strandline.core.openlineage.names import id_of
from strandline.store.catalog.run_lineage import Input, RunInputs, names_of_runs, upstream_runs
from strandline.store.catalog.runs_called import run_called
from strandline.store.lineage.run_state import run_state
from strandline.store.marquez.runs import version_id


def get_upstream(ask: Ask) -> dict[str, Any]:
    """A run, the runs that made what it read, and so on."""
    with connected(ask) as connection:
        id_ = run_called(connection, ask.given["runId"])
        found = upstream_runs(connection, id_, ask.given["depth"])
        names = names_of_runs(connection, found)
    return {"runs": [_answer(one, names, now_of(ask)) for one in found]}


def _answer(one: RunInputs, names: dict[int, str], now: int) -> dict[str, Any]:
    state, row = run_state(one.row, now), one.row
    version = str(version_id(id_of("job", row.job_namespace, row.job_name), "", 0))
    return {
        "job": {"namespace": row.job_namespace, "name": row.job_name, "version": version},
        "run": {
            "id": state.run_id,
            "start": time_or_none(state.since),
            "end": time_or_none(state.until),
            "status": STATES[state.state],
        },
        "inputs": [_input(each, names) for each in one.inputs],
    }


def _input(one: Input, names: dict[int, str]) -> dict[str, Any]:
    has_version = one.snapshot or one.producer
    return {
        "namespace": one.namespace,
        "name": one.name,
        "version": str(version_id(one.dataset, one.snapshot, one.producer or 0))
        if has_version
        else None,
        "producedByRunId": names.get(one.producer or 0),
    }


_RUN = Parameter("runId", "The id of the run", Text(1), required=True)
OPERATIONS = (
    Operation(
        "GET", f"{API}/runlineage/upstream", "The runs that a run's inputs came from", get_upstream, (_RUN, DEPTH),
        answer=OBJECT, refusals=(404,), scope="read",
    ),
)  # fmt: skip
