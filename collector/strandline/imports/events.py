"""Events made of what another catalog holds.

The same thing makes the same bytes each time, so taking it twice changes nothing.
"""

from datetime import UTC, datetime
from typing import Any

import orjson

from strandline.core.openlineage.times import micros, moment_of
from strandline.store.ingest.take import Record

Json = dict[str, Any]
SPEC = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs"
FACETS = "https://openlineage.io/spec/facets"


def record_of(event: Json, now: datetime) -> Record:
    """An event as a record that was received when it happened.

    What has long been silent is not taken for running.
    """
    at = micros(str(event.get("eventTime") or ""))
    received = now if at is None else min(moment_of(max(at, 0)), now)
    return Record(orjson.dumps(event), received)


def run_event(
    producer: str, kind: str, at: str, run: Json, job: Json, inputs: list[Json], outputs: list[Json]
) -> Json:
    """A RunEvent."""
    head = {
        "eventType": kind,
        "eventTime": at,
        "producer": producer,
        "schemaURL": f"{SPEC}/RunEvent",
    }
    return head | {"run": run, "job": job, "inputs": inputs, "outputs": outputs}


def job_event(producer: str, at: str, job: Json, datasets: Json) -> Json:
    """A JobEvent; without datasets it says nothing of them."""
    return {
        "eventTime": at,
        "producer": producer,
        "schemaURL": f"{SPEC}/JobEvent",
        "job": job,
    } | datasets


def dataset_event(producer: str, at: str, dataset: Json) -> Json:
    """A DatasetEvent."""
    return {
        "eventTime": at,
        "producer": producer,
        "schemaURL": f"{SPEC}/DatasetEvent",
        "dataset": dataset,
    }


def facet(producer: str, name: str, version: str, content: Json) -> Json:
    """A facet of the standard."""
    return {
        "_producer": producer,
        "_schemaURL": f"{FACETS}/{version}/{name}.json#/$defs/{name}",
    } | content


def time_text(millis: float) -> str:
    """A moment in milliseconds as events have it."""
    return datetime.fromtimestamp(millis / 1000, UTC).isoformat().replace("+00:00", "Z")
