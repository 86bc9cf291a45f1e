"""Marquez gets clean events once and in order; ended edges follow the policy."""

import random
import time
from typing import Any

import pytest
from sqlalchemy import Engine

from fixtures.contract_servers.marquez import MarquezContract
from fixtures.contract_servers.server import Fault
from transports.exporters.conftest import Export
from worlds.builders import NOON, batch, dataset, event, job_event, run_id, store

NOW = NOON.timestamp() + 100
STREAM = {"jobType": {"processingType": "STREAMING", "integration": "SPARK"}}


def etl(kind: str, run: int = 1, seconds: float = 0, **more: Any) -> dict[str, Any]:
    """Return an event of a batch job that makes b of a."""
    return event(
        kind, run, "etl", seconds, inputs=[dataset("db.a")], outputs=[dataset("db.b")], **more
    )


def test_run_is_delivered_as_one_start_and_one_end(
    engine: Engine, exporting: Export, marquez: MarquezContract
) -> None:
    exports = exporting(marquez_url=marquez.url)
    events = [
        etl("START"),
        etl("RUNNING", seconds=1),
        etl("RUNNING", seconds=2),
        etl("COMPLETE", seconds=3),
    ]
    random.Random(7).shuffle(events)
    for one in events:
        store(engine, [one, one], received_at=NOON)
        exports.deliver(NOW)
    exports.deliver(NOW + 1)

    states = marquez.states[run_id(1)]
    assert (states[0], states[-1], states.count("COMPLETE")) == ("START", "COMPLETE", 1)
    assert marquez.page() == {"etl": "db.a > db.b"}


def test_heartbeats_are_not_sent_but_a_stream_stays_visible(
    engine: Engine, exporting: Export, marquez: MarquezContract
) -> None:
    exports = exporting(marquez_url=marquez.url)
    for number in range(1, 6):
        store(
            engine,
            [batch(number, inputs=[dataset("db.in")], outputs=[dataset("db.out")])],
            received_at=NOON,
        )
        exports.deliver(NOON.timestamp() + number)
    store(
        engine,
        [batch(6, inputs=[dataset("db.in"), dataset("db.lookup")], outputs=[dataset("db.out")])],
        received_at=NOON,
    )
    exports.deliver(NOON.timestamp() + 7)

    assert marquez.states[run_id(1)] == ["START", "RUNNING", "RUNNING"]
    assert marquez.page() == {"stream": "db.in,db.lookup > db.out"}


@pytest.mark.parametrize(
    ("policy", "page"),
    [("keep", {"etl": "db.a > db.b"}), ("clear", {"etl": " > "}), ("delete", {})],
)
def test_end_policy_decides_whether_edges_stay(
    engine: Engine, exporting: Export, marquez: MarquezContract, policy: str, page: dict[str, str]
) -> None:
    exports = exporting(marquez_url=marquez.url, marquez_on_end=policy)
    store(engine, [etl("START")], received_at=NOON)
    exports.deliver(NOW)
    running = marquez.page()
    store(engine, [etl("COMPLETE", seconds=5)], received_at=NOON)
    exports.deliver(NOW + 1)

    assert running == {
        "etl": " > " if policy == "keep" else "db.a > db.b"
    }  # Marquez shows a batch run when it ends
    assert marquez.page() == page


def test_job_with_another_running_run_keeps_its_edges(
    engine: Engine, exporting: Export, marquez: MarquezContract
) -> None:
    exports = exporting(marquez_url=marquez.url, marquez_on_end="clear")
    now = time.time()
    store(engine, [etl("START"), etl("START", run=2, seconds=1), etl("COMPLETE", seconds=5)])
    exports.deliver(now)

    assert marquez.page() == {"etl": "db.a > db.b"}


def test_silent_run_is_ended_without_an_event(
    engine: Engine, exporting: Export, marquez: MarquezContract
) -> None:
    exports = exporting(marquez_url=marquez.url, marquez_on_end="clear")
    lease = {"strandline_heartbeat": {"timeoutSeconds": 60}}
    more: dict[str, Any] = {"facets": lease, "job_facets": STREAM}
    store(engine, [etl("START", **more)], received_at=NOON)
    exports.deliver(NOON.timestamp() + 10)
    exports.tidy(NOON.timestamp() + 70)
    exports.deliver(NOON.timestamp() + 70)

    assert marquez.states[run_id(1)] == ["START", "RUNNING", "ABORT"]
    assert marquez.page() == {"etl": " > "}


def test_parent_that_would_rename_a_job_is_omitted(
    engine: Engine, exporting: Export, marquez: MarquezContract
) -> None:
    exports = exporting(marquez_url=marquez.url)
    parent = {"parent": {"run": {"runId": run_id(9)}, "job": {"namespace": "tests", "name": "dag"}}}
    store(
        engine,
        [etl("COMPLETE", facets=parent), event("COMPLETE", 2, "dag.task", 1, facets=parent)],
        received_at=NOON,
    )
    exports.deliver(NOW)

    assert set(marquez.page()) == {"etl", "dag.task"}


def test_job_events_and_odd_run_ids_are_delivered(
    engine: Engine, exporting: Export, marquez: MarquezContract
) -> None:
    exports = exporting(marquez_url=marquez.url)
    odd = event(
        "COMPLETE",
        "scheduled__2026-11-20",
        "odd",
        inputs=[dataset("db.x")],
        outputs=[dataset("db.y")],
    )
    design = job_event("design", inputs=[dataset("db.c")], outputs=[dataset("db.d")])
    store(engine, [design, odd], received_at=NOON)
    exports.deliver(NOW)

    assert marquez.page() == {"design": "db.c > db.d", "odd": "db.x > db.y"}


def test_only_allowed_namespaces_are_sent(
    engine: Engine, exporting: Export, marquez: MarquezContract
) -> None:
    exports = exporting(marquez_url=marquez.url, marquez_namespaces=("bank*", "!bank.test"))
    for name in ("bank", "bank.test", "other"):
        one = etl("COMPLETE", run=len(name))
        one["job"] = {"namespace": name, "name": f"job of {name}"}
        store(engine, [one], received_at=NOON)
    exports.deliver(NOW)

    assert set(marquez.page()) == {"job of bank"}


def test_recovered_marquez_gets_the_newest_state_of_each_run(
    engine: Engine, exporting: Export, marquez: MarquezContract
) -> None:
    exports = exporting(marquez_url=marquez.url)
    marquez.fault = lambda _: Fault(status=503)
    hours = 4
    minutes = 60 * hours
    for minute in range(minutes):
        state = "START" if minute % 10 == 0 else "COMPLETE" if minute % 10 == 9 else "RUNNING"
        store(engine, [etl(state, run=minute // 10, seconds=60 * minute)], received_at=NOON)
        if minute % 60 == 0:
            exports.tidy(NOW + 60 * minute)
            exports.deliver(NOW + 60 * minute)
    refused = len(marquez.asked)
    marquez.fault = lambda _: None
    marquez.asked.clear()
    exports.deliver(NOW + 60 * minutes + 600)

    assert refused <= hours
    assert len(marquez.states) == minutes // 10
    assert {tuple(states) for states in marquez.states.values()} == {("START", "COMPLETE")}
    assert len(marquez.asked) == 2 * minutes // 10
