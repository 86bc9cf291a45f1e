"""Twelve network faults on three transports: nothing raises, and vital events arrive after healing.

A name that does not resolve is healed by the next driver, which has the right address and the same
spool folder.
"""

from __future__ import annotations

import gc
from collections.abc import Mapping
from pathlib import Path

import pytest

from fixtures.emitter.backends import Event, backend, broken
from fixtures.emitter.builders import message
from fixtures.emitter.faulty_proxy import FAULTS, faulty_proxy
from strandline_spark.delivery.outbox import Outbox
from strandline_spark.delivery.spool import Spool
from strandline_spark.delivery.transports.registry import transport_of

VITAL = ["batch0", "batch1", "batch2", "end"]
TRANSPORTS = [
    "http",
    pytest.param("composite", marks=pytest.mark.slow),
    pytest.param("kafka", marks=[pytest.mark.slow, pytest.mark.kafka]),
]


def outbox_to(settings: Mapping[str, str], folder: Path) -> Outbox:
    """Return an outbox over the transport of that conf, quick to try again."""
    return Outbox(
        lambda: transport_of(settings),
        Spool(folder, 10_000_000),
        attempt_seconds=1.0,
        first_pause=0.02,
    )


def names(events: list[Event]) -> set[str]:
    """Return the names of the messages."""
    return {event["name"] for event in events}


@pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning"
)  # kafka-python forgets TLS sockets
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_vital_events_are_delivered_despite_network_faults(
    transport: str, fault: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Send through a proxy with the fault, heal it, and wait for the vital events."""
    folder = tmp_path / "spool"
    with (
        backend(transport, tmp_path, lambda: request.getfixturevalue("kafka")) as behind,
        faulty_proxy(fault, behind.address) as port,
    ):
        host = "nowhere.invalid" if fault == "name unresolved" else "127.0.0.1"
        outbox = outbox_to(broken(fault, behind.conf(host, port.port)), folder)
        outbox.put(message("start"))
        for name in VITAL:
            outbox.put(message(name, vital=True))
        unable = not outbox.flush(0.3) or bool(list(folder.glob("*.spool")))
        port.heal()
        if fault in ("name unresolved", "TLS wrong"):
            outbox.close(0.2)
            outbox = outbox_to(behind.conf("127.0.0.1", port.port), folder)
        arrived = names(behind.events(lambda events: names(events) >= set(VITAL)))
        outbox.close(5)

    assert unable
    assert arrived >= set(VITAL)
    assert outbox.losses.dropped == 0
    gc.collect()
