"""The snapshot range that a micro-batch read from a table, and its barrier."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fixtures.spark_lake import formats
from strandline_spark.extraction.reader import PlanReader
from strandline_spark.jvm.streaming_query import StreamHandle
from strandline_spark.model.statement import Snapshot

pytestmark = pytest.mark.spark
TABLES = {"iceberg": "lake.ranges", "delta": "ranges"}
KINDS = [
    pytest.param(kind, marks=[] if kind in formats() else pytest.mark.skip("no runtime"))
    for kind in TABLES
]


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest, lake: Any) -> Iterator[str]:
    kind = str(request.param)
    lake.sql(f"CREATE NAMESPACE {TABLES[kind]}")
    for name in ("made", "copied"):
        lake.sql(f"CREATE TABLE {TABLES[kind]}.{name} (id bigint) USING {kind}")
    yield kind
    lake.sql(f"DROP TABLE {TABLES[kind]}.copied")
    lake.sql(f"DROP TABLE {TABLES[kind]}.made")
    lake.sql(f"DROP NAMESPACE {TABLES[kind]}")


def copy(rows: Any, kind: str, name: str, folder: Path) -> Any:
    """Streams what there is into a table; the last micro-batch's execution."""
    writer = (
        rows.writeStream.format(kind)
        .trigger(availableNow=True)
        .option("checkpointLocation", f"{folder}/{name}")
    )
    query = writer.toTable(f"{TABLES[kind]}.{name}")
    query.awaitTermination(240)
    return query._jsq.streamingQuery().lastExecution()


def snapshots(lake: Any, kind: str) -> list[str]:
    """The ids of the snapshots of the first table that have rows, the oldest first."""
    table = f"{TABLES[kind]}.made"
    if kind == "iceberg":
        return [
            str(row[0])
            for row in lake.sql(
                f"SELECT snapshot_id FROM {table}.snapshots ORDER BY committed_at"
            ).collect()
        ]
    versions = (
        lake.sql(f"DESCRIBE HISTORY {table}")
        .where("operation = 'STREAMING UPDATE'")
        .select("version")
    )
    return sorted((str(row[0]) for row in versions.collect()), key=int)


def test_micro_batch_reports_its_snapshot_range(lake: Any, kind: str, tmp_path: Path) -> None:
    reader, told = PlanReader(lake), list[Snapshot]()
    for _ in range(3):
        lake.range(2).write.mode("append").parquet(f"{tmp_path}/in")
        copy(lake.readStream.schema("id bigint").parquet(f"{tmp_path}/in"), kind, "made", tmp_path)
        read = lake.readStream.format(kind).table(f"{TABLES[kind]}.made")
        batch = copy(read, kind, "copied", tmp_path)
        told += reader.micro_batch(batch, None).inputs[0].snapshots

    first, second, third = snapshots(lake, kind)
    ranges = [(one.from_snapshot_id, one.snapshot_id, one.barrier_id, one.observed) for one in told]
    assert ranges == [
        (None, first, None, False),
        (first, second, None, False),
        (second, third, None, False),
    ]


def test_stream_that_passes_over_a_delete_says_so(lake: Any, kind: str, tmp_path: Path) -> None:
    made, reader, told = f"{TABLES[kind]}.made", PlanReader(lake), list[tuple[str, bool]]()
    skip = {"iceberg": "streaming-skip-overwrite-snapshots", "delta": "skipChangeCommits"}[kind]
    for change in ("SELECT 1", f"DELETE FROM {made} WHERE id = 2", "SELECT 2"):
        lake.sql(f"INSERT INTO {made} VALUES (1), (2)")
        lake.sql(change)
        lake.sql(f"INSERT INTO {made} VALUES (3)")
        options = {skip: "true", "streaming-skip-delete-snapshots": "true"}
        read = lake.readStream.format(kind).options(**options).table(made)
        batch = copy(read, kind, "copied", tmp_path)
        (snapshot,) = reader.micro_batch(batch, None).inputs[0].snapshots
        told.append(
            ("first" if snapshot.from_snapshot_id is None else "next", snapshot.skipped_changes)
        )

    assert told == [("first", False), ("next", True), ("next", False)]


def test_stream_that_begins_at_a_version_says_where(lake: Any, kind: str, tmp_path: Path) -> None:
    if kind != "delta":
        pytest.skip("startingVersion is an option of Delta")
    for _ in range(3):
        lake.sql(f"INSERT INTO {TABLES[kind]}.made VALUES (1)")
    read = lake.readStream.format(kind).option("startingVersion", "2").table(f"{TABLES[kind]}.made")
    writer = read.writeStream.format(kind).trigger(availableNow=True)
    query = writer.option("checkpointLocation", f"{tmp_path}/at").toTable(f"{TABLES[kind]}.copied")
    stream = query._jsq.streamingQuery()
    query.awaitTermination(240)

    planned = StreamHandle(stream).as_query_execution()
    (snapshot,) = PlanReader(lake).micro_batch(stream.lastExecution(), planned).inputs[0].snapshots
    assert (snapshot.from_snapshot_id, snapshot.snapshot_id) == ("1", "3")
