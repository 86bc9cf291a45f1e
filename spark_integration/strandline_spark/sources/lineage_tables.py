"""The lineage tables of the session's collector as temporary views.

So the proposals' queries run as they stand.
"""

from __future__ import annotations

from pyspark.sql import SparkSession

from strandline_spark.conf_keys import COLLECTOR_URL
from strandline_spark.consistency.collector import Collector, ConfigurationError
from strandline_spark.sources.lineage_columns import COLUMNS, WITH_HISTORY


def lineage_tables(spark: SparkSession) -> tuple[str, ...]:
    """Make temporary views of the collector's lineage tables, and of what ran as `NAME_history`.

    Return the names of the views.

    Each query over a view asks the collector anew. `spark.read.format("strandline_lineage")` of
    this session knows the conf's collector from now on too. The executors need strandline-spark and
    a way to the collector.

    Raises:
        ConfigurationError: the conf names no collector, or this Spark has no data sources in Python
            (3.5).
    """
    collector = Collector.of(spark)
    if collector is None:
        raise ConfigurationError(
            f"{COLLECTOR_URL} is not set: set it to the collector whose lineage you want to read"
        )
    _register(spark, collector)
    views = {name: (name, "running") for name in COLUMNS} | {
        f"{name}_history": (name, "history") for name in WITH_HISTORY
    }
    for view, (table, state) in views.items():
        rows = (
            spark.read.format("strandline_lineage")
            .option("table", table)
            .option("state", state)
            .load()
        )
        rows.createOrReplaceTempView(view)
    return tuple(views)


def _register(spark: SparkSession, collector: Collector) -> None:
    try:
        from strandline_spark.sources.lineage_source import LineageSource
    except ImportError as error:
        raise ConfigurationError(
            f"Spark {spark.version} has no data sources in Python: "
            "strandline_lineage needs Spark 4.0 or newer"
        ) from error

    class SessionLineageSource(LineageSource):
        collector_url, collector_token = collector.url, collector.token

    spark.dataSource.register(SessionLineageSource)
