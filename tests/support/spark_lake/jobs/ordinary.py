"""An ordinary PySpark application: files, tables of the session's catalog (Hive's), views, a database behind JDBC.

`ordinary.py FOLDER FORMAT`; every statement writes something of its own. With a table format it ends on tables of that,
with `files` on functions in SQL and a source in Python, with `plain` on neither.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyspark
from pyspark.sql import DataFrame, SparkSession

FOUR = pyspark.__version__ >= "4.0"
DERBY = {"driver": "org.apache.derby.jdbc.EmbeddedDriver"}


def files(spark: SparkSession, folder: str) -> None:
    """Files of several formats; a folder as the target of a statement."""
    spark.createDataFrame([(1, "ann", "rome"), (2, "bob", "oslo")], "id bigint, name string, city string").write.csv(
        f"{folder}/in/people", header=True
    )
    people = spark.read.csv(f"{folder}/in/people", header=True, schema="id bigint, name string, city string")
    people.selectExpr("id", "upper(name) AS name", "city").write.parquet(f"{folder}/out/people")
    people.groupBy("city").count().write.mode("overwrite").json(f"{folder}/out/cities")
    people.createOrReplaceTempView("arrived")
    spark.sql(
        f"INSERT OVERWRITE DIRECTORY '{folder}/out/report' USING json SELECT city, count(*) AS n FROM arrived GROUP BY city"
    )


def tables(spark: SparkSession, folder: str) -> None:
    """Tables of the session's catalog."""
    spark.sql("CREATE DATABASE shop")
    spark.read.parquet(f"{folder}/out/people").write.saveAsTable("shop.people")
    spark.sql("CREATE TABLE shop.orders (id bigint, person bigint, amount int) USING parquet")
    spark.sql("INSERT INTO shop.orders VALUES (1, 1, 10), (2, 2, 20), (3, 2, 30)")
    spark.sql(
        "CREATE TABLE shop.totals USING parquet AS SELECT p.name, sum(o.amount) AS total FROM shop.orders AS o"
        " JOIN shop.people AS p ON o.person = p.id WHERE o.amount > 5 GROUP BY p.name"
    )
    spark.sql("CREATE VIEW shop.large AS SELECT id, amount FROM shop.orders WHERE amount > 15")
    spark.sql("CREATE TABLE shop.few (id bigint, amount int) USING parquet")
    spark.sql("INSERT OVERWRITE shop.few SELECT id, amount FROM shop.large")


def several(spark: SparkSession) -> None:
    """One statement that fills two tables, and one that goes on from what is cached."""
    for table in ("low", "high"):
        spark.sql(f"CREATE TABLE shop.{table} (id bigint, amount int) USING parquet")
    spark.sql(
        "FROM shop.orders INSERT INTO shop.low SELECT id, amount WHERE amount < 20"
        " INSERT INTO shop.high SELECT id, amount * 2 WHERE amount >= 20"
    )
    spark.sql("CACHE TABLE kept AS SELECT person, max(amount) AS most FROM shop.orders GROUP BY person")
    spark.sql("CREATE TABLE shop.most USING parquet AS SELECT person, most FROM kept")
    spark.sql("UNCACHE TABLE kept")


def hive(spark: SparkSession) -> None:
    """A table in one of Hive's own formats."""
    spark.sql("CREATE TABLE shop.archive (name string, total bigint) PARTITIONED BY (year int) STORED AS ORC")
    spark.sql("INSERT INTO shop.archive PARTITION (year = 2026) SELECT name, total FROM shop.totals")


def database(spark: SparkSession, folder: str) -> None:
    """A table behind JDBC, written and read."""
    url = f"jdbc:derby:{folder}/shopdb;create=true"
    spark.table("shop.totals").write.jdbc(url, "TOTALS", mode="append", properties=DERBY)
    spark.read.jdbc(url, "TOTALS", properties=DERBY).write.parquet(f"{folder}/out/totals")


def functions(spark: SparkSession) -> None:
    """Functions that are written in SQL, and a source that is written in Python."""
    from pyspark.sql.datasource import DataSource, DataSourceReader

    spark.sql("CREATE TEMPORARY FUNCTION taxed(x INT) RETURNS INT RETURN x + x / 5")
    spark.sql("CREATE TABLE shop.taxes USING parquet AS SELECT id, taxed(amount) AS gross FROM shop.orders")
    spark.sql(
        "CREATE TEMPORARY FUNCTION orders_of(who BIGINT) RETURNS TABLE (id BIGINT, amount INT)"
        " RETURN SELECT o.id, o.amount FROM shop.orders AS o WHERE o.person = who"
    )
    spark.sql("CREATE TABLE shop.hers USING parquet AS SELECT id, amount FROM orders_of(1)")

    class Numbers(DataSource):  # type: ignore[misc]  # pyspark has no types here
        @classmethod
        def name(cls) -> str:
            return "numbers"

        def schema(self) -> str:
            return "n int"

        def reader(self, schema: Any) -> DataSourceReader:
            return NumbersReader()

    class NumbersReader(DataSourceReader):  # type: ignore[misc]
        def read(self, partition: Any) -> Iterator[tuple[int]]:
            yield from ((number,) for number in range(3))

    spark.dataSource.register(Numbers)
    spark.read.format("numbers").load().selectExpr("n + 1 AS n").write.saveAsTable("shop.numbers")


def streams(spark: SparkSession, folder: str) -> None:
    """Files into files, and into what a function does with the rows."""

    def keep(rows: DataFrame, number: int) -> None:
        rows.selectExpr("id", "amount + 1 AS amount").write.mode("append").parquet(f"{folder}/out/kept")

    arriving = spark.readStream.schema("id bigint, person bigint, amount int").parquet(f"{folder}/spark/shop.db/orders")
    writer = arriving.writeStream.trigger(availableNow=True)
    copy = writer.format("parquet").option("checkpointLocation", f"{folder}/checkpoints/copy")
    copy.queryName("copy").start(f"{folder}/out/copied").awaitTermination(240)
    kept = arriving.writeStream.trigger(availableNow=True).option("checkpointLocation", f"{folder}/checkpoints/kept")
    kept.queryName("kept").foreachBatch(keep).start().awaitTermination(240)


def lake(spark: SparkSession, kind: str) -> None:
    """Tables of a format that keeps snapshots."""
    name = {"iceberg": "lake.shop", "delta": "shop"}[kind]
    spark.sql(f"CREATE DATABASE IF NOT EXISTS {name}")
    spark.sql(f"CREATE TABLE {name}.accounts USING {kind} AS SELECT id, name, city FROM shop.people")
    spark.sql(f"CREATE TABLE {name}.log (id bigint, name string) USING {kind}")
    spark.sql(f"INSERT INTO {name}.log SELECT id, lower(name) FROM {name}.accounts WHERE city = 'rome'")
    spark.sql(f"CREATE TABLE {name}.merged USING {kind} AS SELECT id, amount FROM shop.orders")
    spark.sql(
        f"MERGE INTO {name}.merged AS t USING shop.few AS s ON t.id = s.id"
        " WHEN MATCHED THEN UPDATE SET amount = t.amount + s.amount WHEN NOT MATCHED THEN INSERT *"
    )
    spark.sql(f"CREATE TABLE {name}.updated USING {kind} AS SELECT id, name, city FROM shop.people")
    spark.sql(f"UPDATE {name}.updated SET name = concat(name, city) WHERE id = 1")
    spark.sql(f"CREATE TABLE {name}.thinned USING {kind} AS SELECT id, name FROM shop.people")
    spark.sql(f"DELETE FROM {name}.thinned WHERE id = 1")


def finish(spark: SparkSession, last: str) -> None:
    """Stop once the end of the last job is told: a busy machine is slow to tell, and stopping does not wait for long."""
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty(60_000)
    told, until = Path(spark.conf.get("spark.openlineage.transport.location")), time.monotonic() + 120
    while time.monotonic() < until and not any(
        '"COMPLETE"' in line and last in line for line in told.read_text().splitlines()
    ):
        time.sleep(0.5)
    spark.stop()


def main(folder: str, kind: str) -> None:
    spark = SparkSession.builder.appName("ordinary").getOrCreate()
    files(spark, folder)
    tables(spark, folder)
    several(spark)
    hive(spark)
    database(spark, folder)
    streams(spark, folder)
    last = "kept"
    if kind in ("iceberg", "delta"):
        lake(spark, kind)
        last = "thinned"
    elif kind == "files" and FOUR:  # Iceberg's parser cannot read functions that are written in SQL
        functions(spark)
        last = "ordinary.shop.numbers"
    finish(spark, last)


if __name__ == "__main__":
    main(*sys.argv[1:])
