"""Batch programs whose statements have unusual shapes.

Several sinks in one, partitions, views, caches, self-joins, files.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from recordings.programs.batch import empty, sql, tables

PARTITIONED = "CREATE TABLE lake.bank.sales (id BIGINT, amount BIGINT, region STRING) USING iceberg PARTITIONED BY (region)"


def partitions_eu(spark: Any, folder: Path) -> None:
    """The partition of Europe is overwritten from one table."""
    tables(spark, "orders_eu", "orders_us")
    sql(
        spark,
        PARTITIONED,
        "INSERT OVERWRITE lake.bank.sales PARTITION (region = 'eu') SELECT id, amount FROM lake.bank.orders_eu",
    )


def partitions_us(spark: Any, folder: Path) -> None:
    """Another application overwrites the partition of the United States, by DataFrame, from another table."""
    source = spark.table("lake.bank.orders_us").selectExpr("id", "amount", "'us' AS region")
    source.writeTo("lake.bank.sales").overwritePartitions()


def views_and_caches(spark: Any, folder: Path) -> None:
    """A permanent view over a join, a cached table whose source moves on, a union of a self-join, a view over a view."""
    # the INSERT into refunds fills the cache of the same session anew
    tables(spark, "orders", "customers", "refunds")
    empty(spark, "from_view", "from_cache", "pairs", "nested")
    sql(
        spark,
        """CREATE VIEW spark_catalog.default.with_customers AS
           SELECT o.id, o.amount, c.region FROM lake.bank.orders o JOIN lake.bank.customers c ON o.id = c.id""",
        "CREATE VIEW spark_catalog.default.european AS SELECT * FROM spark_catalog.default.with_customers WHERE region = 'eu'",
        "INSERT INTO lake.bank.from_view SELECT * FROM spark_catalog.default.with_customers",
        "INSERT INTO lake.bank.nested SELECT * FROM spark_catalog.default.european",
        "CACHE TABLE cached_refunds AS SELECT * FROM lake.bank.refunds",
        "INSERT INTO lake.bank.refunds VALUES (4, 40, 'us')",
        "INSERT INTO lake.bank.from_cache SELECT * FROM cached_refunds",
        """INSERT INTO lake.bank.pairs
           SELECT a.id, b.amount, a.region FROM lake.bank.orders a JOIN lake.bank.orders b ON a.id = b.id + 1
           UNION ALL SELECT id, amount, region FROM lake.bank.refunds""",
    )


def several_sinks(spark: Any, folder: Path) -> None:
    """One statement with two INSERTs, and two INSERTs at the same time from two threads, each from a table of its own."""
    tables(spark, "orders", "refunds", "customers")
    empty(spark, "large", "small", "left", "right")
    sql(
        spark,
        """FROM lake.bank.orders
           INSERT INTO lake.bank.large SELECT id, amount, region WHERE amount >= 20
           INSERT INTO lake.bank.small SELECT id, amount, region WHERE amount < 20""",
    )
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(spark.sql, "INSERT INTO lake.bank.left SELECT * FROM lake.bank.refunds")
        second = pool.submit(
            spark.sql, "INSERT INTO lake.bank.right SELECT * FROM lake.bank.customers"
        )
        first.result()
        second.result()


def files_and_tables(spark: Any, folder: Path) -> None:
    """Files of three formats read and written.

    A folder by partitions, one overwritten by what another holds, a table of the
    session's own catalog.
    """
    place = folder / "files"
    spark.createDataFrame(
        [(1, 10, "eu"), (2, 20, "us")], "id BIGINT, amount BIGINT, region STRING"
    ).write.csv(f"{place}/raw", header=True)
    raw = spark.read.csv(f"{place}/raw", header=True, inferSchema=True)
    raw.write.partitionBy("region").parquet(f"{place}/by_region")
    spark.read.parquet(f"{place}/by_region").where("region = 'eu'").write.json(f"{place}/european")
    spark.read.parquet(f"{place}/by_region/region=us").write.mode("overwrite").orc(
        f"{place}/american"
    )
    spark.read.json(f"{place}/european").write.saveAsTable("european")
    sql(
        spark,
        f"INSERT OVERWRITE DIRECTORY '{place}/exported' USING parquet SELECT id, amount FROM european",
        f"INSERT INTO european SELECT amount, id, 'us' FROM orc.`{place}/american`",
    )
