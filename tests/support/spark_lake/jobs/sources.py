"""An ordinary PySpark application that reads queries behind JDBC, several topics and folders, and what is there already.

`sources.py FOLDER FORMAT SERVERS`; every statement that does something writes something of its own. SERVERS is the
address of a Kafka broker, or empty.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping

from ordinary import DERBY, finish  # type: ignore[import-not-found]  # in the folder of this script
from pyspark.sql import SparkSession


def database(spark: SparkSession, folder: str) -> None:
    """Queries in place of tables: a join, an aggregate, common table expressions, quoted names, subqueries."""
    url = f"jdbc:derby:{folder}/shopdb;create=true"
    for name, columns in {"ORDERS": "id * 10 AS AMOUNT, id AS PERSON", "PEOPLE": "id AS ID, 'ann' AS NAME"}.items():
        spark.range(3).selectExpr(*columns.split(", ")).write.jdbc(url, name, properties=DERBY)
    queries = {
        "joined": "SELECT o.AMOUNT, p.NAME AS WHO FROM ORDERS o JOIN PEOPLE p ON o.PERSON = p.ID",
        "summed": "SELECT PERSON, SUM(AMOUNT) AS TOTAL FROM ORDERS GROUP BY PERSON",
        "quoted": 'SELECT "AMOUNT" AS A FROM "ORDERS"',
        "within": "SELECT q.NAME FROM (SELECT NAME, ID FROM PEOPLE) q WHERE q.ID IN (SELECT PERSON FROM ORDERS)",
        "dialect": "SELECT {fn UCASE(NAME)} AS N FROM PEOPLE",
    }
    reader = spark.read.format("jdbc").option("url", url).option("driver", DERBY["driver"])
    for name, query in queries.items():
        reader.option("query", query).load().write.parquet(f"{folder}/out/{name}")


def folders(spark: SparkSession, folder: str) -> None:
    """Two folders as one; a folder, and a table, that are there already."""
    for name in ("north", "south"):
        spark.range(3).selectExpr("id", "id * 2 AS twice").write.parquet(f"{folder}/in/{name}")
    both = spark.read.parquet(f"{folder}/in/north", f"{folder}/in/south")
    both.selectExpr("id + 1 AS id").write.parquet(f"{folder}/out/both")
    north = spark.read.parquet(f"{folder}/in/north")
    for name in ("both", "fresh"):
        north.write.mode("ignore").parquet(f"{folder}/out/{name}")
    spark.sql("CREATE DATABASE shop")
    for mode in ("errorifexists", "append", "overwrite"):
        north.write.mode(mode).saveAsTable("shop.kept")
    spark.sql("DROP TABLE shop.kept")
    spark.sql("DROP TABLE IF EXISTS shop.kept")


def topics(spark: SparkSession, folder: str, servers: str) -> None:
    """Two topics, filled, and read as one."""
    kafka = {"kafka.bootstrap.servers": servers}
    north = spark.read.parquet(f"{folder}/in/north").selectExpr("cast(id AS string) AS value")
    for topic in ("sources_a", "sources_b"):
        north.write.format("kafka").options(**kafka, topic=topic).save()
    read = spark.read.format("kafka").options(**kafka, subscribe="sources_a,sources_b").load()
    read.selectExpr("cast(value AS string) AS value").write.parquet(f"{folder}/out/topics")


def iceberg(spark: SparkSession, folder: str) -> None:
    """A stream from an empty table; two versions in one query; what is there already; changes; a view; drops."""
    spark.sql("CREATE NAMESPACE lake.shop")
    spark.sql("CREATE TABLE lake.shop.orders (id bigint) USING iceberg")
    spark.sql("CREATE TABLE lake.shop.copied (id bigint) USING iceberg")
    writer = spark.readStream.table("lake.shop.orders").writeStream.queryName("copied").trigger(availableNow=True)
    writer.option("checkpointLocation", f"{folder}/copied").toTable("lake.shop.copied").awaitTermination(240)
    for number in (1, 2):
        spark.sql(f"INSERT INTO lake.shop.orders VALUES ({number})")
    first, second = (
        row.snapshot_id for row in spark.sql("SELECT * FROM lake.shop.orders.snapshots ORDER BY committed_at").collect()
    )
    at = [f"(SELECT id FROM lake.shop.orders VERSION AS OF {snapshot})" for snapshot in (first, second)]
    spark.sql(f"CREATE TABLE lake.shop.twice AS SELECT a.id FROM {at[0]} a JOIN {at[1]} b ON a.id = b.id")
    spark.sql("CREATE TABLE IF NOT EXISTS lake.shop.twice AS SELECT id FROM lake.shop.orders")
    spark.sql("CALL lake.system.create_changelog_view(table => 'shop.orders', changelog_view => 'changed')")
    spark.sql("SELECT id FROM changed").write.parquet(f"{folder}/out/changed")
    spark.sql("CREATE VIEW lake.shop.seen AS SELECT id FROM lake.shop.orders")
    spark.sql("DROP TABLE IF EXISTS lake.shop.nothing")
    spark.sql("DROP TABLE IF EXISTS lake.shop.twice")


def paimon(spark: SparkSession, folder: str) -> None:
    """Writes and a stream by path, partitions as they come, a branch, what is there already."""
    spark.sql("CREATE DATABASE paimon.shop")
    spark.sql("CREATE TABLE paimon.shop.orders (id bigint, twice bigint) PARTITIONED BY (twice)")
    orders, north = f"{folder}/paimon/shop.db/orders", spark.read.parquet(f"{folder}/in/north")
    north.write.format("paimon").mode("append").save(orders)
    spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    north.createOrReplaceTempView("north")
    spark.sql("INSERT OVERWRITE paimon.shop.orders SELECT id, twice FROM north")
    writer = spark.readStream.format("paimon").load(orders).writeStream.queryName("copied").trigger(availableNow=True)
    copied = writer.option("checkpointLocation", f"{folder}/copied").start(f"{folder}/out/copied")
    copied.awaitTermination(240)
    spark.sql("CALL paimon.sys.create_tag(table => 'shop.orders', tag => 'one', snapshot => 1)")
    spark.sql("CALL paimon.sys.create_branch('shop.orders', 'tried', 'one')")
    spark.sql("INSERT INTO paimon.shop.`orders$branch_tried` SELECT id, twice FROM north")
    time.sleep(2.5)  # longer than a statement takes from its analysis to its table
    spark.sql("CREATE TABLE IF NOT EXISTS paimon.shop.orders (id bigint, twice bigint)")
    spark.sql("TRUNCATE TABLE paimon.shop.orders")


FORMATS: Mapping[str, Callable[[SparkSession, str], None]] = {"iceberg": iceberg, "paimon": paimon}


def main(folder: str, kind: str, servers: str = "") -> None:
    spark = SparkSession.builder.appName("sources").getOrCreate()
    database(spark, folder)
    folders(spark, folder)
    if servers:
        topics(spark, folder, servers)
    if kind in FORMATS:
        FORMATS[kind](spark, folder)
    spark.range(1).write.parquet(f"{folder}/out/last")
    finish(spark, "sources.last")


if __name__ == "__main__":
    main(*sys.argv[1:])
