"""Running a report in a Spark session whose catalog has the published tables."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from strandline.errors import RefusedError
from strandline.reports.queries import REPORTS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

EDGES = ("job_edges", "column_edges")


def run_report(spark: SparkSession, name: str, catalog: str, before: datetime) -> DataFrame:
    """Return the rows of a report, in its order.

    Raises RefusedError where the catalog has no published edges.
    """
    report = REPORTS[name]
    for table in EDGES:
        _edges(spark, f"{catalog}.strandline.{table}").createOrReplaceTempView(table)
    if report.needs_reach:
        reach(spark).createOrReplaceTempView("reach")
    moment = before.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return spark.sql(report.sql.replace("{before}", moment))


def reach(spark: SparkSession) -> DataFrame:
    """Return (start, node) for each dataset and each dataset made from it, at any distance.

    Each round follows the pairs of the round before by one step. It ends where none is new, so
    circles end too.
    """
    steps = spark.sql(
        "SELECT DISTINCT source AS start, target AS node FROM job_edges "
        "WHERE source IS NOT NULL AND target IS NOT NULL"
    ).localCheckpoint()
    pairs = new = steps
    while not new.isEmpty():
        next_steps = steps.toDF("middle", "next")
        further = new.join(next_steps, new.node == next_steps.middle).select("start", "next")
        new = further.toDF("start", "node").distinct().subtract(pairs).localCheckpoint()
        pairs = pairs.union(new).localCheckpoint()
    return pairs


def _edges(spark: SparkSession, table: str) -> Any:
    from pyspark.errors import AnalysisException

    try:
        return spark.table(table)
    except AnalysisException as error:
        reason = str(error).partition("\n")[0].partition(" If you did")[0]
        raise RefusedError(
            f"{table}: Spark does not give the table ({reason}); write it with strandline tables "
            "publish, and name the catalog by --conf spark.sql.catalog.NAME=..."
        ) from error
