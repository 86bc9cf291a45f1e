"""Every snapshot of an event is looked up in its table's own metadata, while another writer commits in between.

A statement's output snapshot must hold its row, and the one before it must not; its input snapshot must hold exactly
the rows that the statement counted.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spark_lake import formats
from spark_lake.running import events_of, outputs, rival, snapshot

pytestmark = [pytest.mark.spark, pytest.mark.soak]
THREADS, ROUNDS = 3, 4
NAMESPACES = {"iceberg": "lake.race", "delta": "race"}
Rows = Callable[[str, str], list[dict[str, Any]]]


@pytest.mark.parametrize("kind", [name for name in formats() if name in NAMESPACES])
def test_every_snapshot_is_its_statement_s(kind: str, tmp_path: Path) -> None:
    mark(tmp_path)
    with rival(tmp_path, kind):
        wait_for(tmp_path / "ready")
        events = events_of("race.py", tmp_path, kind, NAMESPACES[kind])
    rows = {"iceberg": of_iceberg, "delta": of_delta}[kind](tmp_path)

    done = [event for event in events if event["eventType"] == "COMPLETE"]
    told = [(event, output) for event, output in outputs(done, "race/sink") + outputs(done, "race.db/sink")]
    wrong = [fault for event, output in told for fault in faults(event, snapshot(output), rows)]

    assert (len(told), wrong) == (THREADS * ROUNDS, [])


def mark(folder: Path) -> None:
    """A file a statement, by which its event is known."""
    for tag in (f"insert_{thread}_{number}" for thread in range(THREADS) for number in range(ROUNDS)):
        (folder / "marks" / tag).mkdir(parents=True)
        pq.write_table(pa.table({"tag": [tag]}), folder / "marks" / tag / "0.parquet")


def wait_for(file: Path) -> None:
    until = time.monotonic() + 120
    while not file.exists():
        assert time.monotonic() < until, f"{file.name} never came"
        time.sleep(0.1)


def faults(event: dict[str, Any], made: dict[str, Any], rows: Rows) -> list[str]:
    """What is wrong with the snapshots of one insert, but for those that are marked as observed only."""
    tag = next(d["name"].rpartition("/")[2] for d in event["inputs"] if "/marks/" in d["name"])
    read = next(snapshot(d) for d in event["inputs"] if d["name"].endswith("/source"))
    if made.get("observed"):
        return []
    own = [row["n"] for row in rows("sink", made["snapshotId"]) if row["tag"] == tag]
    before = [row["n"] for row in rows("sink", made["parentSnapshotId"]) if row["tag"] == tag]
    if len(own) != 1 or before:
        return [f"{tag} is not what {made['snapshotId']} added"]
    counted = len(rows("source", read["snapshotId"]))
    return [] if counted == own[0] else [f"{tag} counted {own[0]} rows, {read['snapshotId']} has {counted}"]


def of_iceberg(folder: Path) -> Rows:
    from pyiceberg.catalog.sql import SqlCatalog

    catalog = SqlCatalog("lake", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}/lake")

    def rows(table: str, snapshot_id: str) -> list[dict[str, Any]]:
        found = catalog.load_table(f"race.{table}").scan(snapshot_id=int(snapshot_id)).to_arrow().to_pylist()
        return list(found)

    return rows


def of_delta(folder: Path) -> Rows:
    from deltalake import DeltaTable

    def rows(table: str, version: str) -> list[dict[str, Any]]:
        place = f"{folder}/spark/race.db/{table}"
        return list(DeltaTable(place, version=int(version)).to_pyarrow_table().to_pylist())

    return rows
