"""A run as Marquez shows it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection

from strandline.api.marquez.shapes.times import STATES, time_or_none, time_text
from strandline.core.changes.extraction import SINK
from strandline.core.openlineage.facets import INPUT, OUTPUT, RUN
from strandline.core.openlineage.names import id_of
from strandline.core.openlineage.times import micros
from strandline.store.catalog.runs import runs_by_id
from strandline.store.lineage.facets import Facets
from strandline.store.lineage.run_state import run_state
from strandline.store.marquez.facet_values import all_facets, facet_values
from strandline.store.marquez.runs import RunDataset, touched_by_runs, version_id

Answer = dict[str, Any]


def run_answers(
    connection: Connection, ids: Iterable[int], now: int, *, whole: bool = False
) -> dict[int, Answer]:
    """Return these runs by the ids of their rows.

    `whole`: with their facets and the versions that they read and made.
    """
    wanted = list(dict.fromkeys(ids))
    rows, own = runs_by_id(connection, wanted), {id_: id_ for id_ in wanted}
    shown = facet_values(connection, RUN, own, ("nominalTime",))
    answers = {id_: _run(rows[id_], shown.get(id_, {}), now) for id_ in wanted if id_ in rows}
    if whole:
        facets = all_facets(connection, RUN, own)
        datasets = touched_by_runs(connection, list(rows.values()))
        of_uses = _facets_of_uses(connection, datasets.values())
        for id_, answer in answers.items():
            answer["facets"] = facets.get(id_, {})
            answer |= _versions(datasets.get(id_, ()), of_uses)
    return answers


def _run(row: Any, facets: Mapping[str, Mapping[str, Any]], now: int) -> Answer:
    state = run_state(row, now)
    nominal = facets.get("nominalTime", {})
    started = state.since if state.state != "NONE" else None
    return {
        "id": state.run_id,
        "createdAt": time_text(_first(row)),
        "updatedAt": time_text(max(row.newest_at or 0, _first(row))),
        "nominalStartTime": _nominal(nominal.get("nominalStartTime")),
        "nominalEndTime": _nominal(nominal.get("nominalEndTime")),
        "state": STATES[state.state],
        "startedAt": time_or_none(started),
        "endedAt": time_or_none(state.until),
        "durationMs": _duration(started, state.until),
        "args": {},
        "jobVersion": {
            "namespace": row.job_namespace,
            "name": row.job_name,
            "version": str(version_id(id_of("job", row.job_namespace, row.job_name), "", 0)),
        },
    }


def _duration(started: int | None, ended: int | None) -> int | None:
    """Return how long a run took; null while it runs, as Marquez's page expects.

    With a duration, the page shows the end too, and a null end as 1 January 1970.
    """
    if started is None or ended is None:
        return None
    return max(0, ended - started) // 1000


def _first(row: Any) -> int:
    first = row.first_at if row.first_at is not None else row.started_at
    at: int = first if first is not None else row.received_at or row.child_received_at
    return at


def _nominal(text: object) -> str | None:
    return time_or_none(micros(text)) if isinstance(text, str) else None


def _facets_of_uses(
    connection: Connection, of_runs: Iterable[Sequence[RunDataset]]
) -> dict[int, Facets]:
    """Return the input or output facets of each dataset of a run, by its first use."""
    datasets = [dataset for of_run in of_runs for dataset in of_run]
    groups = {use: dataset.uses[0] for dataset in datasets for use in dataset.uses}
    return all_facets(connection, INPUT, groups) | all_facets(connection, OUTPUT, groups)


def _versions(datasets: Iterable[RunDataset], facets: Mapping[int, Facets]) -> Answer:
    inputs: list[Answer] = []
    outputs: list[Answer] = []
    for dataset in datasets:
        version = None if dataset.version is None else str(dataset.version)
        id_ = {"namespace": dataset.namespace, "name": dataset.name, "version": version}
        own = facets.get(dataset.uses[0], {})
        side = outputs if dataset.direction == SINK else inputs
        side.append({"datasetVersionId": id_, "facets": own})
    return {
        "inputVersions": [input_["datasetVersionId"] for input_ in inputs],
        "outputVersions": [output["datasetVersionId"] for output in outputs],
        "inputDatasetVersions": inputs,
        "outputDatasetVersions": outputs,
    }
