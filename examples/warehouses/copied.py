"""One of two jobs that copy a Kafka topic into a lake.

`copied.py SPARK_TABLE SERVERS KIND WAREHOUSE`.

Each has a Spark table of its own over the same topic, and a catalog of the same name over a
warehouse of its own. Their lineage shows one topic and two tables my_paimon_table.
"""

import sys

from pyspark.sql import SparkSession

CATALOGS = {
    "iceberg": "org.apache.iceberg.spark.SparkCatalog",
    "paimon": "org.apache.paimon.spark.SparkCatalog",
}


def main(over_topic: str, servers: str, kind: str, warehouse: str) -> None:
    """Make both tables and copy."""
    spark = session(f"copy_{over_topic}", kind, lake=warehouse)
    spark.sql(
        f"CREATE TABLE {over_topic} USING kafka OPTIONS (`kafka.bootstrap.servers` '{servers}', "
        "subscribe 'orders', startingOffsets 'earliest')"
    )
    spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.shop")
    spark.sql(f"CREATE TABLE lake.shop.my_paimon_table (id bigint, amount bigint) USING {kind}")
    spark.sql(
        "INSERT INTO lake.shop.my_paimon_table SELECT CAST(CAST(key AS string) AS bigint), "
        f"CAST(CAST(value AS string) AS bigint) FROM {over_topic}"
    )
    spark.stop()


def session(name: str, kind: str, **warehouses: str) -> SparkSession:
    """A session with these catalogs."""
    builder = SparkSession.builder.appName(name).config("spark.openlineage.appName", name)
    for catalog, warehouse in warehouses.items():
        builder = builder.config(f"spark.sql.catalog.{catalog}", CATALOGS[kind])
        builder = builder.config(f"spark.sql.catalog.{catalog}.warehouse", warehouse)
        if kind == "iceberg":
            builder = builder.config(f"spark.sql.catalog.{catalog}.type", "hadoop")
    return builder.getOrCreate()


if __name__ == "__main__":
    main(*sys.argv[1:])
