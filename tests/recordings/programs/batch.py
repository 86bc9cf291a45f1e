"""Batch programs over Iceberg: what an analyst or a nightly load does in SQL."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException


def sql(spark: Any, *statements: str) -> None:
    """Run statements one after the other."""
    for statement in statements:
        spark.sql(statement)


def tables(spark: Any, *names: str) -> None:
    """Create tables of (id, amount, region) that hold three rows each.

    The statements are part of the program.
    """
    spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.bank")
    for name in names:
        spark.sql(
            f"CREATE TABLE IF NOT EXISTS lake.bank.{name} (id BIGINT, amount BIGINT, region STRING) USING iceberg"
        )
        spark.sql(
            f"INSERT INTO lake.bank.{name} VALUES (1, 10, 'eu'), (2, 20, 'us'), (3, 30, 'eu')"
        )


def empty(spark: Any, *names: str) -> None:
    """Create tables of (id, amount, region) without rows."""
    for name in names:
        spark.sql(
            f"CREATE TABLE lake.bank.{name} (id BIGINT, amount BIGINT, region STRING) USING iceberg"
        )


def insert_select(spark: Any, folder: Path) -> None:
    """A join, a union and an overwrite, and a source that moves on between two loads."""
    tables(spark, "orders", "customers", "refunds")
    empty(spark, "joined", "moves")
    join = "SELECT o.id, o.amount, c.region FROM lake.bank.orders o JOIN lake.bank.customers c ON o.id = c.id"
    sql(
        spark,
        f"INSERT INTO lake.bank.joined {join}",
        "INSERT INTO lake.bank.orders VALUES (4, 40, 'us')",
        f"INSERT OVERWRITE lake.bank.joined {join}",
        """INSERT INTO lake.bank.moves
           SELECT * FROM lake.bank.orders UNION ALL SELECT id, -amount, region FROM lake.bank.refunds""",
    )


def merge_after_ctas(spark: Any, folder: Path) -> None:
    """A daily table made by CREATE TABLE AS SELECT, then corrected by MERGE."""
    tables(spark, "orders", "corrections")
    sql(
        spark,
        """CREATE TABLE lake.bank.daily USING iceberg AS
           SELECT region, sum(amount) AS amount FROM lake.bank.orders GROUP BY region""",
        """MERGE INTO lake.bank.daily d
           USING (SELECT region, sum(amount) AS amount FROM lake.bank.corrections GROUP BY region) c
           ON d.region = c.region
           WHEN MATCHED THEN UPDATE SET d.amount = d.amount + c.amount
           WHEN NOT MATCHED THEN INSERT (region, amount) VALUES (c.region, c.amount)""",
    )


def update_delete(spark: Any, folder: Path) -> None:
    """An INSERT, an UPDATE and a DELETE that asks another table."""
    tables(spark, "orders", "blocked")
    empty(spark, "balances")
    sql(
        spark,
        "INSERT INTO lake.bank.balances SELECT * FROM lake.bank.orders",
        "UPDATE lake.bank.balances SET amount = amount + 1 WHERE id = 1",
        "DELETE FROM lake.bank.balances WHERE id IN (SELECT id FROM lake.bank.blocked WHERE region = 'us')",
    )


def two_inserts(spark: Any, folder: Path) -> None:
    """Two INSERTs into one table, each from a source of its own."""
    tables(spark, "orders_eu", "orders_us")
    empty(spark, "all_orders")
    sql(
        spark,
        "INSERT INTO lake.bank.all_orders SELECT * FROM lake.bank.orders_eu",
        "INSERT INTO lake.bank.all_orders SELECT * FROM lake.bank.orders_us",
    )


def load_eu(spark: Any, folder: Path) -> None:
    """The first day's load."""
    tables(spark, "orders_eu", "orders_us")
    empty(spark, "all_orders")
    spark.sql("INSERT INTO lake.bank.all_orders SELECT * FROM lake.bank.orders_eu")


def load_us(spark: Any, folder: Path) -> None:
    """The second day's load, by an application of the same name."""
    spark.sql("INSERT INTO lake.bank.all_orders SELECT * FROM lake.bank.orders_us")


def failing(spark: Any, folder: Path) -> None:
    """One good statement, two that fail while they run, one good one again.

    The application goes on.
    """
    tables(spark, "orders", "customers")
    empty(spark, "good", "bad", "later")
    spark.sql("INSERT INTO lake.bank.good SELECT * FROM lake.bank.orders")
    for table in ("bad", "good"):
        try:
            spark.sql(
                f"INSERT INTO lake.bank.{table} SELECT id, raise_error('no rate'), region FROM lake.bank.customers"
            )
        except PySparkException as error:
            print(str(error)[:200])
    spark.sql("INSERT INTO lake.bank.later SELECT * FROM lake.bank.customers")


def failing_at_the_end(spark: Any, folder: Path) -> None:
    """One good statement, then an exception that ends the application."""
    empty(spark, "before")
    spark.sql("INSERT INTO lake.bank.before SELECT * FROM lake.bank.orders")
    spark.sql(
        "INSERT INTO lake.bank.bad SELECT id, raise_error('no such rate'), region FROM lake.bank.customers"
    )


def nested_ctas(spark: Any, folder: Path) -> None:
    """A CREATE TABLE AS over a temporary view over a join, then one over its result, and a REPLACE TABLE AS."""
    tables(spark, "orders", "customers")
    sql(
        spark,
        """CREATE TEMPORARY VIEW with_customers AS
           SELECT o.id, o.amount, c.region FROM lake.bank.orders o JOIN lake.bank.customers c ON o.id = c.id""",
        "CREATE TABLE lake.bank.wide USING iceberg AS SELECT * FROM with_customers",
        """CREATE TABLE lake.bank.totals USING iceberg AS
           SELECT region, sum(amount) AS amount FROM lake.bank.wide GROUP BY region""",
        "CREATE OR REPLACE TABLE lake.bank.totals USING iceberg AS SELECT region, amount FROM lake.bank.wide",
    )


def partial_columns(spark: Any, folder: Path) -> None:
    """Sources that only decide which rows are written, or give a constant.

    None of their columns is in the output.
    """
    tables(spark, "orders", "active", "rates", "regions")
    empty(spark, "kept", "joined_only", "counted", "converted")
    sql(
        spark,
        """INSERT INTO lake.bank.kept SELECT * FROM lake.bank.orders o
           WHERE EXISTS (SELECT 1 FROM lake.bank.active a WHERE a.id = o.id)""",
        """INSERT INTO lake.bank.joined_only SELECT o.* FROM lake.bank.orders o
           CROSS JOIN (SELECT 1 FROM lake.bank.regions LIMIT 1) r""",
        """INSERT INTO lake.bank.counted SELECT count(*), 0, 'all' FROM lake.bank.orders""",
        """INSERT INTO lake.bank.converted SELECT id, amount, region FROM lake.bank.orders
           WHERE amount > (SELECT min(amount) FROM lake.bank.rates)""",
    )


def correct_ledger(spark: Any, folder: Path) -> None:
    """A load, a MERGE from a view over a view, a DELETE that asks another table, a self-INSERT.

    Then a MERGE that fails.
    """
    tables(spark, "orders", "refunds", "closed")
    empty(spark, "ledger")
    sql(
        spark,
        "CREATE TEMPORARY VIEW eu_refunds AS SELECT id, amount FROM lake.bank.refunds WHERE region = 'eu'",
        "CREATE TEMPORARY VIEW newest_refunds AS SELECT id, max(amount) AS amount FROM eu_refunds GROUP BY id",
        "INSERT INTO lake.bank.ledger SELECT * FROM lake.bank.orders",
        """MERGE INTO lake.bank.ledger l USING newest_refunds r ON l.id = r.id
           WHEN MATCHED THEN UPDATE SET l.amount = l.amount - r.amount""",
        "DELETE FROM lake.bank.ledger WHERE id IN (SELECT id FROM lake.bank.closed WHERE region = 'us')",
        "INSERT INTO lake.bank.ledger SELECT id + 100, amount, region FROM lake.bank.ledger",
        """MERGE INTO lake.bank.ledger l USING (SELECT id, raise_error('no rate') AS amount FROM lake.bank.closed) c
           ON l.id = c.id WHEN MATCHED THEN UPDATE SET l.amount = c.amount""",
    )


def publish_ledger(spark: Any, folder: Path) -> None:
    """Publish the next step of the same application by another one of that name.

    A cached join, written twice, once to files.
    """
    ledger = (
        spark.table("lake.bank.ledger")
        .alias("l")
        .join(spark.table("lake.bank.orders").alias("o"), "id")
    )
    joined = ledger.selectExpr("id", "l.amount", "o.region").cache()
    empty(spark, "published")
    joined.writeTo("lake.bank.published").append()
    joined.groupBy("region").sum("amount").toDF("region", "amount").write.parquet(
        str(folder / "files" / "regions")
    )
    joined.unpersist()
    spark.sql(
        "CREATE TABLE lake.bank.summary USING iceberg AS WITH p AS (SELECT * FROM lake.bank.published) SELECT * FROM p"
    )
