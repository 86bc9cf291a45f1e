"""The schemas are valid, equal the facet classes, and match every event."""

from __future__ import annotations

from typing import Any

import attr
import jsonschema_rs
import pytest
from openlineage.client.event_v2 import Job, Run, RunEvent, RunState
from openlineage.client.serde import Serde

from fixtures.emitter.builders import APPLICATION, Sent, announcer, conf, insert, snapshot, table
from fixtures.emitter.schemas import documents, faults_of
from strandline_spark.openlineage import facets
from strandline_spark.openlineage.events import EventContent, RunOf
from strandline_spark.openlineage.facets import SourceOffsets, StrandlineBarrierRunFacet

RUN = RunOf("22222222-2222-4222-8222-222222222222", "bank.credits", "STREAMING")
CLASSES: dict[str, list[type[Any]]] = {
    "strandline_barrier": [facets.StrandlineBarrierRunFacet, facets.SourceOffsets],
    "strandline_snapshot": [
        facets.StrandlineSnapshotInputDatasetFacet,
        facets.StrandlineSnapshotOutputDatasetFacet,
        facets.OtherSnapshot,
    ],
    "strandline_heartbeat": [facets.StrandlineHeartbeatRunFacet],
    "strandline_emitter": [facets.StrandlineEmitterRunFacet],
}


def barrier() -> StrandlineBarrierRunFacet:
    """A full barrier facet."""
    return StrandlineBarrierRunFacet(
        barrierId=8,
        queryId="33333333-3333-4333-8333-333333333333",
        batchId=7,
        phase="committed",
        group="bank",
        checkpointLocation="file:/checkpoints/credits",
        startedAt="2026-11-21T12:00:00.000Z",
        committedAt="2026-11-21T12:00:01.000Z",
        sources=[SourceOffsets("transfers", '{"version":1}', None)],
    )


def told() -> list[dict[str, Any]]:
    """One event of every kind that the emitter makes."""
    sent = Sent()
    say = announcer(sent, conf(group="bank")).say
    read = snapshot(
        "9007199254740993",
        from_snapshot_id="1",
        committed_at="2026-11-21T12:00:00+00:00",
        observed=True,
    )
    made = snapshot(
        "12",
        parent_snapshot_id="11",
        barrier_id=8,
        operation="append",
        number_of_rows=3,
        branch="dev",
    )
    statement = insert(table("bank.credits", snapshot("10"), made), table("bank.transfers", read))
    say("START", APPLICATION, 0)
    say("START", RUN, 1, EventContent([statement]))
    say("RUNNING", RUN, 2, EventContent([statement], barrier=barrier(), snapshot=True))
    say("RUNNING", RUN, 3, EventContent(heartbeat=True))
    sent.losses.dropped = 2
    say("FAIL", RUN, 4, EventContent(error="boom", unreadable="plan not readable"))
    say("COMPLETE", APPLICATION, 5)
    return sent.events


def properties(document: dict[str, Any], name: str) -> set[str]:
    """The properties that a schema gives a facet."""
    found: set[str] = set()
    for part in [document["$defs"][name], *document["$defs"][name].get("allOf", [])]:
        found |= set(part.get("properties", {}))
        reference = part.get("$ref", "")
        if reference.startswith("#/$defs/"):
            found |= properties(document, reference.removeprefix("#/$defs/"))
    return found


@pytest.mark.parametrize("path", sorted(documents()))
def test_each_schema_is_valid_and_has_a_unique_id(path: str) -> None:
    document = documents()[path]

    assert jsonschema_rs.meta.is_valid(document)
    assert [other for other, its in documents().items() if its["$id"] == document["$id"]] == [path]
    assert (
        document["$id"].rsplit("/", 2)[1:] == path.rsplit("/", 1)
        or path == "openlineage/2-0-2.json"
    )


@pytest.mark.parametrize("key", sorted(CLASSES))
def test_a_facet_class_has_the_properties_of_its_schema(key: str) -> None:
    document = documents()[f"{key}/1-0-0.json"]

    for facet in CLASSES[key]:
        fields = {field.name for field in attr.fields(facet)} - {"_producer", "_schemaURL"}
        assert properties(document, facet.__name__) == fields


def test_every_kind_of_event_follows_the_schemas() -> None:
    events = told()

    assert [event["eventType"] for event in events] == [
        "START",
        "START",
        "RUNNING",
        "RUNNING",
        "FAIL",
        "COMPLETE",
    ]
    assert [faults_of(event) for event in events] == [[]] * 6


def test_invalid_event_is_detected() -> None:
    event = told()[2]
    event["run"]["facets"]["strandline_barrier"]["barrierId"] = "8"
    del event["job"]["name"]
    event["outputs"][0]["outputFacets"]["strandline_snapshot"]["snapshotId"] = 12

    assert [fault.split(":")[0].strip() for fault in faults_of(event)] == [
        "['job']",
        "run/strandline_barrier",
        "outputs/strandline_snapshot",
    ]


def test_an_event_of_openlineage_python_follows_the_core() -> None:
    event = RunEvent(
        eventType=RunState.START,
        eventTime="2026-11-21T12:00:00Z",
        run=Run("22222222-2222-4222-8222-222222222222"),
        job=Job("default", "job"),
    )

    assert faults_of(Serde.to_dict(event)) == []


def test_event_equals_that_of_openlineage_python() -> None:
    from strandline_spark.openlineage.to_json import as_json

    facet = barrier()
    expected = {**Serde.to_dict(facet), "_producer": facets.PRODUCER}

    assert as_json(facet) == expected
