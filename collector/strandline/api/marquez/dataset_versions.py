"""Versions of datasets: snapshots, and what runs wrote without one."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection

from strandline.api.http.operations import Ask, Operation
from strandline.api.http.paging import connected
from strandline.api.marquez.parameters import (
    DATASET,
    NAMESPACE,
    OBJECT,
    PAGE,
    VERSION,
    D,
    now_of,
    page_of,
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
    "type", "name", "physicalName", "namespace", "sourceName", "fields", "tags", "lastModifiedAt", "description",
    "facets",
)  # fmt: skip
Answer = dict[str, Any]


def list_versions(ask: Ask) -> Answer:
    """A page of a dataset's versions, the newest first."""
    with connected(ask) as connection:
        asked = dataset_asked(connection, ask.given["namespace"], ask.given["dataset"])
        found, total = versions_page(connection, asked.row, now_of(ask), *page_of(ask))
        answers = version_answers(
            connection, asked, found, now_of(ask), newest=ask.given["offset"] == 0
        )
        return {"versions": answers, "totalCount": total}


def get_version(ask: Ask) -> Answer:
    """One version, by its id or by the id of its snapshot."""
    with connected(ask) as connection:
        asked = dataset_asked(connection, ask.given["namespace"], ask.given["dataset"])
        found = version_called(connection, asked.row, now_of(ask), ask.given["version"])
        if found is None:
            raise NotFoundError(f"unknown version of {asked.name!r}: {ask.given['version']!r}")
        newest = versions_page(connection, asked.row, now_of(ask), 1, 0)[0][0] == found
        return version_answers(connection, asked, [found], now_of(ask), newest=newest)[0]


def version_answers(
    connection: Connection,
    asked: RequestedDataset,
    found: Sequence[DatasetVersion],
    now: int,
    *,
    newest: bool,
) -> list[Answer]:
    """Versions as Marquez shows them. `newest`: the first of them is the dataset as it is.

    Columns and facets are those that the event stated which made the version; where that is gone,
    those of today.
    """
    dataset = called(
        dataset_answers(connection, [asked.row], now)[asked.row.id], asked.namespace, asked.name
    )
    tags = {one["name"]: one["tags"] for one in dataset["fields"]}
    runs = run_answers(connection, [one.run for one in found if one.run is not None], now)
    stated = stated_facets(connection, found)
    answers = []
    for place, one in enumerate(found):
        facets = None if newest and place == 0 else stated.get(one.id)
        own = {} if facets is None else {"fields": fields_of(facets, tags), "facets": facets}
        answers.append(
            _answer({name: dataset[name] for name in KEPT} | own, one, runs.get(one.run or 0))
        )
    return answers


def _answer(dataset: Answer, one: DatasetVersion, run: Answer | None) -> Answer:
    return dataset | {
        "id": dict(
            zip(
                ("namespace", "name", "version"),
                (dataset["namespace"], dataset["name"], one.id),
                strict=True,
            )
        ),
        "version": one.id,
        "createdAt": time_text(one.at),
        "createdByRun": run,
        "createdByRunUuid": None if run is None else run["id"],
        "lifecycleState": "",
        "currentSchemaVersion": None,
        "datasetSchemaVersionUuid": None,
        "snapshotId": one.snapshot or None,
    }


_NAMED = (NAMESPACE, DATASET)
OPERATIONS = (
    Operation(
        "GET", f"{D}/versions", "The versions of a dataset", list_versions, (*_NAMED, *PAGE),
        answer=OBJECT, refusals=(404,), scope="read",
    ),
    Operation(
        "GET", f"{D}/versions/{{version}}", "A version of a dataset", get_version, (*_NAMED, VERSION),
        answer=OBJECT, refusals=(404,), scope="read",
    ),
)  # fmt: skip
