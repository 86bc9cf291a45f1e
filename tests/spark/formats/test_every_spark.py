"""Every way to write a table, in one application per table format.

A line reads `state job [what was read] -> what was written`. Snapshots are numbered by table, in
the order in which the application made them; that they are those of the table itself is looked up
in its metadata elsewhere.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fixtures.spark_lake import formats
from fixtures.spark_lake.running import Event, events_of, numbered
from fixtures.warm_jvm import WarmJvm

pytestmark = pytest.mark.spark
# The matrix tries every format; the suite the first one only, because an application takes half a
# minute.
KINDS = formats() if os.environ.get("STRANDLINE_MATRIX") else formats()[:1]
NAMESPACES = {"iceberg": "lake.every", "delta": "every", "paimon": "paimon.every", "hudi": "every"}

# What an application did is the same in all formats; Delta also keeps the making of a table as a
# snapshot.
EXPECTED_EVENTS = [
    "COMPLETE every.every.orders [] -> orders@1",
    "COMPLETE every.every.news [] -> news@1",
    "COMPLETE every.every.big [orders@1] -> big@1",
    "COMPLETE every.every.orders [news@1 orders@1] -> orders@2",
    "COMPLETE every.every.orders [orders@2] -> orders@3",
    "COMPLETE every.every.orders [orders@3] -> orders@4",
    "COMPLETE every.every.big [news@1 orders@4] -> big@2",
    "COMPLETE every.every.big [big@2] -> big@3",
    "RUNNING every.copy [news@1] -> copied@1",
    "COMPLETE every.copy [] -> ",
    "RUNNING every.keep [news@1] -> big@4",
    "COMPLETE every.keep [] -> ",
    "COMPLETE every [] -> ",
]

UNSEEN = {
    # Paimon updates and deletes without a scan that says at which snapshot
    "paimon": {
        "COMPLETE every.every.orders [orders@2] -> orders@3": "COMPLETE every.every.orders [orders] -> orders@3",
        "COMPLETE every.every.orders [orders@3] -> orders@4": "COMPLETE every.every.orders [orders] -> orders@4",
    },
    # Hudi lists a table's files anew after each write to it, and its MERGE counts nothing that its
    # commit could prove
    "hudi": {
        "COMPLETE every.every.orders [news@1 orders@1] -> orders@2": (
            "COMPLETE every.every.orders [news@1 orders@1?] -> orders@2?"
        ),
        "COMPLETE every.every.orders [orders@2] -> orders@3": "COMPLETE every.every.orders [orders@2?] -> orders@3",
        "COMPLETE every.every.orders [orders@3] -> orders@4": "COMPLETE every.every.orders [orders@3?] -> orders@4",
        "COMPLETE every.every.big [big@2] -> big@3": "COMPLETE every.every.big [big@2?] -> big@3",
    },
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_every_way_to_write_a_table_is_reported(
    kind: str, tmp_path: Path, warm_jvm: WarmJvm
) -> None:
    jvm = None if kind == "hudi" else warm_jvm
    events = events_of("every.py", tmp_path, kind, NAMESPACES[kind], jvm=jvm)

    expected = [UNSEEN.get(kind, {}).get(line, line) for line in EXPECTED_EVENTS]
    output = f"every.{NAMESPACES[kind]}."  # a job is named for the whole name of what it writes
    assert lines(told(events)) == [line.replace("every.every.", output) for line in expected]


def told(events: list[Event]) -> list[Event]:
    """Return the finished work: no starts, no heartbeats, no tables that were made without rows."""
    done = [
        e for e in events if e["eventType"] != "START" and not e["job"]["name"].endswith(".create")
    ]
    return [
        e for e in done if e["eventType"] != "RUNNING" or "strandline_barrier" in e["run"]["facets"]
    ]


def lines(events: list[Event]) -> list[str]:
    numbers: dict[str, dict[str, int]] = {}
    return [line(event, numbers) for event in events]


def line(event: Event, numbers: dict[str, dict[str, int]]) -> str:
    reads = sorted(numbered(dataset, numbers) for dataset in event["inputs"])
    writes = [numbered(dataset, numbers) for dataset in event["outputs"]]
    barrier = event["run"]["facets"].get("strandline_barrier")
    written = " ".join(writes) + (
        f" barrier {barrier['barrierId']}" if barrier and "barrierId" in barrier else ""
    )
    return f"{event['eventType']} {event['job']['name']} [{' '.join(reads)}] -> {written}"
