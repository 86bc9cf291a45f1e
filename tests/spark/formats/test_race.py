"""Every snapshot in an event exists in table metadata while another writer commits.

What a statement did can be read back from its table: an insert's row has the insert's name and
counts what it read, a micro-batch's rows are those that it read. So a snapshot that was another
statement's, or the other writer's, shows. A snapshot that is marked as observed is no claim, and is
counted apart.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fixtures.spark_lake import formats
from fixtures.spark_lake.running import Event, events_of, filled, outputs, rival, snapshot
from fixtures.spark_lake.truth import TRUTHS, Truth
from fixtures.waiting import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.soak]
THREADS, CHANGES = 3, 6
ROUNDS = {
    "iceberg": 4,
    "delta": 2,
    "paimon": 4,
}  # statements of a thread; Delta's take seconds each
NAMESPACES = {"iceberg": "lake.race", "delta": "race", "paimon": "paimon.race"}
# Delta and Paimon cannot tell apart threads that append to one table at one time.
OBSERVED: Mapping[str, set[str]] = {"iceberg": set(), "delta": {"sink"}, "paimon": {"sink"}}
Faults = Iterator[str]


@pytest.mark.parametrize("kind", [name for name in formats() if name in NAMESPACES])
def test_every_snapshot_belongs_to_its_statement(kind: str, tmp_path: Path) -> None:
    rounds = ROUNDS[kind]
    mark(tmp_path, rounds)
    with rival(tmp_path, kind):
        wait_until((tmp_path / "ready").exists, 120)
        told = {"spark.strandline.reads": "true"}
        events = events_of("race.py", tmp_path, kind, NAMESPACES[kind], str(rounds), conf=told)
    truth = TRUTHS[kind](tmp_path)
    inserted, changed, copied, upserted = (
        done(events, name) for name in ("sink", "target", "copied", "merged")
    )
    counted = json.loads((tmp_path / "counted.json").read_text())
    wrong = [
        *(
            fault
            for event, output in inserted
            for fault in insert_faults(event, snapshot(output), truth)
        ),
        *change_faults([snapshot(output) for _, output in changed], truth),
        *read_faults(
            [
                event
                for event in events
                if event["job"]["name"] == f"race.read.{NAMESPACES[kind]}.source"
            ],
            counted,
            truth,
        ),
        *(
            fault
            for event, output in copied
            for fault in copy_faults(event, snapshot(output), truth)
        ),
        *(
            fault
            for event, output in upserted
            for fault in upsert_faults(event, snapshot(output), truth)
        ),
        *(
            fault
            for event, output in done(events, "made")
            for fault in made_faults(event, snapshot(output), truth)
        ),
    ]
    observed = [
        output["name"] for _, output in outputs(events, "") if snapshot(output).get("observed")
    ]

    assert wrong == []
    assert (len(inserted), len(changed), len(counted)) == (THREADS * rounds, CHANGES, rounds)
    assert min(len(copied), len(upserted)) >= rounds
    assert {name.rpartition("/")[2] for name in observed} <= OBSERVED[kind]


def mark(folder: Path, rounds: int) -> None:
    """A file a statement, by which its event is known."""
    for tag in (
        f"insert_{thread}_{number}" for thread in range(THREADS) for number in range(rounds)
    ):
        (folder / "marks" / tag).mkdir(parents=True)
        pq.write_table(pa.table({"tag": [tag]}), folder / "marks" / tag / "0.parquet")


def done(events: Sequence[Event], table: str) -> list[tuple[Event, dict[str, Any]]]:
    """Return what was told of a table's changes once they were there."""
    return outputs(filled(events), f"/{table}")


def source_of(event: Event) -> dict[str, Any]:
    """The snapshot of the table that everything reads."""
    return next(
        snapshot(dataset) for dataset in event["inputs"] if dataset["name"].endswith("/source")
    )


def insert_faults(event: Event, made: dict[str, Any], truth: Truth) -> Faults:
    """The insert's own row came with its snapshot, and counts what the snapshot holds that it read."""
    tag = next(d["name"].rpartition("/")[2] for d in event["inputs"] if "/marks/" in d["name"])
    if not made:
        yield f"{tag} made no snapshot"
    elif not made.get("observed"):
        own = {row["n"] for row in truth.added("sink", made["snapshotId"]) if row["tag"] == tag}
        read = source_of(event)
        counted = {len(truth.rows("source", read["snapshotId"]))}
        if own != counted:
            yield f"{tag}: {made['snapshotId']} added {own}, {read} has {counted}"


def change_faults(made: Sequence[dict[str, Any]], truth: Truth) -> Faults:
    """The one thread's statements made this application's snapshots, in their order."""
    own = truth.own("target")
    for told, real in zip(made, own, strict=True):
        if not told.get("observed") and told.get("snapshotId") != real:
            yield f"target: {told} is told of {real}"


def read_faults(events: Sequence[Event], counted: Sequence[int], truth: Truth) -> Faults:
    for event, rows in zip(
        [e for e in events if e["eventType"] == "COMPLETE"], counted, strict=True
    ):
        read = source_of(event)
        if not read.get("observed") and len(truth.rows("source", read["snapshotId"])) != rows:
            yield f"{rows} rows were counted, not those of {read}"


def copy_faults(event: Event, made: dict[str, Any], truth: Truth) -> Faults:
    """The rows that came with the snapshot are those of the source's range."""
    arrived = sorted(values_in(source_of(event), truth))
    own = sorted(row["v"] for row in truth.added("copied", made["snapshotId"])) if made else None
    if own != arrived and not source_of(event).get("observed"):
        yield f"{barrier(event)}: {made} of {own}, read {arrived}"


def upsert_faults(event: Event, made: dict[str, Any], truth: Truth) -> Faults:
    if not made:
        yield f"{barrier(event)}: no snapshot in {event['outputs']}"
    elif not made.get("observed"):
        own = [
            row["v"]
            for row in truth.added("merged", made["snapshotId"])
            if row["batch"] == barrier(event) - 1
        ]
        wanted = max(values_in(source_of(event), truth), default=None)
        if own != [wanted]:
            yield f"{barrier(event)}: {made['snapshotId']} added {own}, read {wanted}"


def made_faults(event: Event, made: dict[str, Any], truth: Truth) -> Faults:
    read = source_of(event)
    own = [row["n"] for row in truth.rows("made", made["snapshotId"])]
    if not read.get("observed") and own != [len(truth.rows("source", read["snapshotId"]))]:
        yield f"made: {own}, read {read}"


def values_in(read: dict[str, Any], truth: Truth) -> set[int]:
    """Return the values between the two ends of a streamed range."""
    before = (
        {row["v"] for row in truth.rows("source", read["fromSnapshotId"])}
        if "fromSnapshotId" in read
        else set()
    )
    return {row["v"] for row in truth.rows("source", read["snapshotId"])} - before


def barrier(event: Event) -> int:
    return int(event["run"]["facets"]["strandline_barrier"]["batchId"]) + 1
