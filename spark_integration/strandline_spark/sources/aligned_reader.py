"""`strandline_aligned` with the catalogs of the session's conf."""

from __future__ import annotations

from pyspark.sql import SparkSession
from pyspark.sql.streaming import DataStreamReader

from strandline_spark.consistency.collector import ConfigurationError
from strandline_spark.sources.lake_catalogs import catalogs_in


def aligned_source(spark: SparkSession) -> DataStreamReader:
    """A reader of streams over several Iceberg tables, one barrier a micro-batch.

    `strandline_aligned`.

    `aligned_source(spark).option("tables", "lake.bank.credits,lake.bank.debits").load()`. From now
    on the format knows the Iceberg catalogs of this session's conf. Rows are read by pyiceberg in
    the executors, which need it and strandline-spark.

    Raises:
        ConfigurationError: this Spark has no data sources in Python (3.5).
    """
    try:
        from strandline_spark.sources.aligned_source import AlignedSource
    except ImportError as error:
        raise ConfigurationError(
            f"Spark {spark.version} has no data sources in Python: "
            "strandline_aligned needs Spark 4.0 or newer"
        ) from error
    keys = str(
        spark._jsparkSession.sessionState().conf().getAllConfs().keys().mkString("\n")
    ).split("\n")
    of_conf = catalogs_in(
        {key: spark.conf.get(key, "") for key in keys if key.startswith("spark.sql.catalog.")}
    )

    class SessionAlignedSource(AlignedSource):
        catalogs = of_conf

    spark.dataSource.register(SessionAlignedSource)
    return spark.readStream.format(AlignedSource.name())
