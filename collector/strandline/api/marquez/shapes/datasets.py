"""A dataset as Marquez shows it."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection

from strandline.api.marquez.shapes.tags import tags_by_field
from strandline.api.marquez.shapes.times import time_or_none, time_text
from strandline.core.openlineage.facets import DATASET
from strandline.store.catalog.writes import Write, newest_writes
from strandline.store.lineage.dropped import dropped_at
from strandline.store.lineage.lookup import names_of_datasets
from strandline.store.lineage.run_state import View
from strandline.store.marquez.annotations import Annotations, annotations_of
from strandline.store.marquez.facet_values import all_facets, facet_values, facets_of_last_uses
from strandline.store.marquez.names import first_mentions

KEYS = ("schema", "documentation", "dataSource", "datasetType", "lifecycleStateChange", "tags")
STREAMS = (
    "kafka:",
    "kinesis:",
    "pulsar:",
    "pubsub:",
    "eventhubs:",
    "rabbitmq:",
    "amqp:",
    "arn:aws:kinesis",
)
Answer = dict[str, Any]


def dataset_answers(
    connection: Connection, rows: Sequence[Any], now: int, *, whole: bool = True
) -> dict[int, Answer]:
    """Return these datasets by the ids of their rows; `whole`: with all their facets.

    With them are the input and output facets of the last runs, such as their quality.
    """
    groups = names_of_datasets(connection, [row.id for row in rows])
    facets = facet_values(connection, DATASET, groups, KEYS)
    dropped = dropped_at(connection, groups, now)
    noted, writes = (
        annotations_of(connection, groups),
        newest_writes(connection, [row.id for row in rows], View(now)),
    )
    mentions = (
        first_mentions(connection, (), groups) if any(row.first_at is None for row in rows) else {}
    )
    answers = {}
    for row in rows:
        at = row.first_at if row.first_at is not None else mentions.get(row.id, now)
        answer = _dataset(row, facets.get(row.id, {}), noted[row.id], at)
        gone = {"deleted": row.id in dropped}
        answers[row.id] = answer | gone | {"lastModifiedAt": _modified(writes.get(row.id))}
    if whole:
        own, of_uses = (
            all_facets(connection, DATASET, groups),
            facets_of_last_uses(connection, groups),
        )
        for id_, answer in answers.items():
            answer["facets"] = of_uses.get(id_, {}) | own.get(id_, {})
    return answers


def _dataset(
    row: Any, facets: Mapping[str, Mapping[str, Any]], noted: Annotations, created: int
) -> Answer:
    state = str(facets.get("lifecycleStateChange", {}).get("lifecycleStateChange") or "")
    tags = tags_by_field(noted, facets)
    return {
        "id": {"namespace": row.namespace, "name": row.name},
        "type": _type(row.namespace, facets),
        "name": row.name,
        "physicalName": row.name,
        "createdAt": time_text(created),
        "updatedAt": time_text(max(row.newest_at or 0, created)),
        "namespace": row.namespace,
        "sourceName": facets.get("dataSource", {}).get("name") or row.namespace,
        "fields": fields_of(facets, tags),
        "tags": tags.get("", []),
        "description": facets.get("documentation", {}).get("description"),
        "lastLifecycleState": state,
        "deleted": False,
        "columnLineage": None,
        "currentVersion": None,
    }


def fields_of(facets: Mapping[str, Any], tags: Mapping[str, list[str]]) -> list[Answer]:
    """Return the columns of a schema facet."""
    schema = facets.get("schema")
    stated = schema.get("fields") if isinstance(schema, dict) else None
    return [
        {
            "name": field["name"],
            "type": field.get("type"),
            "tags": tags.get(field["name"], []),
            "description": field.get("description"),
        }
        for field in (stated if isinstance(stated, list) else ())
        if isinstance(field, dict) and isinstance(field.get("name"), str)
    ]


def _type(namespace: str, facets: Mapping[str, Mapping[str, Any]]) -> str:
    stated = str(facets.get("datasetType", {}).get("datasetType") or "").upper()
    is_stream = stated in ("STREAM", "TOPIC", "STREAMING") or (
        not stated and namespace.startswith(STREAMS)
    )
    return "STREAM" if is_stream else "DB_TABLE"


def _modified(write: Write | None) -> str | None:
    """Return the time at which a run that succeeded, or still runs, wrote it."""
    if write is None or write.run.state in ("FAIL", "ABORT", "LOST"):
        return None
    return time_or_none(write.run.until or write.run.since)


def called(answer: Answer, namespace: str, name: str) -> Answer:
    """Return the same dataset under the name by which it was asked for."""
    return answer | {
        "id": {"namespace": namespace, "name": name},
        "namespace": namespace,
        "name": name,
    }
