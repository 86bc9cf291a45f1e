"""An ordinary PySpark application: each way in which a table is written, in one table format.

`every.py FOLDER FORMAT NAMESPACE`.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

MERGE = (
    "MERGE INTO {n}.orders AS t USING {n}.news AS s ON t.id = s.id"
    " WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
)


HUDI_KEY = " TBLPROPERTIES (primaryKey = 'id')"


def tables(spark: SparkSession, namespace: str, kind: str) -> None:
    """Paimon updates tables with a primary key only, and Hudi knows rows by one."""
    key = {"paimon": " TBLPROPERTIES ('primary-key' = 'id')", "hudi": HUDI_KEY}.get(kind, "")
    spark.sql(f"CREATE DATABASE IF NOT EXISTS {namespace}")
    for table in ("orders", "news", "copied"):
        spark.sql(f"CREATE TABLE {namespace}.{table} (id bigint, who string, amount int) USING {kind}{key}")


def batch(spark: SparkSession, namespace: str, kind: str) -> None:
    """One statement of each kind."""
    key = HUDI_KEY if kind == "hudi" else ""
    run = [
        "INSERT INTO {n}.orders VALUES (1, 'ann', 10), (2, 'bob', 20)",
        "INSERT INTO {n}.news VALUES (2, 'bea', 30), (3, 'cid', 40)",
        "CREATE TABLE {n}.big USING {k}{p} AS SELECT id, upper(who) AS who FROM {n}.orders WHERE amount > 10",
        MERGE,
        "UPDATE {n}.orders SET amount = amount + 1 WHERE id = 2",
        "DELETE FROM {n}.orders WHERE id = 1",
        "INSERT OVERWRITE {n}.big SELECT o.id, concat(o.who, n.who) FROM {n}.orders AS o JOIN {n}.news AS n ON o.id = n.id",
    ]
    for statement in run:
        spark.sql(statement.format(n=namespace, k=kind, p=key))
    append(spark.table(f"{namespace}.big").selectExpr("id", "who"), namespace, kind)


def append(rows: DataFrame, namespace: str, kind: str) -> None:
    """Hudi's catalog refuses to append by saveAsTable."""
    if kind == "hudi":
        rows.write.insertInto(f"{namespace}.big")
    else:
        rows.write.format(kind).mode("append").saveAsTable(f"{namespace}.big")


def streams(spark: SparkSession, folder: str, namespace: str, kind: str) -> None:
    """A table into a table, and a table into what a function does with its rows."""

    def keep(rows: DataFrame, number: int) -> None:
        append(rows.selectExpr("id", "lower(who) AS who"), namespace, kind)

    for name in ("copy", "keep"):
        arriving = spark.readStream.table(f"{namespace}.news")
        writer = arriving.writeStream.queryName(name).trigger(availableNow=True)
        writer = writer.option("checkpointLocation", f"{folder}/checkpoints/{kind}_{name}")
        if name == "keep":
            query = writer.foreachBatch(keep).start()
        elif kind == "paimon":
            query = writer.format(kind).start(f"{folder}/paimon/every.db/copied")
        elif kind == "hudi":
            writer = writer.option("hoodie.table.name", "copied").option(
                "hoodie.datasource.write.recordkey.field", "id"
            )
            query = writer.format(kind).start(f"{folder}/spark/{namespace}.db/copied")
        else:
            query = writer.format(kind).toTable(f"{namespace}.copied")
        query.awaitTermination(240)


def finish(spark: SparkSession, last: str) -> None:
    """Stop once the end of the last job is told: a busy machine is slow to tell, and stopping does not wait for long."""
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty(60_000)
    told, until = Path(spark.conf.get("spark.openlineage.transport.location")), time.monotonic() + 120
    while time.monotonic() < until and not any(
        '"COMPLETE"' in line and last in line for line in told.read_text().splitlines()
    ):
        time.sleep(0.5)
    spark.stop()


def main(folder: str, kind: str, namespace: str) -> None:
    spark = SparkSession.builder.appName("every").getOrCreate()
    tables(spark, namespace, kind)
    batch(spark, namespace, kind)
    streams(spark, folder, namespace, kind)
    finish(spark, "every.keep")


if __name__ == "__main__":
    main(*sys.argv[1:])
