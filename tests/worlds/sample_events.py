"""Small OpenLineage events; what a test does not name does not matter to it."""

import json
from typing import Any

TIME = "2026-11-20T12:00:00Z"


def run_event(
    run_id: str = "1", kind: str = "COMPLETE", job: str = "load", **more: Any
) -> dict[str, Any]:
    """A RunEvent."""
    event = {
        "eventTime": TIME,
        "eventType": kind,
        "producer": "https://example.com/tests",
        "schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent",
        "run": {"runId": run_id},
        "job": {"namespace": "tests", "name": job},
        "inputs": [{"namespace": "db", "name": "a"}],
        "outputs": [{"namespace": "db", "name": "b"}],
    }
    return event | more


def as_bytes(event: dict[str, Any]) -> bytes:
    """The event as clients send it."""
    return json.dumps(event).encode()
