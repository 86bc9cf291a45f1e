"""Heartbeats keep a run alive, losses are reported once, and a forked child touches nothing."""

from __future__ import annotations

import os
import re
import time
from dataclasses import replace
from pathlib import Path

import pytest

from fixtures.emitter.backend import Backend
from fixtures.emitter.builders import Sent, announcer, conf, insert, message, snapshot, table
from strandline_spark.delivery.outbox import Outbox
from strandline_spark.delivery.spool import Spool
from strandline_spark.delivery.transport import Message
from strandline_spark.model.statement import Column
from strandline_spark.openlineage.events import EventContent, RunOf
from strandline_spark.openlineage.facets import SourceOffsets, StrandlineBarrierRunFacet

RUN = RunOf("22222222-2222-4222-8222-222222222222", "bank.credits", "STREAMING")


def test_heartbeat_is_sent_every_third_of_the_heartbeat_timeout() -> None:
    sent = Sent()
    told = announcer(sent, conf(heartbeat_seconds="12"))
    told.say("START", RUN, 0)
    began = time.monotonic()

    told.beat(began + 2.9)
    assert [event["eventType"] for event in sent.events] == ["START"]

    told.beat(began + 3.1)  # asked every second, it is told before the fourth
    assert [event["eventType"] for event in sent.events] == ["START", "RUNNING"]
    heartbeat = sent.events[1]
    assert heartbeat["run"]["facets"]["strandline_heartbeat"]["timeoutSeconds"] == 12
    assert (
        heartbeat["job"].get("facets", {}),
        sent.messages[1].heartbeat,
        sent.messages[1].vital,
    ) == ({}, True, False)


def test_ended_run_sends_no_heartbeat() -> None:
    sent = Sent()
    told = announcer(sent)
    told.say("START", RUN, 0)
    told.say("COMPLETE", RUN, 1)

    told.beat(time.monotonic() + 1000)

    assert [event["eventType"] for event in sent.events] == ["START", "COMPLETE"]
    assert told.alive() == []


def test_only_ends_and_micro_batches_are_vital() -> None:
    sent = Sent()
    told = announcer(sent)
    for state in ("START", "RUNNING", "COMPLETE"):
        told.say(state, RUN, 0)

    assert [one.vital for one in sent.messages] == [False, False, True]


def test_losses_are_reported_once_with_the_next_event() -> None:
    sent = Sent()
    told = announcer(sent)
    sent.losses.dropped, told.overflowed = 2, 3

    told.say("START", RUN, 0)
    told.say("COMPLETE", RUN, 1)

    first, second = (event["run"]["facets"].get("strandline_emitter") for event in sent.events)
    assert (first["droppedEvents"], first["missedExecutions"]) == (2, 3)
    assert second is None


def test_losses_are_not_reported_with_a_heartbeat_that_may_be_dropped() -> None:
    sent = Sent()
    told = announcer(sent)
    told.say("START", RUN, 0)
    sent.losses.dropped = 2

    told.beat(time.monotonic() + 1000)
    told.say("COMPLETE", RUN, 1)

    _, heartbeat, complete = (
        event["run"]["facets"].get("strandline_emitter") for event in sent.events
    )
    assert (heartbeat, complete["droppedEvents"]) == (None, 2)


def test_swallowed_errors_are_reported_when_their_number_grows() -> None:
    sent, errors = Sent(), {"a nested execution is not told (KeyError)": 1}
    told = announcer(sent)
    told.swallowed = lambda: dict(errors)

    told.say("START", RUN, 0)
    told.say("RUNNING", RUN, 1)
    errors["a nested execution is not told (KeyError)"] = 3
    told.say("COMPLETE", RUN, 2)

    facets = [event["run"]["facets"].get("strandline_emitter") for event in sent.events]
    assert [facet and facet["swallowedErrors"] for facet in facets] == [
        {"a nested execution is not told (KeyError)": 1},
        None,
        {"a nested execution is not told (KeyError)": 3},
    ]


def test_event_that_cannot_be_built_is_counted_without_raising() -> None:
    sent = Sent()
    told = announcer(sent)

    told.say("NO STATE", RUN, 0)
    told.say("START", RUN, 0, EventContent())

    assert [event["eventType"] for event in sent.events] == ["START"]
    assert sent.events[0]["run"]["facets"]["strandline_emitter"]["missedExecutions"] == 1


def test_heartbeats_are_not_spooled(tmp_path: Path) -> None:
    backend = Backend()
    backend.away = True
    outbox = Outbox(lambda: backend, Spool(tmp_path, 1_000_000), first_pause=30)
    outbox.put(message("end", vital=True))
    assert outbox.flush(30)  # it is on disk, and the circuit is open

    outbox.put(Message("run:default/credits", b"{}", heartbeat=True))

    assert outbox.waiting() == []
    assert outbox.losses.dropped == 0
    outbox.close(1)


@pytest.mark.filterwarnings(
    "ignore:This process:DeprecationWarning"
)  # forking beside threads is what is tested
def test_forked_child_does_not_touch_the_spool(tmp_path: Path) -> None:
    spool = Spool(tmp_path, 1_000_000)
    assert spool.append([message("before", vital=True)]) == 1
    child = os.fork()
    if child == 0:
        spool.abandon()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0

    assert spool.append([message("after", vital=True)]) == 1
    assert Spool(tmp_path, 1_000_000).oldest() is None  # the parent still holds it
    spool.close()
    found = Spool(tmp_path, 1_000_000).oldest()
    assert found is not None
    assert [one.key for one in found.messages() if one] == [
        "run:default/before",
        "run:default/after",
    ]
    found.release()


def test_an_event_over_its_budget_loses_its_least_important_parts_and_no_other_event_does() -> None:
    sent = Sent()
    credits = insert(table("bank.credits", snapshot("12")), table("bank.transfers"))
    described = replace(
        credits,
        columns=(
            Column(
                "id", (replace(credits.columns[0].origins[0], transform=f"upper({'x' * 3000})"),)
            ),
        ),
    )
    whole, small = announcer(sent), announcer(sent, conf(event_bytes="6500"))

    small.say("START", RUN, 0, EventContent([described]))
    whole.say("START", RUN, 0, EventContent([described]))

    cut, kept = (event["outputs"][0] for event in sent.events)
    steps = [
        one["facets"]["columnLineage"]["fields"]["id"]["inputFields"][0]["transformations"][0]
        for one in (cut, kept)
    ]
    assert ["description" in one for one in steps] == [False, True]
    assert cut["outputFacets"]["strandline_snapshot"]["snapshotId"] == "12"
    assert (
        "columnLineage.descriptions"
        in sent.events[0]["run"]["facets"]["strandline_emitter"]["trimmedFacets"]
    )
    assert len(sent.messages[0].body) <= 6500 < len(sent.messages[1].body)


@pytest.mark.parametrize(
    ("size", "inputs", "trimmed"),
    [
        (900_000, (5001, 5001), "inputs.facets"),
        (100_000, (500, 2000), "inputs"),
        (4200, (1, 10), "inputs"),
    ],
)
def test_event_with_too_many_inputs_drops_those_without_snapshots_first(
    size: int, inputs: tuple[int, int], trimmed: str
) -> None:
    sent = Sent()
    read = [
        *(table(f"bank.part_{number:05}") for number in range(5000)),
        table("bank.known", snapshot("7")),
    ]
    told = EventContent([insert(table("bank.credits", snapshot("12")), *read)])

    announcer(sent, conf(event_bytes=str(size))).say("COMPLETE", RUN, 0, told)

    (event,) = sent.events
    assert len(sent.messages[0].body) <= size
    assert inputs[0] <= len(event["inputs"]) <= inputs[1]
    assert {"known@7", "credits@12"} <= set(re.findall(r"\w+@\d+", sent.lines()[0]))
    assert event["run"]["facets"]["strandline_emitter"]["trimmedFacets"][-1] == trimmed


def test_oversized_barrier_drops_long_offsets() -> None:
    sent = Sent()
    sources = [
        SourceOffsets("KafkaV2[Subscribe[a]]", '{"a":0}', "x" * 9000),
        SourceOffsets("files", "x" * 9000),
    ]
    barrier = StrandlineBarrierRunFacet(
        barrierId=3, queryId="q", batchId=3, phase="committed", sources=sources
    )

    announcer(sent, conf(event_bytes="4000")).say("RUNNING", RUN, 0, EventContent(barrier=barrier))

    facets = sent.events[0]["run"]["facets"]
    assert facets["strandline_barrier"]["barrierId"] == 3
    assert facets["strandline_barrier"]["sources"] == [
        {"description": "KafkaV2[Subscribe[a]]", "endOffset": '{"a":0}'},
        {"description": "files"},
    ]
    assert facets["strandline_emitter"]["trimmedFacets"] == ["barrier.offsets"]
