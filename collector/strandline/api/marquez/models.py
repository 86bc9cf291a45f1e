"""The forms of Marquez's entities, for OpenAPI."""

from typing import NotRequired

from typing_extensions import TypedDict

from strandline.api.http.answers import JSON


class MarquezName(TypedDict):
    """The name of a dataset or job, or of a version of one."""

    namespace: str
    name: str
    version: NotRequired[str]


class MarquezNamespace(TypedDict):
    """A namespace."""

    name: str
    createdAt: str
    updatedAt: str
    ownerName: str
    description: str | None
    isHidden: bool


class MarquezSource(TypedDict):
    """A source: where the datasets of a namespace are."""

    name: str
    type: str
    createdAt: str
    updatedAt: str
    connectionUrl: str
    description: str | None


class MarquezField(TypedDict):
    """A column."""

    name: str
    type: str | None
    tags: list[str]
    description: str | None


class _DatasetState(TypedDict):
    type: str
    name: str
    physicalName: str
    namespace: str
    sourceName: str
    fields: list[MarquezField]
    tags: list[str]
    createdAt: str
    description: str | None
    lastModifiedAt: str | None
    facets: JSON


class MarquezDataset(_DatasetState):
    """A dataset at its newest version."""

    id: MarquezName
    updatedAt: str
    lastLifecycleState: str | None
    deleted: bool
    columnLineage: list[JSON] | None
    currentVersion: str | None


class MarquezDatasetVersion(_DatasetState):
    """A version of a dataset, and the run that made it."""

    id: MarquezName
    version: str
    createdByRun: JSON | None
    createdByRunUuid: str | None
    lifecycleState: str | None
    currentSchemaVersion: str | None
    datasetSchemaVersionUuid: str | None
    snapshotId: str | None


class MarquezRun(TypedDict):
    """A run with the versions that it read and wrote."""

    id: str
    createdAt: str
    updatedAt: str
    nominalStartTime: str | None
    nominalEndTime: str | None
    state: str
    startedAt: str | None
    endedAt: str | None
    durationMs: int | None
    args: JSON
    jobVersion: JSON | None
    facets: JSON
    inputVersions: list[JSON]
    outputVersions: list[JSON]
    inputDatasetVersions: list[JSON]
    outputDatasetVersions: list[JSON]


class _JobState(TypedDict):
    type: str
    name: str
    createdAt: str
    namespace: str
    inputs: list[MarquezName]
    outputs: list[MarquezName]
    location: str | None
    context: JSON
    description: str | None
    latestRun: MarquezRun | None
    facets: JSON


class MarquezJob(_JobState):
    """A job with its newest runs."""

    id: MarquezName
    simpleName: str
    updatedAt: str
    tags: list[str]
    labels: list[str]
    currentVersion: str | None
    latestRuns: list[MarquezRun] | None
    parentJobName: str | None
    parentJobUuid: str | None


class MarquezJobVersion(_JobState):
    """A version of a job: what it read and wrote."""

    id: MarquezName
    version: str
