"""User edges apply to the next action or the next run of a named query."""

from __future__ import annotations

from typing import Any

import pytest

from fixtures.emitter.drivers import SparkProgram, emitting
from fixtures.warm_jvm import WarmJvm

pytestmark = pytest.mark.spark

JOB = """
import os
from pyspark.sql import SparkSession
from strandline_spark import (
    LineageDataset, LineageEdge, TableColumnLineageEdge, TableLineageEdge, TableSinkLineageVertex, TableSourceLineageVertex,
    add_lineage_edges,
)

spark = SparkSession.builder.getOrCreate()
here = os.getcwd()
def at(name):
    return LineageDataset(f"{here}/{name}", "file")
def edge(source, sink, column=None):
    ends = TableSourceLineageVertex((at(source),)), TableSinkLineageVertex((at(sink),))
    if column is None:
        return LineageEdge(*ends)
    return TableLineageEdge(*ends, (TableColumnLineageEdge(at(source), (column,), "total"),))

for name in ("one", "two"):
    spark.range(3).write.parquet(name)
one, two = spark.read.parquet("one"), spark.read.parquet("two")
other = spark.newSession()
add_lineage_edges(spark, edge("one", "both", "id"))
add_lineage_edges(spark, edge("elsewhere", "both"))  # they add up
other.read.parquet("two").selectExpr("id AS total").write.parquet("others")  # another session's action
one.join(two, "id").selectExpr("id AS total").write.parquet("both")
one.join(two, "id").selectExpr("id AS total").write.parquet("again")
def streamed(target):
    stream = spark.readStream.schema("id bigint").parquet("one").writeStream.queryName("copied").format("parquet")
    stream.option("checkpointLocation", f"checkpoint-{target}").trigger(availableNow=True).start(target).awaitTermination()
add_lineage_edges(spark, edge("two", "first"), query="copied")
streamed("first")
streamed("second")
"""


@pytest.mark.slow
def test_user_edges_apply_to_one_action_or_one_query_run(tmp_path: Any, warm_jvm: WarmJvm) -> None:
    driver = SparkProgram(tmp_path, JOB, emitting(tmp_path), jvm=warm_jvm)
    result = driver.run()
    assert result.code == 0, result.err[-3000:]

    ends = [event for event in driver.events() if event["eventType"] in ("RUNNING", "COMPLETE")]
    found = {
        name(output): (sources(output, event), columns(output))
        for event in ends
        for output in event["outputs"]
    }

    assert {sink: read for sink, (read, _) in found.items() if sink not in ("one", "two")} == {
        "others": {"two"},
        "both": {"one", "elsewhere"},
        "again": {"one", "two"},
        "first": {"two"},
        "second": {"one"},
    }
    assert found["both"][1] == {"total": {"one.id"}}
    assert {one for origins in found["again"][1].values() for one in origins} >= {"one.id"}


def name(dataset: dict[str, Any]) -> str:
    """The last part of a path."""
    return str(dataset["name"]).rpartition("/")[2]


def sources(output: dict[str, Any], event: dict[str, Any]) -> set[str]:
    """Return the sources of an output: of its lineage facet, else all that the event read."""
    stated = output.get("facets", {}).get("lineage")
    return {name(one) for one in (event["inputs"] if stated is None else stated["inputs"])}


def columns(output: dict[str, Any]) -> dict[str, set[str]]:
    """The origins of each column."""
    fields = output.get("facets", {}).get("columnLineage", {}).get("fields", {})
    return {
        column: {f"{name(origin)}.{origin['field']}" for origin in of["inputFields"]}
        for column, of in fields.items()
    }
