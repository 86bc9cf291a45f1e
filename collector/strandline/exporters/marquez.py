"""Marquez: clean events to its OpenLineage endpoint, so that its page shows what Strandline shows.

Marquez shows the datasets of a job's current version: of a batch job the one that an end makes, of
a stream also that of a RUNNING. It calls a job below its parent by both names unless the job's
begins with the parent's, so such parents are left out. Where relations go when a job ends
(`clear`), a JobEvent without datasets makes a version without any; `delete` hides the job.
"""

from collections.abc import Sequence
from typing import Any

import orjson
from sqlalchemy import Connection

from strandline.exporters.http_client import Client, segment
from strandline.exporters.job_states import live_jobs
from strandline.exporters.openlineage_events import (
    PRODUCER,
    SCHEMA,
    dataset_event,
    events_of,
    job_facets,
    shape_of,
    time_of,
)
from strandline.exporters.run_items import Namespaces, dataset_items, records_of, run_item
from strandline.exporters.run_records import RunRecord
from strandline.exporters.target import Change, Item

LINEAGE = "/api/v1/lineage"
KEEP, CLEAR, DELETE = "keep", "clear", "delete"
GONE = (200, 202, 204, 404)


class Marquez:
    """One Marquez. on_end: what becomes of the relations that end with a job."""

    name = "marquez"
    kinds = "runs"
    at_once = 1

    def __init__(self, client: Client, namespaces: Namespaces, on_end: str = KEEP) -> None:
        self._client = client
        self._namespaces = namespaces
        self._on_end = on_end

    def items(self, connection: Connection, changes: Sequence[Change], now: float) -> list[Item]:
        """Runs, designs, and datasets by themselves."""
        records = records_of(connection, changes, now, self._namespaces)
        jobs = {record.job.id for record, _ in records}
        running = live_jobs(connection, jobs, now) if self._on_end != KEEP and jobs else set()
        found = []
        for record, change in records:
            first, content = events_of(record)
            requests = [_post(_below_its_parent(event)) for event in content]
            requests += self._at_end(record, record.job.id in running)
            if content:
                shape = _below_its_parent(shape_of(record)), len(requests)
                before = tuple(_post(_below_its_parent(event)) for event in first)
                found.append(run_item(record, change, before, tuple(requests), shape))
        return [*found, *self._datasets(connection, changes, now)]

    def _datasets(
        self, connection: Connection, changes: Sequence[Change], now: float
    ) -> list[Item]:
        return dataset_items(
            connection,
            changes,
            self._namespaces,
            lambda record, _: (_post(dataset_event(record, round(now * 1_000_000))),),
            lambda record: (record.namespace, record.name, record.facets),
        )

    def _at_end(self, record: RunRecord, running: bool) -> list[tuple[str, str, Any]]:
        """What follows where relations are shown while a job runs, and no longer."""
        if self._on_end == KEEP or record.design:
            return []
        if not record.is_over:
            (event,) = events_of(record)[1]
            stated = {key: event[key] for key in ("inputs", "outputs")}
            return (
                []
                if record.state.streaming
                else [_post(_job_event(record, record.newest_at, **stated))]
            )
        if running:
            return []
        at = record.ended_at or record.newest_at
        if self._on_end == CLEAR:
            return [_post(_job_event(record, at, inputs=[], outputs=[]))]
        path = f"/api/v1/namespaces/{segment(record.job.namespace)}/jobs/{segment(record.job.name)}"
        return [("DELETE", path, None)]

    def send(self, items: Sequence[Item]) -> None:
        """The requests of these items, in order."""
        for item in items:
            for method, path, event in item.content:
                if method == "DELETE":
                    self._delete(path)
                else:
                    self._client.send(method, path, orjson.dumps(event))

    def _delete(self, path: str) -> None:
        """Hide a job; one that is not there is hidden already."""
        answer = self._client.request("DELETE", path)
        if answer.status not in GONE:
            self._client.send("DELETE", path)

    def close(self) -> None:
        """Let go of the connection."""
        self._client.close()


def _post(event: Any) -> tuple[str, str, Any]:
    return "POST", LINEAGE, event


def _job_event(record: RunRecord, at: int, **datasets: Any) -> dict[str, Any]:
    job = {"namespace": record.job.namespace, "name": record.job.name, "facets": job_facets(record)}
    head = {"eventTime": time_of(at), "producer": PRODUCER, "schemaURL": f"{SCHEMA}/JobEvent"}
    return head | {"job": job} | datasets


def _below_its_parent(event: dict[str, Any]) -> dict[str, Any]:
    """The event without a parent that would give its job another name."""
    facets = event.get("run", {}).get("facets", {})
    parent = facets.get("parent")
    if parent is None or event["job"]["name"].startswith(f"{parent['job']['name']}."):
        return event
    kept = {key: value for key, value in facets.items() if key != "parent"}
    return event | {"run": event["run"] | {"facets": kept}}
