"""Versions of datasets: snapshots, and what runs wrote without one."""

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import Query as InQuery
from sqlalchemy import Connection
from typing_extensions import TypedDict

from strandline.api.http.route import refused
from strandline.api.http.session import ReadSession
from strandline.api.marquez.models import MarquezDatasetVersion
from strandline.api.marquez.parameters import (
    D,
    DatasetName,
    NamespaceName,
    PageQuery,
    VersionId,
    marquez_router,
)
from strandline.api.marquez.shapes.datasets import called, dataset_answers, fields_of
from strandline.api.marquez.shapes.runs import run_answers
from strandline.api.marquez.shapes.times import time_text
from strandline.errors import NotFoundError
from strandline.store.marquez.datasets import RequestedDataset, dataset_asked
from strandline.store.marquez.versions import (
    DatasetVersion,
    stated_facets,
    version_called,
    versions_page,
)

KEPT = (
    "type", "name", "physicalName", "namespace", "sourceName", "fields", "tags", "lastModifiedAt",
    "description", "facets",
)  # fmt: skip
Answer = dict[str, Any]
router = marquez_router()


class DatasetVersions(TypedDict):
    """A page of versions."""

    versions: list[MarquezDatasetVersion]
    totalCount: int


@router.get(f"{D}/versions", response_model=DatasetVersions, responses=refused(404))
def list_versions(
    namespace: NamespaceName,
    dataset: DatasetName,
    query: Annotated[PageQuery, InQuery()],
    session: ReadSession,
) -> Answer:
    """Return the versions of a dataset, the newest first."""
    with session.connected() as connection:
        requested = dataset_asked(connection, namespace, dataset)
        versions, total = versions_page(connection, requested.row, session.micros, *query.page)
        answers = version_answers(
            connection, requested, versions, session.micros, newest=query.offset == 0
        )
        return {"versions": answers, "totalCount": total}


@router.get(
    D + "/versions/{version:name}", response_model=MarquezDatasetVersion, responses=refused(404)
)
def get_version(
    namespace: NamespaceName, dataset: DatasetName, version: VersionId, session: ReadSession
) -> Answer:
    """Return a version of a dataset, by its id or by the id of its snapshot."""
    with session.connected() as connection:
        requested = dataset_asked(connection, namespace, dataset)
        row = version_called(connection, requested.row, session.micros, version)
        if row is None:
            raise NotFoundError(f"unknown version of {requested.name!r}: {version!r}")
        newest = versions_page(connection, requested.row, session.micros, 1, 0)[0][0] == row
        return version_answers(connection, requested, [row], session.micros, newest=newest)[0]


def version_answers(
    connection: Connection,
    requested: RequestedDataset,
    versions: Sequence[DatasetVersion],
    now: int,
    *,
    newest: bool,
) -> list[Answer]:
    """Versions as Marquez shows them. `newest`: the first of them is the dataset as it is.

    Columns and facets are those that the event stated which made the version; where that is gone,
    those of today.
    """
    dataset = called(
        dataset_answers(connection, [requested.row], now)[requested.row.id],
        requested.namespace,
        requested.name,
    )
    tags = {field["name"]: field["tags"] for field in dataset["fields"]}
    writers = [one.run for one in versions if one.run is not None]
    runs = run_answers(connection, writers, now, whole=True)
    stated = stated_facets(connection, versions)
    answers = []
    for place, version in enumerate(versions):
        facets = None if newest and place == 0 else stated.get(version.id)
        own = {} if facets is None else {"fields": fields_of(facets, tags), "facets": facets}
        answers.append(
            _answer(
                {name: dataset[name] for name in KEPT} | own, version, runs.get(version.run or 0)
            )
        )
    return answers


def _answer(dataset: Answer, dataset_version: DatasetVersion, run: Answer | None) -> Answer:
    return dataset | {
        "id": dict(
            zip(
                ("namespace", "name", "version"),
                (dataset["namespace"], dataset["name"], dataset_version.id),
                strict=True,
            )
        ),
        "version": dataset_version.id,
        "createdAt": time_text(dataset_version.at),
        "createdByRun": run,
        "createdByRunUuid": None if run is None else run["id"],
        "lifecycleState": "",
        "currentSchemaVersion": None,
        "datasetSchemaVersionUuid": None,
        "snapshotId": dataset_version.snapshot or None,
    }
