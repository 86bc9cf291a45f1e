"""A Marquez, read through its API, as events.

Those that it was sent, then what is in it without any.

Its events are read oldest first, so that what is added meanwhile is found at the end and an import
that was broken off goes on where it stood. Jobs, runs and datasets without an event follow with
their original times: Marquez drops old events, and jobs may be written through its other methods.
Tags and descriptions follow too, which are given on its page.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import orjson

from strandline.errors import ImportFaultError, RefusedItemError, UnavailableError
from strandline.exporters.http_client import Client, segment
from strandline.imports.events import Json, dataset_event, facet, job_event, run_event

PRODUCER = "https://github.com/MarquezProject/marquez"
PAGE = 100
ENDS = {"COMPLETED": "COMPLETE", "FAILED": "FAIL", "ABORTED": "ABORT"}
NOT_THERE = "1970-01-01T00:00:00Z"
Name = tuple[str, str]


@dataclass(slots=True)
class MarquezReader:
    """One Marquez.

    `report` is called with the list being read, how far, and of how many where that is known.
    """

    client: Client
    report: Callable[[str, int, int | None], None]
    runs: set[str] = field(default_factory=set)
    jobs: set[Name] = field(default_factory=set)

    def events(self, start: int = 0) -> Iterator[tuple[int, Json]]:
        """The run events that it was sent, each with the number of events up to it."""
        for offset, event in self._pages(
            "/api/v1/events/lineage", "events", start, "&sortDirection=asc"
        ):
            self.note(event)
            yield offset, event

    def note(self, event: Json) -> None:
        """Note that an event tells of this run and job."""
        run, job = event.get("run") or {}, event.get("job") or {}
        self.runs.add(str(run.get("runId")))
        self.jobs.add((str(job.get("namespace")), str(job.get("name"))))

    def rest(self) -> Iterator[Json]:
        """Yield the rest of its content as events."""
        for _, namespace in self._pages("/api/v1/namespaces", "namespaces", 0):
            below = f"/api/v1/namespaces/{segment(str(namespace['name']))}"
            datasets: dict[Name, Json] = {}
            for _, dataset in self._pages(f"{below}/datasets", "datasets", 0):
                datasets[str(dataset["namespace"]), str(dataset["name"])] = dataset
                yield from self._dataset(dataset)
            for _, job in self._pages(f"{below}/jobs", "jobs", 0):
                yield from self._job(job, below, datasets)

    def _dataset(self, entity: Json) -> Iterator[Json]:
        facets = facets_of_dataset(entity)
        at = entity.get("updatedAt") or entity.get("createdAt")
        if facets and at:
            dataset = {"namespace": entity["namespace"], "name": entity["name"], "facets": facets}
            yield dataset_event(PRODUCER, str(at), dataset)

    def _job(self, job: Json, below: str, datasets: dict[Name, Json]) -> Iterator[Json]:
        name = str(job["namespace"]), str(job["name"])
        own = {"namespace": name[0], "name": name[1], "facets": facets_of_job(job)}
        sides = {
            side: [_dataset_of(dataset, datasets) for dataset in job.get(side) or ()]
            for side in ("inputs", "outputs")
        }
        at = str(job.get("updatedAt") or job.get("createdAt") or NOT_THERE)
        has_runs = name in self.jobs
        for _, run in self._pages(f"{below}/jobs/{segment(name[1])}/runs", "runs", 0):
            has_runs = True
            if str(run["id"]) not in self.runs:
                yield from _run_events(run, own, sides, datasets)
        if not has_runs:
            yield job_event(PRODUCER, at, own, sides)
        elif own["facets"]:
            yield job_event(PRODUCER, at, own, {})

    def _pages(self, path: str, key: str, start: int, more: str = "") -> Iterator[tuple[int, Json]]:
        """The elements of a list, each with its number, a page after the other."""
        offset = start
        while True:
            answer = self._get(f"{path}?limit={PAGE}&offset={offset}{more}")
            page, total = answer.get(key), answer.get("totalCount")
            if not isinstance(page, list):
                self.client.close()
                raise ImportFaultError(
                    f"{self.client.address}{path} has no {key}: is it a Marquez?"
                )
            for item in page:
                offset += 1
                yield offset, item
            self.report(key, offset, total if isinstance(total, int) else None)
            if len(page) < PAGE:
                return

    def _get(self, path: str) -> Json:
        try:
            document: Any = orjson.loads(self.client.send("GET", path))
        except (RefusedItemError, UnavailableError) as error:
            self.client.close()
            raise ImportFaultError(f"cannot read {path}: {error}") from error
        except ValueError as error:
            raise ImportFaultError(f"{self.client.address}{path} is not JSON: {error}") from error
        if not isinstance(document, dict):
            raise ImportFaultError(f"{self.client.address}{path} is not a JSON object")
        return document


def facets_of_dataset(dataset: Json) -> Json:
    """The facets of a dataset: as events gave them, and its columns, tags and description."""
    facets = _given_facets(dataset)
    fields = _objects(dataset.get("fields"))
    if fields and "schema" not in facets:
        columns = [
            {key: field[key] for key in ("name", "type", "description") if field.get(key)}
            for field in fields
        ]
        facets["schema"] = facet(PRODUCER, "SchemaDatasetFacet", "1-1-1", {"fields": columns})
    tags = _tags_of_dataset(dataset, fields)
    if tags:
        facets["tags"] = facet(PRODUCER, "TagsDatasetFacet", "1-0-0", {"tags": tags})
    if dataset.get("description"):
        description = {"description": str(dataset["description"])}
        facets["documentation"] = facet(PRODUCER, "DocumentationDatasetFacet", "1-1-0", description)
    return facets


def _given_facets(entity: Json) -> Json:
    """The facets as events gave them."""
    facets = entity.get("facets")
    if not isinstance(facets, dict):
        return {}
    return {key: value for key, value in facets.items() if isinstance(value, dict)}


def _objects(values: Any) -> list[Json]:
    return [value for value in values or () if isinstance(value, dict)]


def _tags_of_dataset(dataset: Json, fields: list[Json]) -> list[Json]:
    """The tags of a dataset and of its columns."""
    tags: list[Json] = [
        {"key": str(tag), "value": "true", "source": "MARQUEZ"} for tag in dataset.get("tags") or ()
    ]
    for column in fields:
        for tag in column.get("tags") or ():
            tags.append(
                {"key": str(tag), "value": "true", "source": "MARQUEZ", "field": column["name"]}
            )
    return tags


def facets_of_job(job: Json) -> Json:
    """Return the facets of a job.

    They are those of its events, and its tags, description and place in a repository.
    """
    facets = _given_facets(job)
    if job.get("tags"):
        tags = [{"key": str(tag), "value": "true", "source": "MARQUEZ"} for tag in job["tags"]]
        facets["tags"] = facet(PRODUCER, "TagsJobFacet", "1-0-0", {"tags": tags})
    if job.get("description"):
        description = {"description": str(job["description"])}
        facets["documentation"] = facet(PRODUCER, "DocumentationJobFacet", "1-1-0", description)
    if job.get("location") and "sourceCodeLocation" not in facets:
        place = {"type": "git", "url": str(job["location"])}
        facets["sourceCodeLocation"] = facet(PRODUCER, "SourceCodeLocationJobFacet", "1-0-1", place)
    if job.get("type") == "STREAM" and "jobType" not in facets:
        kind = {"processingType": "STREAMING", "integration": "MARQUEZ"}
        facets["jobType"] = facet(PRODUCER, "JobTypeJobFacet", "2-0-3", kind)
    return facets


def _run_events(run: Json, job: Json, sides: Json, datasets: dict[Name, Json]) -> Iterator[Json]:
    """A run without events: how it began, and how it ended."""
    given = run.get("facets")
    facets: Json = dict(given) if isinstance(given, dict) else {}
    if run.get("nominalStartTime"):
        facets.setdefault(
            "nominalTime", facet(PRODUCER, "NominalTimeRunFacet", "1-0-1", _nominal_times(run))
        )
    own = {"runId": str(run["id"]), "facets": facets}
    inputs = _versions(run, "input", datasets) or sides["inputs"]
    outputs = _versions(run, "output", datasets) or sides["outputs"]
    began = str(run.get("startedAt") or run.get("createdAt") or NOT_THERE)
    yield run_event(PRODUCER, "START", began, own, job, inputs, outputs)
    state = str(run.get("state"))
    if state in ENDS:
        ended = str(run.get("endedAt") or run.get("updatedAt") or began)
        yield run_event(PRODUCER, ENDS[state], ended, own, job, inputs, outputs)


def _nominal_times(run: Json) -> Json:
    times = {
        "nominalStartTime": run["nominalStartTime"],
        "nominalEndTime": run.get("nominalEndTime"),
    }
    return {key: value for key, value in times.items() if value}


def _versions(run: Json, side: str, datasets: dict[Name, Json]) -> list[Json]:
    """The datasets that a run read or wrote, each with its version."""
    versions = []
    listed = run.get(f"{side}DatasetVersions") or [
        {"datasetVersionId": version} for version in run.get(f"{side}Versions") or ()
    ]
    for one in listed:
        id_ = one.get("datasetVersionId") or {}
        dataset = _dataset_of(id_, datasets)
        if id_.get("version"):
            version = {"datasetVersion": str(id_["version"])}
            dataset["facets"]["version"] = facet(
                PRODUCER, "DatasetVersionDatasetFacet", "1-0-1", version
            )
        own = one.get("facets")
        versions.append(dataset | {f"{side}Facets": own if isinstance(own, dict) else {}})
    return versions


def _dataset_of(id_: Json, datasets: dict[Name, Json]) -> Json:
    name = str(id_.get("namespace")), str(id_.get("name"))
    facets = facets_of_dataset(datasets[name]) if name in datasets else {}
    return {"namespace": name[0], "name": name[1], "facets": dict(facets)}
