"""Forwarded events, as received or clean, over HTTP, Kafka and files."""

import json
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaConsumer
from sqlalchemy import Engine

from fixtures.contract_servers.server import ContractServer, Fault
from strandline.core.openlineage.events import decode
from transports.exporters.conftest import COLUMNS, Export
from worlds.builders import NOON, dataset, encode, event, job_event, store

NOW = NOON.timestamp() + 100


def made(run: int = 1, seconds: float = 1) -> dict[str, Any]:
    """Return a run that makes b of a, by columns, and of a filter."""
    outputs = [dataset("db.b", columnLineage=COLUMNS)]
    return event(
        "COMPLETE",
        run,
        "etl",
        seconds,
        inputs=[dataset("db.a"), dataset("db.filter")],
        outputs=outputs,
    )


def test_received_mode_sends_the_same_bytes_in_the_same_order(
    engine: Engine, exporting: Export, anybody: ContractServer
) -> None:
    exports = exporting(openlineage_url=f"{anybody.url}/hook", openlineage_events="received")
    events = [event("START", 1), made(), made(2), job_event("design", inputs=[dataset("db.x")])]
    store(engine, [*events, events[0]], received_at=NOON, size=1)
    exports.deliver(NOW)
    exports.deliver(NOW + 1)

    assert [asked.body for asked in anybody.asked] == events
    assert {asked.path for asked in anybody.asked} == {"/hook"}


def test_received_mode_does_not_resend_accepted_events(
    engine: Engine, exporting: Export, anybody: ContractServer
) -> None:
    exports = exporting(openlineage_url=anybody.url, openlineage_events="received")
    store(engine, [made(number) for number in range(1, 11)], received_at=NOON, size=1)
    anybody.fault = lambda _: Fault(503) if len(anybody.asked) == 6 else None
    exports.deliver(NOW)
    exports.deliver(NOW + 60)

    assert len(anybody.asked) == 11
    assert len({json.dumps(asked.body) for asked in anybody.asked}) == 10


def test_secrets_are_not_sent_on(
    engine: Engine, exporting: Export, anybody: ContractServer
) -> None:
    exports = exporting(openlineage_url=anybody.url, openlineage_events="received")
    source = dataset(
        "db.a", dataSource={"name": "db", "uri": "jdbc:postgresql://u:hunter2@host/db"}
    )
    store(engine, [event("COMPLETE", inputs=[source])], received_at=NOON)
    exports.deliver(NOW)

    assert len(anybody.asked) == 1
    assert "hunter2" not in json.dumps(anybody.asked[0].body)


def test_clean_mode_sends_events_with_explicit_edges(
    engine: Engine, exporting: Export, anybody: ContractServer
) -> None:
    exports = exporting(openlineage_url=anybody.url)
    store(engine, [made()], received_at=NOON)
    exports.deliver(NOW)
    start, end = (asked.body for asked in anybody.asked)
    (output,) = end["outputs"]

    assert [decode(encode(one)).event_type for one in (start, end)] == ["START", "COMPLETE"]
    assert [one["name"] for one in output["facets"]["lineage"]["inputs"]] == ["db.a", "db.filter"]
    (origin,) = output["facets"]["lineage"]["fields"]["total"]["inputs"]
    assert (origin["name"], origin["field"]) == ("db.a", "amount")
    assert output["facets"]["columnLineage"]["fields"] == COLUMNS["fields"]


def test_file_target_gets_one_event_per_line(
    engine: Engine, exporting: Export, tmp_path: Path
) -> None:
    file = tmp_path / "events.jsonl"
    exports = exporting(openlineage_url=file.as_uri())
    store(engine, [made()], received_at=NOON)
    exports.deliver(NOW)

    assert [json.loads(line)["eventType"] for line in file.read_text().splitlines()] == [
        "START",
        "COMPLETE",
    ]


@pytest.mark.kafka
def test_topic_target_keys_events_by_job(sqlite_engine: Engine, kafka: str) -> None:
    from strandline.exporters.exporting import Exporting
    from strandline.exporters.registry import targets_of
    from strandline.settings import Settings

    topic = "exported"
    exports = Exporting(
        sqlite_engine, targets_of(Settings(openlineage_url=f"kafka://{kafka}/{topic}")), print
    )
    exports.register(NOW)
    store(sqlite_engine, [made()], received_at=NOON)
    taken = exports.deliver(NOW)
    exports.deliveries[0].release()
    reader = KafkaConsumer(
        topic, bootstrap_servers=kafka, auto_offset_reset="earliest", consumer_timeout_ms=30_000
    )
    found = [next(reader) for _ in range(2)]
    reader.close()

    assert taken == 1
    assert {one.key for one in found} == {b"run:tests/etl"}
    assert [json.loads(one.value)["eventType"] for one in found] == ["START", "COMPLETE"]


def test_openmetadata_gets_complete_events_and_changed_streams_only(
    engine: Engine, exporting: Export, anybody: ContractServer
) -> None:
    exports = exporting(openmetadata_url=anybody.url)
    stream = {"jobType": {"processingType": "STREAMING", "integration": "SPARK"}}
    links: dict[str, Any] = {
        "identifiers": [
            {"namespace": "s3://b", "name": "x", "type": "LOCATION"},
            {"namespace": "hive://m", "name": "db.x", "type": "TABLE"},
        ]
    }
    sides: dict[str, Any] = {
        "inputs": [dataset("db.a")],
        "outputs": [dataset("db.out", symlinks=links)],
    }
    half = event("COMPLETE", 3, "half", 1, inputs=[dataset("db.a")])
    for seconds in range(3):
        store(
            engine,
            [event("RUNNING", 2, "stream", seconds, job_facets=stream, **sides)],
            received_at=NOON,
        )
        exports.deliver(NOON.timestamp() + seconds)
    store(engine, [made(), half, event("FAIL", 4, "failed", 1, **sides)], received_at=NOON)
    exports.deliver(NOW)
    events = [one for asked in anybody.asked for one in asked.body["events"]]

    assert {asked.path for asked in anybody.asked} == {"/api/v1/openlineage/lineage/batch"}
    assert [(one["eventType"], one["job"]["name"]) for one in events] == [
        ("COMPLETE", "stream"),
        ("COMPLETE", "etl"),
    ]
    assert all(one["run"]["facets"]["parent"]["job"]["name"] for one in events)
    assert events[0]["outputs"][0]["facets"]["symlinks"]["identifiers"][0]["type"] == "TABLE"
    assert "columnLineage" in events[1]["outputs"][0]["outputFacets"]
