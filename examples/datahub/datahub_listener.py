"""Keeps DataHub up to date with the jobs that run.

Their edges appear when a job begins and go when it ends.

Switched on by conf, with no change to the jobs (this file's folder is on PYTHONPATH):

spark.strandline.enabled    true
spark.strandline.listeners  datahub_listener.DataHubListenerFactory
spark.datahub.rest.url      http://datahub-gms:8080

Both distributions are on the driver: names become urns as the collector's exporter makes them, and
as DataHub's own OpenLineage converter does, so that what they tell of one table is one entity.
"""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Mapping
from concurrent.futures import Executor
from typing import Any

from strandline.exporters.datahub.urns import Urns
from strandline_spark import (
    Context,
    JobCreatedEvent,
    JobExecutionStatusEvent,
    JobStatusChangedListener,
    LineageDataset,
    LineageVertex,
)

URNS = Urns()


class DataHubListenerFactory:
    """Makes the listener of one application."""

    def create_listener(self, context: Context) -> JobStatusChangedListener:
        """`datahub.rest.url` says where DataHub is.

        With `spark.` before it, it can stand in spark-defaults.conf.
        """
        conf = context.configuration
        url = conf.get("datahub.rest.url") or conf["spark.datahub.rest.url"]
        namespace = conf.get("spark.openlineage.namespace", "default")
        return DataHubListener(
            url, conf.get("spark.datahub.token", ""), namespace, context.io_executor
        )


class DataHubListener:
    """Tells DataHub what each running job reads and writes."""

    def __init__(self, url: str, token: str, namespace: str, io_executor: Executor) -> None:
        self._url = f"{url.rstrip('/')}/aspects?action=ingestProposal"
        self._token = token
        self._namespace = namespace
        self._io = io_executor

    def on_event(self, event: JobCreatedEvent | JobExecutionStatusEvent) -> None:
        """Decides on the new status: the old one of an end is never terminal."""
        if isinstance(event, JobCreatedEvent):
            graph = event.lineage_graph
            self._io.submit(
                self._relate, event.job_name, urns_of(graph.sources), urns_of(graph.sinks)
            )
        elif event.new_status.is_terminal:
            self._io.submit(self._relate, event.job_name, [], [])

    def _relate(self, job: str, sources: list[str], sinks: list[str]) -> None:
        self._post(
            proposal(self._namespace, job, {"inputDatasets": sources, "outputDatasets": sinks})
        )

    def _post(self, document: Mapping[str, Any]) -> None:
        headers = {"Content-Type": "application/json", "X-RestLi-Protocol-Version": "2.0.0"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        request = urllib.request.Request(self._url, json.dumps(document).encode(), headers)
        with urllib.request.urlopen(request, timeout=10) as answer:
            answer.read()


def proposal(namespace: str, job: str, aspect: Mapping[str, Any]) -> dict[str, Any]:
    """DataHub's wish to give a job's inputs and outputs the values of `aspect`."""
    return {
        "proposal": {
            "entityType": "dataJob",
            "entityUrn": URNS.job(URNS.flow("spark", job, namespace), job),
            "changeType": "UPSERT",
            "aspectName": "dataJobInputOutput",
            "aspect": {"contentType": "application/json", "value": json.dumps(aspect)},
        }
    }


def urns_of(vertices: tuple[LineageVertex, ...]) -> list[str]:
    """The datasets of some vertices, each once."""
    return list(
        dict.fromkeys(urn_of(dataset) for vertex in vertices for dataset in vertex.datasets)
    )


def urn_of(dataset: LineageDataset) -> str:
    """A dataset as DataHub names it."""
    return URNS.dataset(dataset.namespace, dataset.name)
