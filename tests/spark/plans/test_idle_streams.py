"""An idle micro-batch still reports its source, without a snapshot."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fixtures.spark_lake.analysis import column_origins, input_names
from strandline_spark.extraction.reader import PlanReader
from strandline_spark.jvm.streaming_query import StreamHandle, running_queries
from strandline_spark.model.statement import Statement

pytestmark = pytest.mark.spark
INPUTS = ["people", "ticks"]
COLUMNS = ["w <- at TRANSFORMATION", "name <- name IDENTITY", "n <- id AGGREGATION"]


@pytest.fixture(scope="module")
def folder(lake: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that is watched, and one that is not."""
    path = tmp_path_factory.mktemp("idle")
    lake.range(3).selectExpr("id", "timestamp'2026-01-01' AS at").write.parquet(f"{path}/ticks")
    lake.range(3).selectExpr("id", "'ann' AS name").write.parquet(f"{path}/people")
    return path


@pytest.fixture(scope="module")
def idle(lake: Any, folder: Path) -> Any:
    """A stateful query that has ended with a micro-batch without news, as one that takes what is available does."""
    from pyspark.sql import functions as f

    ticks = lake.readStream.schema("id long, at timestamp").parquet(f"{folder}/ticks")
    people = lake.read.parquet(f"{folder}/people")
    joined = ticks.withWatermark("at", "1 second").join(people, "id")
    counted = joined.groupBy(f.window("at", "1 second"), "name").agg(f.sum("id").alias("n"))
    rows = counted.select(f.col("window.start").alias("w"), "name", "n")
    writer = rows.writeStream.trigger(availableNow=True).option(
        "checkpointLocation", f"{folder}/checkpoint"
    )
    query = writer.start(f"{folder}/counted")
    query.awaitTermination(240)
    return query._jsq.streamingQuery()


def described(statement: Statement) -> tuple[list[str], list[str]]:
    """Return what is read, and what the columns are made of."""
    return sorted(input_names(statement)), column_origins(statement)


def test_an_idle_micro_batch_names_the_source_of_its_query(lake: Any, idle: Any) -> None:
    planned, batch = StreamHandle(idle).as_query_execution(), idle.lastExecution()
    assert int(batch.currentBatchId()) == 1

    assert described(PlanReader(lake).micro_batch(batch, planned)) == (INPUTS, COLUMNS)
    assert described(PlanReader(lake).at_start(batch, planned)) == (INPUTS, COLUMNS)


def test_idle_micro_batch_of_an_ended_query_uses_earlier_inputs(lake: Any, idle: Any) -> None:
    reader = PlanReader(lake)
    reader.at_start(StreamHandle(idle).as_query_execution())

    assert described(reader.micro_batch(idle.lastExecution(), None)) == (INPUTS, COLUMNS)


def test_earlier_micro_batch_is_recovered_from_an_idle_plan(lake: Any, idle: Any) -> None:
    offsets = [(None, '{"logOffset":0}')]
    planned = StreamHandle(idle).as_query_execution()
    earlier = PlanReader(lake).earlier_batch(idle.lastExecution(), ("query", 0), offsets, planned)

    assert described(earlier) == (INPUTS, COLUMNS)


def test_already_running_query_is_found(lake: Any, tmp_path: Path) -> None:
    writer = lake.readStream.format("rate").load().writeStream.queryName("early").format("noop")
    query = (
        writer.option("checkpointLocation", str(tmp_path)).trigger(processingTime="1 hour").start()
    )
    try:
        found = running_queries(lake._jsparkSession)
    finally:
        query.stop()

    assert (str(query.id), str(query.runId), "early") in found
