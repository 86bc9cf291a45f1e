"""Batch programs over Delta tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from recordings.programs.batch import sql


def delta_tables(spark: Any, *names: str) -> None:
    """Create Delta tables of (id, amount, region) that hold three rows each."""
    spark.sql("CREATE DATABASE IF NOT EXISTS shop")
    for name in names:
        spark.sql(f"CREATE TABLE shop.{name} (id BIGINT, amount BIGINT, region STRING) USING delta")
        spark.sql(f"INSERT INTO shop.{name} VALUES (1, 10, 'eu'), (2, 20, 'us'), (3, 30, 'eu')")


def delta_batch(spark: Any, folder: Path) -> None:
    """CTAS, MERGE, UPDATE, an overwrite of a part, a read of an old version, a join of a table with its own past."""
    delta_tables(spark, "orders", "refunds", "rates")
    sql(
        spark,
        "CREATE TABLE shop.daily USING delta AS SELECT * FROM shop.orders",
        """MERGE INTO shop.daily d USING shop.refunds r ON d.id = r.id
           WHEN MATCHED THEN UPDATE SET d.amount = d.amount - r.amount WHEN NOT MATCHED THEN INSERT *""",
        "UPDATE shop.daily SET amount = amount + 1 WHERE id = 1",
        "INSERT INTO shop.orders VALUES (4, 40, 'us')",
        "CREATE TABLE shop.opening USING delta AS SELECT * FROM shop.orders VERSION AS OF 1",
    )
    spark.table("shop.rates").where("region = 'eu'").write.format("delta").mode("overwrite").option(
        "replaceWhere", "region = 'eu'"
    ).saveAsTable("shop.daily")


def delta_changes(spark: Any, folder: Path) -> None:
    """A table is renamed, another dropped and made anew from another source, one restored, one cloned."""
    delta_tables(spark, "orders", "refunds")
    sql(
        spark,
        "CREATE TABLE shop.report USING delta AS SELECT * FROM shop.orders",
        "DROP TABLE shop.report",
        "CREATE TABLE shop.report USING delta AS SELECT id, amount FROM shop.refunds",
        "CREATE TABLE shop.draft USING delta AS SELECT * FROM shop.orders",
        "ALTER TABLE shop.draft RENAME TO shop.final",
        "INSERT INTO shop.final SELECT * FROM shop.refunds",
        "RESTORE TABLE shop.final TO VERSION AS OF 0",
        "CREATE TABLE shop.copy SHALLOW CLONE shop.orders",
    )


def delta_again(spark: Any, folder: Path) -> None:
    """A table gets three versions, is read, is dropped and made anew from another source.

    Then it is read again; what exists is created if it does not exist; a DataFrame overwrites a
    table twice, each time from another source.
    """
    delta_tables(spark, "orders", "refunds")
    sql(
        spark,
        "CREATE TABLE shop.report USING delta AS SELECT * FROM shop.orders",
        "INSERT INTO shop.report SELECT * FROM shop.orders",
        "INSERT INTO shop.report SELECT * FROM shop.orders",
        "CREATE TABLE shop.before USING delta AS SELECT * FROM shop.report",
        "DROP TABLE IF EXISTS shop.report",
        "CREATE TABLE shop.report USING delta AS SELECT id, amount FROM shop.refunds",
        "CREATE TABLE shop.after USING delta AS SELECT * FROM shop.report",
        "CREATE TABLE IF NOT EXISTS shop.report (id BIGINT, amount BIGINT) USING delta",
        "CREATE TABLE IF NOT EXISTS shop.before USING delta AS SELECT * FROM shop.refunds",
    )
    for source in ("orders", "refunds"):
        spark.table(f"shop.{source}").write.format("delta").mode("overwrite").saveAsTable(
            "shop.current"
        )
    spark.sql("INSERT INTO shop.report SELECT id, amount FROM shop.refunds")
