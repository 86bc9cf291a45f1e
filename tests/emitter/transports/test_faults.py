"""Twelve network faults on three transports: nothing raises, and vital events arrive after healing.

A name that does not resolve is healed by the next driver, which has the right address and the same
spool folder.
"""

from __future__ import annotations

import gc
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from uuid import uuid4

import pytest

from fixtures.emitter.backends import broken
from fixtures.emitter.builders import message
from fixtures.emitter.faulty_proxy import FAULTS, faulty_proxy
from fixtures.emitter.recording import RecordingServer
from strandline_spark.delivery.outbox import Outbox
from strandline_spark.delivery.spool import Spool
from strandline_spark.delivery.transports.registry import transport_of

VITAL = ["batch0", "batch1", "batch2", "end"]
Address = tuple[str, int]


def outbox_to(settings: Mapping[str, str], folder: Path) -> Outbox:
    """An outbox over the transport of that conf, quick to try again."""
    return Outbox(
        lambda: transport_of(settings),
        Spool(folder, 10_000_000),
        attempt_seconds=1.0,
        first_pause=0.02,
    )


def delivered_in_spite_of(
    fault: str,
    target: Address,
    settings: Callable[[str, int], dict[str, str]],
    folder: Path,
    arrived: Callable[[], bool],
) -> bool:
    """Send through a proxy with the fault, heal it, and wait for the vital events."""
    with faulty_proxy(fault, target) as port:
        host = "nowhere.invalid" if fault == "name unresolved" else "127.0.0.1"
        outbox = outbox_to(broken(fault, settings(host, port.port)), folder)
        outbox.put(message("start"))
        for name in VITAL:
            outbox.put(message(name, vital=True))
        unable = not outbox.flush(0.3) or bool(list(folder.glob("*.spool")))
        port.heal()
        if fault in ("name unresolved", "TLS wrong"):
            outbox.close(0.2)
            outbox = outbox_to(settings("127.0.0.1", port.port), folder)
        came = arrived()
        outbox.close(5)
        return unable and came and outbox.losses.dropped == 0


@pytest.mark.parametrize("fault", FAULTS)
def test_http_delivers_vital_events_despite_network_faults(
    fault: str, server: RecordingServer, tmp_path: Path
) -> None:
    def settings(host: str, port: int) -> dict[str, str]:
        return {"type": "http", "url": f"http://{host}:{port}", "timeoutInMillis": "500"}

    def arrived() -> bool:
        return server.wait_until(lambda: names(server.bodies()) >= set(VITAL))

    assert delivered_in_spite_of(fault, ("127.0.0.1", server.port), settings, tmp_path, arrived)


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_composite_delivers_vital_events_despite_network_faults(
    fault: str, server: RecordingServer, tmp_path: Path
) -> None:
    file = tmp_path / "events.jsonl"

    def settings(host: str, port: int) -> dict[str, str]:
        return {
            "type": "composite",
            "transports.a.type": "http",
            "transports.a.url": f"http://{host}:{port}",
            "transports.a.timeoutInMillis": "500",
            "transports.b.type": "file",
            "transports.b.location": str(file),
        }

    def arrived() -> bool:
        return server.wait_until(lambda: names(server.bodies()) >= set(VITAL))

    assert delivered_in_spite_of(
        fault, ("127.0.0.1", server.port), settings, tmp_path / "spool", arrived
    )
    assert names(file.read_bytes().splitlines()) >= set(VITAL)


@pytest.mark.slow
@pytest.mark.kafka
@pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning"
)  # kafka-python forgets TLS sockets
@pytest.mark.parametrize("fault", FAULTS)
def test_kafka_delivers_vital_events_despite_network_faults(
    fault: str, kafka: str, tmp_path: Path
) -> None:
    topic = f"faults.{uuid4().hex}"
    host, port = kafka.rsplit(":", 1)

    def settings(host: str, port: int) -> dict[str, str]:
        return {
            "type": "kafka",
            "topicName": topic,
            "properties.bootstrap.servers": f"{host}:{port}",
        }

    read: set[str] = set()

    def arrived() -> bool:
        read.update(names(records(kafka, topic, len(VITAL))))
        return read >= set(VITAL)

    assert delivered_in_spite_of(fault, (host, int(port)), settings, tmp_path, arrived)
    gc.collect()


def names(bodies: list[bytes]) -> set[str]:
    """The names of the messages."""
    return {json.loads(body)["name"] for body in bodies}


def records(bootstrap: str, topic: str, distinct: int) -> list[bytes]:
    """The values on a topic, as soon as there are so many different ones.

    Fewer after half a minute.
    """
    from kafka import KafkaConsumer

    consumer = KafkaConsumer(
        topic, bootstrap_servers=bootstrap, auto_offset_reset="earliest", consumer_timeout_ms=30_000
    )
    found: list[bytes] = []
    for record in consumer:
        found.append(record.value)
        if len(set(found)) >= distinct + 1:
            break
    consumer.close()
    return found
