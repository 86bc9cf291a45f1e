"""OpenMetadata: COMPLETE events to its OpenLineage endpoint, or to the topic that its connector reads.

It takes nothing but COMPLETE with datasets on both sides, so what a stream reads and writes is sent as a COMPLETE of its own whenever
that changes. It takes the first symlink for the table's name, and its connector wants a parent.
"""

from collections.abc import Sequence
from typing import Any

import orjson
from sqlalchemy import Connection

from strandline.exporters.http_client import Client
from strandline.exporters.openlineage_events import facet, newest_of, shape_of
from strandline.exporters.run_items import Namespaces, records_of, run_item
from strandline.exporters.run_records import RunRecord
from strandline.exporters.senders import Message, Sender
from strandline.exporters.target import Change, Item

BATCH = "/api/v1/openlineage/lineage/batch"
AT_ONCE = 50


class OpenMetadata:
    """One OpenMetadata."""

    name = "openmetadata"
    kinds = "runs"

    def __init__(self, sender: Sender, namespaces: Namespaces) -> None:
        self._sender = sender
        self._namespaces = namespaces

    @property
    def at_once(self) -> int:
        """As many as the sender takes."""
        return self._sender.at_once

    def items(self, connection: Connection, changes: Sequence[Change], now: float) -> list[Item]:
        """Batch runs that are complete, and streams that run."""
        found = []
        for record, change in records_of(connection, changes, now, self._namespaces):
            if _is_shown(record):
                shape = {
                    key: value
                    for key, value in shape_of(record).items()
                    if key not in ("eventType", "eventTime")
                }
                found.append(run_item(record, change, (), (_complete(record),), shape))
        return found

    def send(self, items: Sequence[Item]) -> None:
        """The events of these items."""
        events = [event for item in items for event in item.content]
        self._sender.send(
            [
                Message(orjson.dumps(one), f"run:{one['job']['namespace']}/{one['job']['name']}")
                for one in events
            ]
        )

    def close(self) -> None:
        """Let go of connections."""
        self._sender.close()


class BatchSender:
    """The endpoint that takes several events a request."""

    at_once = AT_ONCE

    def __init__(self, client: Client) -> None:
        self._client = client

    def send(self, messages: Sequence[Message]) -> None:
        """All in one request."""
        self._client.send(
            "POST", BATCH, b'{"events": [' + b", ".join(one.body for one in messages) + b"]}"
        )

    def close(self) -> None:
        """Let go of the connection."""
        self._client.close()


def _is_shown(record: RunRecord) -> bool:
    if not record.inputs or not record.outputs or record.design:
        return False
    return record.state.state == "COMPLETE" or (record.state.streaming and record.state.live)


def _complete(record: RunRecord) -> dict[str, Any]:
    event = newest_of(record) | {"eventType": "COMPLETE"}
    facets = event["run"]["facets"]
    if "parent" not in facets:
        own = {
            "run": {"runId": record.run_id},
            "job": {key: event["job"][key] for key in ("namespace", "name")},
        }
        facets["parent"] = facet("ParentRunFacet", "1-1-0", **own)
    for dataset in (*event["inputs"], *event["outputs"]):
        if "symlinks" in dataset["facets"]:
            dataset["facets"]["symlinks"] = _tables_first(dataset["facets"]["symlinks"])
    return event


def _tables_first(symlinks: dict[str, Any]) -> dict[str, Any]:
    identifiers = symlinks.get("identifiers") or []
    return symlinks | {
        "identifiers": sorted(identifiers, key=lambda one: one.get("type") != "TABLE")
    }
