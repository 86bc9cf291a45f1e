"""The emitter leaves the job's process alone and explains when it cannot work."""

from __future__ import annotations

import gc
import logging
import sys
import threading
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from fixtures.waiting import wait_until
from strandline_spark import _boot, activation, enable
from strandline_spark.conf import conf_of
from strandline_spark.consistency.collector import Collector, CollectorAwayError
from strandline_spark.consistency.leases import Lease
from strandline_spark.delivery.transport import TransportConfError
from strandline_spark.delivery.transports.kafka import _quieten
from strandline_spark.delivery.transports.registry import transport_of

KAFKA = {"type": "kafka", "properties.bootstrap.servers": "127.0.0.1:9"}


@pytest.mark.parametrize(
    ("value", "on"), [("true", True), ("1", True), (" Yes ", True), ("false", False), ("on", False)]
)
def test_the_same_conf_switches_it_on_at_the_start_of_a_context_and_later(
    value: str, on: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[Any] = []
    monkeypatch.setattr(activation, "activate", begun.append)
    context = SimpleNamespace(_conf={"spark.strandline.enabled": value})

    _boot._announce(context)

    assert (begun == [context], conf_of({"spark.strandline.enabled": value}, {}).enabled) == (
        on,
        on,
    )


def test_connect_client_is_directed_to_the_servers_process(
    caplog: pytest.LogCaptureFixture,
) -> None:
    remote = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})()

    assert enable(remote) is False
    assert "Switch the emitter on in the server's process" in caplog.text


def test_kafka_transport_without_its_extra_names_the_package(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "kafka", None)

    with pytest.raises(TransportConfError, match=r"pip install 'strandline-spark\[kafka\]'"):
        transport_of(KAFKA)


def test_application_kafka_clients_keep_their_log_level(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("kafka", "kafka.producer", "kafka.producer.kafka")
    for name in names:  # a collector in this process may have set them
        monkeypatch.setattr(logging.getLogger(name), "level", logging.WARNING)
    log = logging.getLogger("kafka.producer.kafka")
    log.manager._clear_cache()  # type: ignore[attr-defined]  # of what each logger is enabled for
    transport_of(KAFKA).close()
    _quieten()

    log.error("of the application")
    ours = threading.Thread(target=log.error, args=("of ours",), name="strandline-outbox")
    ours.start()
    ours.join()

    assert [record.getMessage() for record in caplog.records if record.name == log.name] == [
        "of the application"
    ]
    assert [logging.getLogger(name).level for name in names] == [logging.WARNING] * 3


class Renewals(Collector):
    """A collector that notes which leases are renewed."""

    def __init__(self) -> None:
        super().__init__("http://127.0.0.1:9")
        self.renewed: list[str] = []
        self.away = False

    def ask(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, wait: float = 0.0
    ) -> dict[str, Any]:
        """One question."""
        if self.away:
            raise CollectorAwayError("nobody answers")
        self.renewed += [path.rpartition("/")[2]] if method == "PUT" else []
        return {}


def test_one_thread_renews_all_leases() -> None:
    collector = Renewals()
    leases = [Lease(collector, name, 0.15) for name in ("a", "b", "c")]

    wait_until(lambda: all(collector.renewed.count(name) > 2 for name in "abc"))
    assert [one.name for one in threading.enumerate()].count("strandline-leases") == 1
    for lease in leases:
        lease.release()
    wait_until(lambda: "strandline-leases" not in [one.name for one in threading.enumerate()])


def test_only_held_leases_are_renewed_also_by_a_collector_that_comes_back() -> None:
    collector = Renewals()
    kept, forgotten = Lease(collector, "kept", 0.15), Lease(collector, "forgotten", 0.15)
    wait_until(lambda: {"kept", "forgotten"} <= set(collector.renewed))
    del forgotten
    gc.collect()
    collector.away = True
    wait_until(lambda: kept.held)
    collector.renewed.clear()
    collector.away = False

    wait_until(lambda: collector.renewed.count("kept") > 2)
    assert "forgotten" not in collector.renewed
    kept.release()
    assert not kept.held
