"""Programs that read and write in ways of their own.

Options, increments, metadata tables, branches to be published, overlaps.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from pyspark.sql.functions import col

from recordings.programs.batch import empty, sql, tables
from recordings.programs.delta import delta_tables
from recordings.programs.past import snapshots
from recordings.programs.streams import SCHEMA, SECONDS, files, note


def reading_options(spark: Any, folder: Path) -> None:
    """Loads from a table by option.

    From an old snapshot, of what came between two snapshots, from its list of snapshots, and
    from a view of its changes.
    """
    tables(spark, "orders")
    empty(spark, "old", "increment", "changes")
    sql(
        spark,
        "CREATE TABLE lake.bank.audit (snapshot BIGINT, operation STRING) USING iceberg",
        "INSERT INTO lake.bank.orders VALUES (4, 40, 'us')",
        "INSERT INTO lake.bank.orders VALUES (5, 50, 'eu')",
    )
    first, second, _ = snapshots(spark, "orders")
    spark.read.option("versionAsOf", first).table("lake.bank.orders").writeTo(
        "lake.bank.old"
    ).append()
    between = (
        spark.read.format("iceberg")
        .option("start-snapshot-id", first)
        .option("end-snapshot-id", second)
    )
    between.load("lake.bank.orders").writeTo("lake.bank.increment").append()
    sql(
        spark,
        "INSERT INTO lake.bank.audit SELECT snapshot_id, operation FROM lake.bank.orders.snapshots",
        f"""CALL lake.system.create_changelog_view(table => 'bank.orders', changelog_view => 'moved',
            options => map('start-snapshot-id', '{first}', 'end-snapshot-id', '{second}'))""",
        "INSERT INTO lake.bank.changes SELECT id, amount, region FROM moved",
    )


def write_audit_publish(spark: Any, folder: Path) -> None:
    """A load goes to a branch, which the table then becomes.

    Another is staged by an id, and published.
    """
    tables(spark, "orders", "refunds")
    empty(spark, "report", "copied", "copied_again")
    sql(
        spark,
        "ALTER TABLE lake.bank.report SET TBLPROPERTIES ('write.wap.enabled' = 'true')",
        "INSERT INTO lake.bank.report SELECT * FROM lake.bank.orders",
        "ALTER TABLE lake.bank.report CREATE BRANCH audit",
    )
    spark.conf.set("spark.wap.branch", "audit")
    spark.sql("INSERT INTO lake.bank.report SELECT * FROM lake.bank.refunds WHERE region = 'eu'")
    spark.conf.unset("spark.wap.branch")
    sql(
        spark,
        "INSERT INTO lake.bank.copied SELECT * FROM lake.bank.report",
        "CALL lake.system.fast_forward('bank.report', 'main', 'audit')",
    )
    spark.conf.set("spark.wap.id", "late")
    spark.sql(
        "INSERT INTO lake.bank.report SELECT id + 10, amount, region FROM lake.bank.orders WHERE id = 1"
    )
    spark.conf.unset("spark.wap.id")
    sql(
        spark,
        "INSERT INTO lake.bank.copied_again SELECT * FROM lake.bank.report",
        "CALL lake.system.publish_changes('bank.report', 'late')",
    )


def overlapping(spark: Any, folder: Path) -> None:
    """Two INSERTs into one table at once: the one that began first, from orders, commits last."""
    tables(spark, "orders", "refunds")
    empty(spark, "moves")

    def wait(amount: int) -> int:
        time.sleep(4)
        return amount

    spark.udf.register("slowly", wait, "BIGINT")
    slow = "INSERT INTO lake.bank.moves SELECT id, slowly(amount), region FROM lake.bank.orders"
    with ThreadPoolExecutor(1) as pool:
        late = pool.submit(spark.sql, slow)
        time.sleep(3)
        spark.sql("INSERT INTO lake.bank.moves SELECT * FROM lake.bank.refunds")
        late.result()


def data_frames(spark: Any, folder: Path) -> None:
    """Writes by DataFrame: created or replaced, overwritten by a condition, inserted by position, appended by name."""
    tables(spark, "orders", "refunds", "rates")
    orders = spark.table("lake.bank.orders").writeTo("lake.bank.daily").using("iceberg")
    orders.partitionedBy(col("region")).createOrReplace()
    spark.table("lake.bank.refunds").where("region = 'eu'").writeTo("lake.bank.daily").overwrite(
        col("region") == "eu"
    )
    spark.table("lake.bank.rates").write.insertInto("lake.bank.daily")
    spark.table("lake.bank.daily").write.saveAsTable("lake.bank.weekly", format="iceberg")
    spark.table("lake.bank.orders").write.mode("append").saveAsTable("lake.bank.weekly")
    joined = (
        spark.table("lake.bank.rates")
        .alias("r")
        .join(spark.table("lake.bank.refunds").alias("b"), "id")
    )
    joined.selectExpr("id", "b.amount", "r.region").write.mode("overwrite").saveAsTable(
        "lake.bank.weekly"
    )


def reading_its_target(spark: Any, folder: Path) -> None:
    """Statements that read what they change.

    A MERGE from a join with its target, an overwrite of a table by itself and another,
    an UPDATE and a DELETE that ask other tables.
    """
    tables(spark, "orders", "refunds", "rates", "closed")
    empty(spark, "balances")
    sql(
        spark,
        "INSERT INTO lake.bank.balances SELECT * FROM lake.bank.orders",
        """MERGE INTO lake.bank.balances b
           USING (SELECT r.id, b.amount - r.amount AS amount FROM lake.bank.balances b JOIN lake.bank.refunds r ON b.id = r.id) s
           ON b.id = s.id WHEN MATCHED THEN UPDATE SET b.amount = s.amount""",
        """INSERT OVERWRITE lake.bank.balances
           SELECT b.id, b.amount * r.amount, b.region FROM lake.bank.balances b JOIN lake.bank.rates r ON b.id = r.id""",
        "UPDATE lake.bank.balances SET amount = amount + 1 WHERE id IN (SELECT id FROM lake.bank.rates WHERE id = 2)",
        "DELETE FROM lake.bank.balances b WHERE EXISTS (SELECT 1 FROM lake.bank.closed c WHERE c.id = b.id AND c.id = 3)",
    )


def joined_streams(spark: Any, folder: Path) -> None:
    """Two streams are joined into a table, and their union goes to another by foreachBatch."""
    tables(spark, "orders", "customers")
    empty(spark, "matched", "together")
    payments = files(folder, "payments", (1, 5, "eu"), (2, 6, "us"))
    paid = spark.readStream.schema(SCHEMA).json(str(payments))
    orders = spark.readStream.table("lake.bank.orders")
    matched = orders.alias("o").join(paid.alias("p"), "id").selectExpr("id", "p.amount", "o.region")
    writing = matched.writeStream.queryName("match_payments").trigger(availableNow=True)
    query = writing.option("checkpointLocation", f"{folder}/checkpoints/match").toTable(
        "lake.bank.matched"
    )
    query.awaitTermination(SECONDS)
    note(query, folder)

    def write(batch: Any, number: int) -> None:
        batch.writeTo("lake.bank.together").append()

    both = spark.readStream.table("lake.bank.orders").union(
        spark.readStream.table("lake.bank.customers")
    )
    writing = both.writeStream.queryName("unite").trigger(availableNow=True).foreachBatch(write)
    query = writing.option("checkpointLocation", f"{folder}/checkpoints/unite").start()
    query.awaitTermination(SECONDS)
    note(query, folder)


def delta_feed(spark: Any, folder: Path) -> None:
    """Delta: a load from a table's change feed, an OPTIMIZE, a MERGE from a join with its target."""
    delta_tables(spark, "orders", "refunds")
    sql(
        spark,
        """CREATE TABLE shop.fed (id BIGINT, amount BIGINT, region STRING) USING delta
           TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')""",
        "INSERT INTO shop.fed SELECT * FROM shop.orders",
        "UPDATE shop.fed SET amount = amount + 1 WHERE id = 1",
        "INSERT INTO shop.fed SELECT * FROM shop.refunds",
        "CREATE TABLE shop.changes USING delta AS SELECT id, amount, region FROM table_changes('shop.fed', 2, 2)",
        "OPTIMIZE shop.fed",
        "CREATE TABLE shop.whole USING delta AS SELECT * FROM shop.orders",
        """MERGE INTO shop.whole w
           USING (SELECT w.id, max(w.amount + r.amount) AS amount FROM shop.whole w JOIN shop.refunds r ON w.id = r.id GROUP BY 1) s
           ON w.id = s.id WHEN MATCHED THEN UPDATE SET w.amount = s.amount""",
    )


def merge_on_read(spark: Any, folder: Path) -> None:
    """A table whose UPDATE, DELETE and MERGE write deletions beside its files.

    Of position, of a merge with inserts too.
    """
    tables(spark, "orders", "refunds", "closed")
    empty(spark, "balances")
    modes = ", ".join(
        f"'write.{name}.mode' = 'merge-on-read'" for name in ("delete", "update", "merge")
    )
    sql(
        spark,
        f"ALTER TABLE lake.bank.balances SET TBLPROPERTIES ({modes})",
        "INSERT INTO lake.bank.balances SELECT * FROM lake.bank.orders",
        "UPDATE lake.bank.balances SET amount = amount + 1 WHERE id = 1",
        "DELETE FROM lake.bank.balances WHERE id IN (SELECT id FROM lake.bank.closed WHERE id = 3)",
        """MERGE INTO lake.bank.balances b USING (SELECT id + 1 AS id, amount, region FROM lake.bank.refunds) r ON b.id = r.id
           WHEN MATCHED THEN UPDATE SET b.amount = b.amount - r.amount WHEN NOT MATCHED THEN INSERT *""",
        "MERGE INTO lake.bank.balances b USING lake.bank.closed c ON b.id = c.id WHEN MATCHED THEN DELETE",
    )
