"""Spark jobs under twelve network faults end with the same results and deliver every event.

One of them is in `make test-all`, where the network heals while the job runs. The others are `make
soak`: the job ends under the fault, and what it could not send goes out of its folder as a next
driver sends it.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from fixtures.emitter.backends import Backend, Event, backend, broken
from fixtures.emitter.builders import line_of
from fixtures.emitter.drivers import SECONDS
from fixtures.emitter.faulted import JOB, TRANSPORTS, driver
from fixtures.emitter.faulty_proxy import FAULTS, FaultyProxy, faulty_proxy
from fixtures.waiting import wait_until
from strandline_spark.delivery.outbox import Outbox
from strandline_spark.delivery.spool import Spool
from strandline_spark.delivery.transports.registry import transport_of

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

HEALED = [("composite", "slow"), pytest.param("kafka", "reset", marks=pytest.mark.soak)]
TOLD = {
    "COMPLETE bank.~/credits [] -> [credits]",
    "COMPLETE bank.~/large [credits] -> [large]",
    "RUNNING bank.copy [credits] -> [copied] b1",
    "RUNNING bank.copy [credits] -> [copied] b2",
    "RUNNING bank.copy [credits] -> [copied] b3",
    "COMPLETE bank.copy [] -> []",
    "COMPLETE bank [] -> []",
}


@pytest.mark.parametrize(("transport", "fault"), HEALED)
def test_job_sends_all_events_when_its_network_heals(
    transport: str, fault: str, tmp_path: Path, java: str, request: pytest.FixtureRequest
) -> None:
    with (
        backend(transport, tmp_path, lambda: request.getfixturevalue("kafka")) as behind,
        faulty_proxy(fault, behind.address) as port,
        driver(tmp_path, JOB, behind.conf("127.0.0.1", port.port), WAITS="1").started() as process,
    ):
        wait_until((tmp_path / "worked").exists, SECONDS)
        port.heal()
        before_the_end = told(behind, TOLD - {"COMPLETE bank [] -> []"}, tmp_path)
        (tmp_path / "healed").touch()
        out, err = process.communicate(timeout=SECONDS)
        after = told_in_the_end(behind, port, tmp_path)

    assert process.returncode == 0, err[-2000:]
    assert out.strip() == "[[84, 90], [0, 1, 2]]"
    assert before_the_end >= TOLD - {"COMPLETE bank [] -> []"}
    assert after >= TOLD


@pytest.mark.soak
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_unsent_events_of_a_job_are_sent_after_it(
    transport: str, fault: str, tmp_path: Path, java: str, request: pytest.FixtureRequest
) -> None:
    with (
        backend(transport, tmp_path, lambda: request.getfixturevalue("kafka")) as behind,
        faulty_proxy(fault, behind.address) as port,
    ):
        host = "nowhere.invalid" if fault == "name unresolved" else "127.0.0.1"
        begun = time.monotonic()
        ran = driver(tmp_path, JOB, broken(fault, behind.conf(host, port.port))).run()
        took = time.monotonic() - begun
        port.heal()
        spooled = list((tmp_path / "state").rglob("*.spool"))
        arrived = told_in_the_end(behind, port, tmp_path)
    print(f"{transport}, {fault}: the job took {took:.1f} s")

    assert ran.code == 0, ran.err[-2000:]
    assert ran.answer() == [[84, 90], [0, 1, 2]]
    assert spooled != []
    assert arrived >= TOLD


def told_in_the_end(behind: Backend, port: FaultyProxy, folder: Path) -> set[str]:
    """Return the events that arrive when a next driver sends the spool of a dead one."""
    spool = Spool(folder / "state" / "strandline" / "spool", 10_000_000)
    following = Outbox(lambda: transport_of(behind.conf("127.0.0.1", port.port)), spool)
    arrived = told(behind, TOLD, folder)
    following.close(10)
    return arrived


def told(behind: Backend, wanted: set[str], folder: Path) -> set[str]:
    """Return the events that arrived, each in a line; wait for the wanted ones."""
    return lines(behind.events(lambda events: lines(events, folder) >= wanted), folder)


def lines(events: list[Event], folder: Path) -> set[str]:
    """Return a line for each event; `~` is the job's folder."""
    return {line_of(event).replace(str(folder), "~") for event in events}
