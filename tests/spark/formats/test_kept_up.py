"""Compacted tables keep name and lineage; tables read at two snapshots report both."""

from __future__ import annotations

from typing import Any

import pytest

from fixtures.spark_lake import needs
from fixtures.spark_lake.running import Event, events_of
from fixtures.warm_jvm import WarmJvm

pytestmark = [
    pytest.mark.spark,
    needs("iceberg"),
]


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory, warm_jvm: WarmJvm) -> list[Event]:
    """The application, run to its end."""
    return events_of("kept_up.py", tmp_path_factory.mktemp("kept_up"), "iceberg", jvm=warm_jvm)


def facets(events: list[Event], table: str, side: str) -> list[Any]:
    """Return the snapshot facets of the statements that wrote a table.

    Those of reads (inputs) or of writes (outputs).
    """
    ended = [
        event
        for event in events
        if event["eventType"] == "COMPLETE" and event["job"]["name"].endswith(table)
    ]
    parts = [one[f"{side[:-1]}Facets"] for event in ended for one in event[side]]
    return [one["strandline_snapshot"] for one in parts if "strandline_snapshot" in one]


def test_compaction_makes_no_lineage(events: list[Event]) -> None:
    links = [
        one["facets"]["symlinks"]["identifiers"]
        for event in events
        for one in (*event["inputs"], *event["outputs"])
    ]

    assert {link["name"] for one in links for link in one} == {
        "bank.orders",
        "bank.copied",
        "bank.compared",
    }


def test_read_of_a_compacted_snapshot_names_the_one_before(events: list[Event]) -> None:
    first, second = (one["snapshotId"] for one in facets(events, "bank.orders", "outputs"))
    (copied,), (compared,) = (
        facets(events, table, "inputs") for table in ("bank.copied", "bank.compared")
    )

    assert copied["snapshotId"] not in (first, second)  # the compaction's own
    assert (copied["operation"], copied["parentSnapshotId"]) == ("replace", second)
    (before,) = copied["sameRowsAs"]
    assert (before["snapshotId"], before["parentSnapshotId"], before["operation"]) == (
        second,
        first,
        "append",
    )
    assert before["committedAt"] < copied["committedAt"]
    assert (compared["snapshotId"], compared["sameRowsAs"]) == (copied["snapshotId"], [before])
    assert [(one["snapshotId"], one["operation"]) for one in compared["others"]] == [
        (first, "append")
    ]
