"""A file of DataHub's metadata as events.

Jobs with what they read and write, column by column, runs, columns of tables, owners, tags.

Urns become names as Strandline has them: `hive` and its like are namespaces, object stores buckets.
What has no place in events (lineage of datasets without a job, users, dashboards) is counted and
left out.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import orjson

from strandline.errors import ImportFaultError
from strandline.imports.events import Json, dataset_event, facet, job_event, run_event, time_text

PRODUCER = "https://github.com/datahub-project/datahub"
DATASET = re.compile(
    r"urn:li:dataset:\(urn:li:dataPlatform:(?P<platform>[^,()]+),(?P<name>[^,()]+),(?P<env>[^,()]+)\)"
)
JOB = re.compile(
    r"urn:li:dataJob:\(urn:li:dataFlow:\((?P<tool>[^,()]*),(?P<flow>[^,()]*),(?P<cluster>[^,()]*)\),(?P<name>[^,()]*)\)"
)
FIELD = re.compile(r"urn:li:schemaField:\((?P<dataset>urn:li:dataset:\(.*?\)),(?P<column>.*)\)")
BUCKETS = {"s3": "s3", "gcs": "gs", "abs": "abfss"}
RESULTS = {"SUCCESS": "COMPLETE", "FAILURE": "FAIL", "SKIPPED": "ABORT", "UP_FOR_RETRY": "FAIL"}
TAKEN = {
    "dataJob": ("dataJobInfo", "dataJobInputOutput", "ownership", "globalTags"),
    "dataFlow": ("dataFlowInfo",),
    "dataset": ("schemaMetadata", "ownership", "globalTags"),
    "dataProcessInstance": (
        *(
            "dataProcessInstanceProperties",
            "dataProcessInstanceRelationships",
            "dataProcessInstanceRunEvent",
        ),
        *("dataProcessInstanceInput", "dataProcessInstanceOutput"),
    ),
}
NOTHING_TO_SAY = ("status", "dataPlatformInstance", "browsePathsV2")

Aspects = dict[str, list[Json]]


class DataHubFile:
    """One file. `left_out` counts the aspects that no event can say."""

    def __init__(self, file: Path) -> None:
        self.left_out: Counter[str] = Counter()
        self._entities: dict[tuple[str, str], Aspects] = defaultdict(lambda: defaultdict(list))
        self._newest = 0
        for entry in _entries(file):
            self._keep(entry)

    def events(self) -> Iterator[Json]:
        """Everything as events: datasets, jobs, runs."""
        for (kind, urn), aspects in self._entities.items():
            if kind == "dataset":
                yield from self._dataset(urn, aspects)
            elif kind == "dataJob":
                yield from self._job(urn, aspects)
            elif kind == "dataProcessInstance":
                yield from self._run(urn, aspects)

    def _keep(self, entry: Json) -> None:
        kind, urn, name = (str(entry.get(key)) for key in ("entityType", "entityUrn", "aspectName"))
        value = (entry.get("aspect") or {}).get("json")
        if name not in TAKEN.get(kind, ()) or not isinstance(value, dict):
            if name not in NOTHING_TO_SAY:
                self.left_out[f"{kind} {name}"] += 1
            return
        self._newest = max(self._newest, *_times(entry))
        self._entities[kind, urn][name].append(value)

    def _at(self, *values: Any) -> str:
        """Return the time of the last change; the newest of the file where there is none."""
        return time_text(
            max([time for value in values for time in _times(value)], default=0) or self._newest
        )

    def _dataset(self, urn: str, aspects: Aspects) -> Iterator[Json]:
        facets = _owners_and_tags(aspects, "Dataset")
        for schema in aspects.get("schemaMetadata", ())[-1:]:
            fields = [
                _column(field) for field in schema.get("fields") or () if field.get("fieldPath")
            ]
            facets["schema"] = facet(PRODUCER, "SchemaDatasetFacet", "1-1-1", {"fields": fields})
        if facets and (name := dataset_name(urn)):
            dataset = {"namespace": name[0], "name": name[1], "facets": facets}
            yield dataset_event(PRODUCER, self._at(*aspects.values()), dataset)

    def _job(self, urn: str, aspects: Aspects) -> Iterator[Json]:
        job = _job_of(urn)
        if job is None:
            return
        facets = _owners_and_tags(aspects, "Job")
        for info in aspects.get("dataJobInfo", ())[-1:]:
            if info.get("description"):
                description = {"description": str(info["description"])}
                facets["documentation"] = facet(
                    PRODUCER, "DocumentationJobFacet", "1-1-0", description
                )
        datasets: Json = {}
        for value in aspects.get("dataJobInputOutput", ())[-1:]:
            columns = _columns(value)
            datasets = {
                "inputs": [
                    _named(urn, {}) for urn in _urns(value, "inputDatasets", "inputDatasetEdges")
                ],
                "outputs": [
                    _named(urn, columns.get(urn, {}))
                    for urn in _urns(value, "outputDatasets", "outputDatasetEdges")
                ],
            }
        yield job_event(PRODUCER, self._at(*aspects.values()), job | {"facets": facets}, datasets)

    def _run(self, urn: str, aspects: Aspects) -> Iterator[Json]:
        relationships = aspects.get("dataProcessInstanceRelationships", [{}])[-1]
        job = _job_of(str(relationships.get("parentTemplate")))
        if job is None:
            self.left_out["dataProcessInstance without a job"] += 1
            return
        inputs = [
            _named(urn, {})
            for value in aspects.get("dataProcessInstanceInput", ())[-1:]
            for urn in value["inputs"]
        ]
        outputs = [
            _named(output, {})
            for value in aspects.get("dataProcessInstanceOutput", ())[-1:]
            for output in value["outputs"]
        ]
        run = {"runId": urn.rpartition(":")[2], "facets": {}}
        for event in aspects.get("dataProcessInstanceRunEvent", ()):
            at = time_text(event["timestampMillis"])
            kind = "START"
            if event.get("status") == "COMPLETE":
                kind = RESULTS.get(str((event.get("result") or {}).get("type")), "COMPLETE")
            yield run_event(PRODUCER, kind, at, run, job | {"facets": {}}, inputs, outputs)


def dataset_name(urn: str) -> tuple[str, str] | None:
    """A dataset's namespace and name.

    >>> dataset_name("urn:li:dataset:(urn:li:dataPlatform:s3,bank/lake/t,PROD)")
    ('s3://bank', 'lake/t')
    >>> dataset_name("urn:li:dataset:(urn:li:dataPlatform:hive,db.t,PROD)")
    ('hive', 'db.t')
    """
    parts = DATASET.fullmatch(urn)
    if parts is None:
        return None
    platform, name = unquote(parts["platform"]), unquote(parts["name"])
    bucket, _, path = name.partition("/")
    return (
        (f"{BUCKETS[platform]}://{bucket}", path)
        if platform in BUCKETS and path
        else (platform, name)
    )


def _entries(file: Path) -> list[Json]:
    try:
        entries = orjson.loads(file.read_bytes())
    except ValueError as error:
        raise ImportFaultError(f"{file} is not JSON: {error}") from error
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise ImportFaultError(
            f"{file} is not a file of DataHub's metadata: expected an array of objects"
        )
    return entries


def _times(value: Any) -> list[int]:
    """All moments in a value, in milliseconds."""
    if isinstance(value, list):
        return [0, *(at for item in value for at in _times(item))]
    if not isinstance(value, dict):
        return [0]
    own = [
        item
        for key, item in value.items()
        if key in ("time", "timestampMillis", "lastObserved") and isinstance(item, int)
    ]
    return [0, *own, *(at for item in value.values() for at in _times(item))]


def _job_of(urn: str) -> Json | None:
    parts = JOB.fullmatch(urn)
    return (
        None
        if parts is None
        else {"namespace": unquote(parts["cluster"]), "name": unquote(parts["name"])}
    )


def _named(urn: str, facets: Json) -> Json:
    namespace, name = dataset_name(urn) or ("datahub", urn)
    return {"namespace": namespace, "name": name, "facets": facets}


def _urns(value: Json, plain: str, edges: str) -> list[str]:
    listed = [
        *(value.get(plain) or ()),
        *(edge["destinationUrn"] for edge in value.get(edges) or ()),
    ]
    return list(dict.fromkeys(map(str, listed)))


def _columns(value: Json) -> dict[str, Json]:
    """The columnLineage facet of each dataset that columns are made of."""
    fields: dict[str, dict[str, list[Json]]] = defaultdict(lambda: defaultdict(list))
    for fine_grained_lineage in value.get("fineGrainedLineages") or ():
        how = {
            "type": "DIRECT",
            "subtype": "",
            "description": str(fine_grained_lineage.get("transformOperation") or ""),
        }
        for target in _fields_in(fine_grained_lineage.get("downstreams")):
            for source in _fields_in(fine_grained_lineage.get("upstreams")):
                name = dataset_name(source["dataset"]) or ("datahub", source["dataset"])
                origin = {"namespace": name[0], "name": name[1], "field": unquote(source["column"])}
                fields[target["dataset"]][unquote(target["column"])].append(
                    origin | {"transformations": [how]}
                )
    return {urn: {"columnLineage": _column_facet(columns)} for urn, columns in fields.items()}


def _fields_in(urns: Any) -> list[re.Match[str]]:
    """The urns that name a column of a dataset."""
    return [match for urn in urns or () if (match := FIELD.fullmatch(str(urn)))]


def _column_facet(columns: dict[str, list[Json]]) -> Json:
    fields = {column: {"inputFields": origins} for column, origins in columns.items()}
    return facet(PRODUCER, "ColumnLineageDatasetFacet", "1-2-0", {"fields": fields})


def _column(field: Json) -> Json:
    column = {"name": str(field["fieldPath"]), "type": str(field.get("nativeDataType") or "")}
    return column | ({"description": str(field["description"])} if field.get("description") else {})


def _owners_and_tags(aspects: Aspects, of: str) -> Json:
    facets: Json = {}
    owners = [
        str(owner["owner"]).removeprefix("urn:li:")
        for value in aspects.get("ownership", ())[-1:]
        for owner in value["owners"]
    ]
    if owners:
        named = [{"name": _owner(owner)} for owner in owners]
        facets["ownership"] = facet(PRODUCER, f"Ownership{of}Facet", "1-0-1", {"owners": named})
    tags = [
        str(tag["tag"]) for value in aspects.get("globalTags", ())[-1:] for tag in value["tags"]
    ]
    if tags:
        keyed = [
            {"key": unquote(tag.removeprefix("urn:li:tag:")), "value": "true", "source": "DATAHUB"}
            for tag in tags
        ]
        facets["tags"] = facet(PRODUCER, f"Tags{of}Facet", "1-0-0", {"tags": keyed})
    return facets


def _owner(urn: str) -> str:
    kind, _, name = urn.partition(":")
    return f"{'team' if kind == 'corpGroup' else 'user'}:{unquote(name)}"
