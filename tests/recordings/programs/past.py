"""Batch programs over Iceberg tables that have a past.

Old snapshots read, branches, tables rolled back, dropped, changed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException

from recordings.programs.batch import empty, sql, tables


def snapshots(spark: Any, table: str) -> list[int]:
    """The ids of a table's snapshots, the oldest first."""
    rows = spark.sql(
        f"SELECT snapshot_id FROM lake.bank.{table}.snapshots ORDER BY committed_at"
    ).collect()
    return [row[0] for row in rows]


def time_travel(spark: Any, folder: Path) -> None:
    """Loads from a table as it was: by snapshot, by tag, from a branch of it.

    Once beside the table as it is.
    """
    tables(spark, "orders")
    empty(spark, "first_day", "tagged", "branched", "compared")
    first = snapshots(spark, "orders")[0]
    sql(
        spark,
        f"ALTER TABLE lake.bank.orders CREATE TAG opening AS OF VERSION {first}",
        "ALTER TABLE lake.bank.orders CREATE BRANCH audit",
        "INSERT INTO lake.bank.orders VALUES (4, 40, 'us')",
        "INSERT INTO lake.bank.orders.branch_audit VALUES (5, 50, 'eu')",
        f"INSERT INTO lake.bank.first_day SELECT * FROM lake.bank.orders VERSION AS OF {first}",
        "INSERT INTO lake.bank.tagged SELECT * FROM lake.bank.orders VERSION AS OF 'opening'",
        "INSERT INTO lake.bank.branched SELECT * FROM lake.bank.orders VERSION AS OF 'audit'",
        f"""INSERT INTO lake.bank.compared SELECT n.id, n.amount - o.amount, n.region FROM lake.bank.orders n
            JOIN lake.bank.orders VERSION AS OF {first} o ON n.id = o.id""",
    )


def recreated(spark: Any, folder: Path) -> None:
    """A table is loaded, dropped, created anew under the same name with other columns, and loaded from another source."""
    tables(spark, "orders", "refunds")
    empty(spark, "report")
    sql(
        spark,
        "INSERT INTO lake.bank.report SELECT * FROM lake.bank.orders",
        "DROP TABLE lake.bank.report PURGE",
        "CREATE TABLE lake.bank.report (id BIGINT, refunded BIGINT) USING iceberg",
        "INSERT INTO lake.bank.report SELECT id, amount FROM lake.bank.refunds",
    )


def evolved(spark: Any, folder: Path) -> None:
    """A column is renamed, one added and one dropped between two loads of a table."""
    tables(spark, "orders", "rates")
    empty(spark, "margins")
    sql(
        spark,
        "INSERT INTO lake.bank.margins SELECT * FROM lake.bank.orders",
        "ALTER TABLE lake.bank.margins RENAME COLUMN amount TO gross",
        "ALTER TABLE lake.bank.margins ADD COLUMN net BIGINT",
        "ALTER TABLE lake.bank.margins DROP COLUMN region",
        """INSERT INTO lake.bank.margins
           SELECT o.id, o.amount, o.amount - r.amount FROM lake.bank.orders o JOIN lake.bank.rates r ON o.id = r.id""",
    )


def rolled_back(spark: Any, folder: Path) -> None:
    """A load that was wrong is rolled back and done again from another source.

    Then the table is compacted; its reader ran in between.
    """
    tables(spark, "orders", "refunds")
    empty(spark, "totals", "published")
    sql(spark, "INSERT INTO lake.bank.totals SELECT * FROM lake.bank.orders")
    good = snapshots(spark, "totals")[0]
    sql(
        spark,
        "INSERT INTO lake.bank.totals SELECT id, -amount, region FROM lake.bank.refunds",
        f"CALL lake.system.rollback_to_snapshot('bank.totals', {good})",
        "INSERT INTO lake.bank.published SELECT * FROM lake.bank.totals",
        "INSERT INTO lake.bank.totals SELECT id + 10, amount, region FROM lake.bank.orders",
        "CALL lake.system.rewrite_data_files(table => 'bank.totals', options => map('rewrite-all', 'true'))",
    )


def left_rolled_back(spark: Any, folder: Path) -> None:
    """A wrong load is rolled back, and nothing is written after it."""
    tables(spark, "orders", "refunds")
    empty(spark, "totals")
    sql(spark, "INSERT INTO lake.bank.totals SELECT * FROM lake.bank.orders")
    good = snapshots(spark, "totals")[0]
    sql(
        spark,
        "INSERT INTO lake.bank.totals SELECT id, -amount, region FROM lake.bank.refunds",
        f"CALL lake.system.rollback_to_snapshot('bank.totals', {good})",
    )


def partly(spark: Any, folder: Path) -> None:
    """The first attempt of a nightly load: one table is written, then it fails."""
    tables(spark, "orders", "customers")
    empty(spark, "loaded", "enriched")
    spark.sql("INSERT INTO lake.bank.loaded SELECT * FROM lake.bank.orders")
    spark.sql(
        """INSERT INTO lake.bank.enriched SELECT l.id, l.amount + raise_error('no rate'), c.region
           FROM lake.bank.loaded l JOIN lake.bank.customers c ON l.id = c.id"""
    )


def again(spark: Any, folder: Path) -> None:
    """The second attempt: it overwrites what the first has written, and completes."""
    sql(
        spark,
        "INSERT OVERWRITE lake.bank.loaded SELECT * FROM lake.bank.orders",
        """INSERT INTO lake.bank.enriched SELECT l.id, l.amount, c.region
           FROM lake.bank.loaded l JOIN lake.bank.customers c ON l.id = c.id""",
    )


def without_rows(spark: Any, folder: Path) -> None:
    """Statements that change nothing.

    A MERGE, an UPDATE and a DELETE without a match, an INSERT of no row; and EXPLAIN.
    """
    tables(spark, "orders", "refunds")
    empty(spark, "quiet")
    sql(
        spark,
        "INSERT INTO lake.bank.quiet SELECT * FROM lake.bank.orders",
        """MERGE INTO lake.bank.quiet q USING (SELECT * FROM lake.bank.refunds WHERE id > 100) r ON q.id = r.id
           WHEN MATCHED THEN UPDATE SET q.amount = r.amount""",
        "UPDATE lake.bank.quiet SET amount = 0 WHERE id > 100",
        "DELETE FROM lake.bank.quiet WHERE id > 100",
        "INSERT INTO lake.bank.quiet SELECT * FROM lake.bank.refunds WHERE id > 100",
        "EXPLAIN INSERT INTO lake.bank.quiet SELECT * FROM lake.bank.refunds",
    )
    try:
        spark.sql("INSERT INTO lake.bank.quiet SELECT id, nothing, region FROM lake.bank.refunds")
    except PySparkException as error:
        print(str(error)[:200])
