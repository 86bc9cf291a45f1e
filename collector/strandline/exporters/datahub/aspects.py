"""Aspects of DataHub's entities for jobs, runs and datasets.

Each is a plain JSON value.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from strandline.exporters.datahub.urns import (
    FORMAT_PLATFORMS,
    Urns,
    field_urn,
    flow_name,
    job_title,
    run_urn,
    tag_urn,
    user_urn,
)
from strandline.exporters.job_states import JobState
from strandline.exporters.run_records import DatasetLink, DatasetRecord, JobRecord, Json, RunRecord

ACTOR = "urn:li:corpuser:datahub"
RESULTS = {"COMPLETE": "SUCCESS", "FAIL": "FAILURE", "ABORT": "SKIPPED", "LOST": "SKIPPED"}
TYPES = {
    "BooleanType": ("bool",),
    "BytesType": ("binary", "bytes", "blob"),
    "DateType": ("date",),
    "TimeType": ("time",),
    "ArrayType": ("array", "list"),
    "MapType": ("map",),
    "RecordType": ("struct", "record", "row"),
    "NumberType": (
        "int",
        "long",
        "short",
        "byte",
        "tinyint",
        "smallint",
        "bigint",
        "float",
        "double",
        "decimal",
        "num",
    ),
}


class Proposal(NamedTuple):
    """One entity with aspects that it is to have."""

    entity_type: str
    urn: str
    aspects: Json


def stamp(at: int) -> Json:
    """Return when something was so."""
    return {"time": at // 1000, "actor": ACTOR}


def flow_proposal(urn: str, job: JobRecord) -> Proposal:
    """The application of a job."""
    about = {
        "customProperties": {"openlineage.namespace": job.namespace},
        "name": flow_name(job.name),
    }
    return Proposal("dataFlow", urn, {"dataFlowInfo": about, "status": {"removed": False}})


def job_proposal(
    urn: str, flow: str, job: JobRecord, *, streaming: bool, removed: bool
) -> Proposal:
    """A job with its owners and tags."""
    properties = {"openlineage.namespace": job.namespace, "openlineage.name": job.name}
    if query := job.facets.get("sql", {}).get("query"):
        properties["sql"] = str(query)
    info: Json = {
        "name": job_title(job.name),
        "type": {"string": "STREAMING" if streaming else "BATCH"},
    }
    info |= {"flowUrn": flow, "customProperties": properties}
    if description := job.facets.get("documentation", {}).get("description"):
        info["description"] = str(description)
    aspects = {"dataJobInfo": info, "status": {"removed": removed}, **owners_and_tags(job.facets)}
    return Proposal("dataJob", urn, aspects)


def owners_and_tags(facets: Mapping[str, Any]) -> Json:
    """`ownership` and `globalTags`, where an event states them."""
    aspects: Json = {}
    owners = [
        str(owner["name"]) for owner in _list(facets, "ownership", "owners") if owner.get("name")
    ]
    if owners:
        listed = [{"owner": user_urn(name), "type": "DATAOWNER"} for name in dict.fromkeys(owners)]
        aspects["ownership"] = {"owners": listed, "lastModified": {"time": 0, "actor": ACTOR}}
    tags = [
        _tag(tag)
        for tag in _list(facets, "tags", "tags")
        if tag.get("key") and not tag.get("field")
    ]
    if tags:
        aspects["globalTags"] = {"tags": [{"tag": tag_urn(name)} for name in dict.fromkeys(tags)]}
    return aspects


def _list(facets: Mapping[str, Any], key: str, of: str) -> list[Json]:
    items = facets.get(key, {}).get(of)
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []


def _tag(tag: Json) -> str:
    value = tag.get("value")
    return str(tag["key"]) if value in (None, True, "true", "") else f"{tag['key']}:{value}"


def input_output(state: JobState, urns: "DatasetUrns") -> Json:
    """Return a job's datasets, edges with snapshot and barrier, and columns."""
    return {
        "inputDatasets": [],
        "outputDatasets": [],
        "inputDatasetEdges": [_edge(urns.of(link.dataset), link) for link in state.inputs],
        "outputDatasetEdges": [_edge(urns.of(link.dataset), link) for link in state.outputs],
        "fineGrainedLineages": list(_columns(state, urns)),
    }


def no_input_output() -> Json:
    """A job that reads and writes nothing any more."""
    return {
        "inputDatasets": [],
        "outputDatasets": [],
        "inputDatasetEdges": [],
        "outputDatasetEdges": [],
        "fineGrainedLineages": [],
    }


class DatasetUrns:
    """The urns of datasets by their records, and the names that each urn stands for."""

    def __init__(self, urns: Urns) -> None:
        self._urns = urns
        self._names: dict[str, set[str]] = {}

    def of(self, dataset: DatasetRecord) -> str:
        """Return the urn of one dataset."""
        links = _list(dataset.facets, "symlinks", "identifiers")
        symlinks = [
            (str(link.get("namespace")), str(link.get("name")), str(link.get("type")))
            for link in links
        ]
        catalog = dataset.facets.get("catalog", {})
        urn = self._urns.dataset(
            dataset.namespace,
            dataset.name,
            symlinks,
            catalog=str(catalog.get("name") or ""),
            table_format=_format_of(dataset.facets),
        )
        self.note(urn, dataset)
        return urn

    def note(self, urn: str, named: DatasetRecord | JobRecord) -> None:
        """Remember what an urn stands for."""
        self._names.setdefault(urn, set()).add(f"{named.namespace}:{named.name}")

    def merged(self) -> dict[str, list[str]]:
        """Return the urns that stand for several datasets or jobs."""
        return {urn: sorted(names) for urn, names in self._names.items() if len(names) > 1}


def _format_of(facets: Mapping[str, Any]) -> str:
    """Return the format of a table, as its catalog, storage or snapshot facet says."""
    catalog = facets.get("catalog", {})
    stated = (
        catalog.get("framework"),
        catalog.get("type"),
        facets.get("storage", {}).get("storageLayer"),
        facets.get("strandline_snapshot", {}).get("format"),
    )
    words = " ".join(str(word) for word in stated if word).lower()
    return next((name for name in FORMAT_PLATFORMS if name in words), "")


def _edge(urn: str, link: DatasetLink) -> Json:
    edge: Json = {"destinationUrn": urn, "lastModified": stamp(link.at)}
    if properties := snapshot_properties(link.facets):
        edge["properties"] = properties
    return edge


def snapshot_properties(facets: Mapping[str, Any]) -> dict[str, str]:
    """Snapshot and barrier of what was read or written."""
    snapshot = facets.get("strandline_snapshot", {})
    names = ("snapshotId", "fromSnapshotId", "barrierId", "format")
    return {name: str(snapshot[name]) for name in names if snapshot.get(name) is not None}


def _columns(state: JobState, urns: DatasetUrns) -> Iterable[Json]:
    """One entry for each column that is made, with all that it is made from."""
    sources: dict[tuple[int, str], list[str]] = defaultdict(list)
    how: dict[tuple[int, str], set[str]] = defaultdict(set)
    for edge in state.edges:
        source, target = edge.source, edge.target
        if source is None or not _joins_columns(source, target, state.datasets):
            continue
        sources[target].append(field_urn(urns.of(state.datasets[source[0]]), source[1]))
        if edge.how.type != "INDIRECT":
            how[target].add(edge.how.transform or edge.how.subtype or "IDENTITY")
    for target in sorted(sources):
        entry: Json = {"upstreamType": "FIELD_SET", "upstreams": sorted(set(sources[target]))}
        entry |= {
            "downstreamType": "FIELD",
            "downstreams": [field_urn(urns.of(state.datasets[target[0]]), target[1])],
        }
        if how[target]:
            entry["transformOperation"] = "; ".join(sorted(how[target]))
        yield entry | {"confidenceScore": 1.0}


def run_proposals(record: RunRecord, job: str, urns: DatasetUrns) -> tuple[Proposal, Proposal]:
    """A run: as it began, and as it is now, with what it read and wrote.

    They differ in the event of the run alone.
    """
    urn = run_urn(record.run_id)
    kind = "STREAMING" if record.state.streaming else "BATCH_SCHEDULED"
    properties = {"openlineage.state": record.state.state} | _barrier(record.facets)
    properties |= _snapshots("input", record.inputs, urns) | _snapshots(
        "output", record.outputs, urns
    )
    relationships: Json = {"parentTemplate": job, "upstreamInstances": []}
    if record.parent is not None:
        relationships["parentInstance"] = run_urn(record.parent.run_id)
    about = {
        "name": record.run_id,
        "created": stamp(record.started_at),
        "type": kind,
        "customProperties": properties,
    }
    aspects: Json = {
        "dataProcessInstanceProperties": about,
        "dataProcessInstanceRelationships": relationships,
    }
    if record.inputs:
        aspects["dataProcessInstanceInput"] = {
            "inputs": [urns.of(link.dataset) for link in record.inputs]
        }
    if record.outputs:
        aspects["dataProcessInstanceOutput"] = {
            "outputs": [urns.of(link.dataset) for link in record.outputs]
        }
    begun = aspects | {"dataProcessInstanceRunEvent": _started(record)}
    now = aspects | {
        "dataProcessInstanceRunEvent": _ended(record) if record.is_over else _started(record)
    }
    return Proposal("dataProcessInstance", urn, begun), Proposal("dataProcessInstance", urn, now)


def _barrier(facets: Mapping[str, Any]) -> dict[str, str]:
    barrier = facets.get("strandline_barrier", {})
    return {
        name: str(barrier[name])
        for name in ("barrierId", "group", "batchId")
        if barrier.get(name) is not None
    }


def _snapshots(side: str, links: Sequence[DatasetLink], urns: DatasetUrns) -> dict[str, str]:
    snapshots = {}
    for link in links:
        if snapshot := snapshot_properties(link.facets).get("snapshotId"):
            snapshots[f"{side}.snapshot.{urns.of(link.dataset)}"] = snapshot
    return snapshots


def _started(record: RunRecord) -> Json:
    return {"timestampMillis": record.started_at // 1000, "status": "STARTED"}


def _ended(record: RunRecord) -> Json:
    at = record.ended_at or record.newest_at
    result = {
        "type": RESULTS[record.state.state],
        "nativeResultType": "Strandline: " + record.state.state,
    }
    duration = max(0, at - record.started_at) // 1000
    return {
        "timestampMillis": at // 1000,
        "status": "COMPLETE",
        "result": result,
        "durationMillis": duration,
    }


def schema_proposal(dataset: DatasetRecord, urns: DatasetUrns, platform: str) -> Proposal | None:
    """The columns of a dataset, if events say them."""
    columns = [
        field for one in _list(dataset.facets, "schema", "fields") for field in _fields(one, "")
    ]
    if not columns:
        return None
    schema = {
        "schemaName": dataset.name,
        "platform": platform,
        "version": 0,
        "hash": "",
        "platformSchema": {"com.linkedin.schema.OtherSchema": {"rawSchema": ""}},
        "fields": columns,
    }
    return Proposal(
        "dataset", urns.of(dataset), {"schemaMetadata": schema, **owners_and_tags(dataset.facets)}
    )


def _fields(field: Json, above: str) -> Iterable[Json]:
    path = f"{above}.{field.get('name')}" if above else str(field.get("name"))
    native = str(field.get("type") or "unknown")
    column: Json = {
        "fieldPath": path,
        "nativeDataType": native,
        "nullable": True,
        "recursive": False,
    }
    column["type"] = {"type": {f"com.linkedin.schema.{_type_of(native)}": {}}}
    if field.get("description"):
        column["description"] = str(field["description"])
    yield column
    for inner in field.get("fields") or ():
        if isinstance(inner, dict):
            yield from _fields(inner, path)


def _type_of(native: str) -> str:
    word = native.lower()
    if word.startswith(("timestamp", "interval")):
        return "TimeType"
    return next((name for name, words in TYPES.items() if word.startswith(words)), "StringType")


def _joins_columns(
    source: tuple[int, str], target: tuple[int, str], datasets: Collection[int]
) -> bool:
    """Return whether both ends of an edge name a column of a dataset that is sent."""
    return bool(source[1] and target[1]) and source[0] in datasets and target[0] in datasets
