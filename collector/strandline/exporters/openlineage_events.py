"""A run's record as clean OpenLineage events: one START, RUNNING where a stream changes, one end.

A job's design is a JobEvent.

Edges are explicit. Each output has the `lineage` facet with all its sources, and `columnLineage`
for targets that read only that. The facets stand with the dataset and, as one mapper of
OpenMetadata wants it, with the output.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from strandline import __version__
from strandline.core.openlineage.times import moment_of
from strandline.exporters.run_records import DatasetLink, DatasetRecord, Json, RunName, RunRecord
from strandline.store.lineage.column_edges import ColumnEdge

PRODUCER = f"https://github.com/strandline/strandline/{__version__}"
SCHEMA = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs"
FACETS = "https://openlineage.io/spec/facets"
MADE_ANEW = ("columnLineage", "lineage", "parent", "parentRun", "strandline_heartbeat")
# What each micro-batch has anew. It is sent with the rest, but no reason to send anything.
PASSING = (
    *(
        "strandline_snapshot",
        "strandline_barrier",
        "version",
        "outputStatistics",
        "inputStatistics",
    ),
    *("icebergScanReport", "icebergCommitReport"),
)
LOST = "silent beyond its heartbeat timeout: Strandline takes the run for LOST"


def start_of(record: RunRecord) -> Json:
    """Return the run's START."""
    return _event(record, "START", record.started_at)


def newest_of(record: RunRecord) -> Json:
    """Return the run's newest state: its end, if it has ended."""
    if record.design:
        return _design(record)
    state = record.state.state
    if record.is_over:
        return _event(
            record, "ABORT" if state == "LOST" else state, record.ended_at or record.newest_at
        )
    return _event(record, "RUNNING", max(record.newest_at, record.started_at))


def shape_of(record: RunRecord) -> Json:
    """Return the newest state without what each micro-batch has anew."""
    event = newest_of(record)
    if not record.is_over:
        del event["eventTime"]
    shape: Json = without(event, PASSING)
    return shape


def without(value: Any, keys: tuple[str, ...]) -> Any:
    """Return JSON without these facets, wherever they stand."""
    if isinstance(value, dict):
        return {key: without(member, keys) for key, member in value.items() if key not in keys}
    if isinstance(value, list):
        return [without(item, keys) for item in value]
    return value


def _event(record: RunRecord, kind: str, at: int) -> Json:
    return {
        "eventType": kind,
        "eventTime": time_of(at),
        "producer": PRODUCER,
        "schemaURL": f"{SCHEMA}/RunEvent",
        "run": {"runId": record.run_id, "facets": _run_facets(record)},
        "job": {
            "namespace": record.job.namespace,
            "name": record.job.name,
            "facets": job_facets(record),
        },
        "inputs": [_dataset(link, "inputFacets") for link in record.inputs],
        "outputs": [_output(record, link) for link in record.outputs],
    }


def _design(record: RunRecord) -> Json:
    event = _event(record, "", record.newest_at) | {"schemaURL": f"{SCHEMA}/JobEvent"}
    del event["eventType"], event["run"]
    return event


def job_event(record: RunRecord, at: int, inputs: list[Json], outputs: list[Json]) -> Json:
    """Return a JobEvent with these datasets."""
    job = {"namespace": record.job.namespace, "name": record.job.name, "facets": job_facets(record)}
    head = {"eventTime": time_of(at), "producer": PRODUCER, "schemaURL": f"{SCHEMA}/JobEvent"}
    return head | {"job": job, "inputs": inputs, "outputs": outputs}


def dataset_event(record: DatasetRecord, at: int) -> Json:
    """Return a DatasetEvent with the facets of a dataset."""
    dataset = {"namespace": record.namespace, "name": record.name, "facets": _kept(record.facets)}
    head = {"eventTime": time_of(at), "producer": PRODUCER, "schemaURL": f"{SCHEMA}/DatasetEvent"}
    return head | {"dataset": dataset}


def time_of(at: int) -> str:
    """Return a moment as events have it."""
    return moment_of(at).isoformat().replace("+00:00", "Z")


def facet(name: str, version: str, /, **content: Any) -> Json:
    """Return a facet of the standard."""
    return {
        "_producer": PRODUCER,
        "_schemaURL": f"{FACETS}/{version}/{name}.json#/$defs/{name}",
        **content,
    }


def _run_facets(record: RunRecord) -> Json:
    facets = _kept(record.facets)
    if record.parent is not None:
        root = {"root": _named(record.root)} if record.root is not None else {}
        facets["parent"] = facet("ParentRunFacet", "1-1-0", **_named(record.parent), **root)
    if record.state.state == "LOST":
        error = {"message": LOST, "programmingLanguage": "PYTHON"}
        facets["errorMessage"] = facet("ErrorMessageRunFacet", "1-0-1", **error)
    return facets


def _named(name: RunName) -> Json:
    return {"run": {"runId": name.run_id}, "job": {"namespace": name.namespace, "name": name.name}}


def job_facets(record: RunRecord) -> Json:
    """Return the job's facets; a stream always says that it is one."""
    facets = _kept(record.job.facets)
    if record.state.streaming and "jobType" not in facets:
        kind = {"processingType": "STREAMING", "integration": "SPARK", "jobType": "JOB"}
        facets["jobType"] = facet("JobTypeJobFacet", "2-0-3", **kind)
    return facets


def _kept(facets: Mapping[str, Any]) -> Json:
    return {key: value for key, value in facets.items() if key not in MADE_ANEW}


def _dataset(link: DatasetLink, own: str) -> Json:
    dataset = link.dataset
    return {
        "namespace": dataset.namespace,
        "name": dataset.name,
        "facets": _kept(dataset.facets),
        own: dict(link.facets),
    }


def _output(record: RunRecord, link: DatasetLink) -> Json:
    output = _dataset(link, "outputFacets")
    into = [edge for edge in record.edges if edge.target[0] == link.dataset.id]
    if any(
        edge.source is not None for edge in into
    ):  # no inputs at all would assert that there are none
        output["facets"]["lineage"] = _lineage(link.dataset, into, record.datasets)
    if columns := _columns(into, record.datasets):
        output["facets"]["columnLineage"] = output["outputFacets"]["columnLineage"] = columns
    return output


def _lineage(
    dataset: DatasetRecord, into: Iterable[ColumnEdge], datasets: Mapping[int, DatasetRecord]
) -> Json:
    """Return the facet with all sources of an output."""
    whole: dict[str, Json] = {}
    fields: dict[str, list[Json]] = defaultdict(list)
    for edge in into:
        if edge.source is None or edge.source[0] not in datasets:
            continue
        origin = {
            "namespace": datasets[edge.source[0]].namespace,
            "name": datasets[edge.source[0]].name,
            "type": "DATASET",
        }
        whole.setdefault(f"{origin['namespace']} {origin['name']}", origin)
        if edge.target[1]:
            fields[edge.target[1]].append(
                origin | _field(edge) | {"transformations": [_transformation(edge)]}
            )
    content: Json = {"namespace": dataset.namespace, "name": dataset.name, "type": "DATASET"}
    content["inputs"] = [whole[key] for key in sorted(whole)]
    if fields:
        content["fields"] = {column: {"inputs": inputs} for column, inputs in fields.items()}
    return facet("LineageDatasetFacet", "1-0-0", **content)


def _columns(into: Iterable[ColumnEdge], datasets: Mapping[int, DatasetRecord]) -> Json:
    fields: dict[str, list[Json]] = defaultdict(list)
    whole: list[Json] = []
    for edge in into:
        if edge.source is None or edge.source[0] not in datasets or not edge.source[1]:
            continue
        origin = {
            "namespace": datasets[edge.source[0]].namespace,
            "name": datasets[edge.source[0]].name,
        }
        stated = origin | _field(edge) | {"transformations": [_transformation(edge)]}
        (fields[edge.target[1]] if edge.target[1] else whole).append(stated)
    if not fields and not whole:
        return {}
    content: Json = {
        "fields": {column: {"inputFields": inputs} for column, inputs in fields.items()}
    }
    more = {"dataset": whole} if whole else {}
    return facet("ColumnLineageDatasetFacet", "1-2-0", **content, **more)


def _field(edge: ColumnEdge) -> Json:
    return {"field": edge.source[1]} if edge.source is not None and edge.source[1] else {}


def _transformation(edge: ColumnEdge) -> Json:
    masking = {} if edge.how.masking is None else {"masking": bool(edge.how.masking)}
    return {
        "type": edge.how.type or "DIRECT",
        "subtype": edge.how.subtype,
        "description": edge.how.transform,
    } | masking
