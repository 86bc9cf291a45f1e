"""Streaming programs over Iceberg, Delta and files."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException

from recordings.programs.batch import empty, tables

SCHEMA = "id BIGINT, amount BIGINT, region STRING"
SECONDS = 120


def until_committed(query: Any, batches: int) -> None:
    """Wait until a query has committed so many micro-batches."""
    commits, until = commits_of(query), time.monotonic() + SECONDS
    while (
        len(list(commits.glob("[0-9]*"))) < batches and time.monotonic() < until and query.isActive
    ):
        time.sleep(0.2)


def drain(query: Any, batches: int, folder: Path) -> None:
    """Wait until a query has committed so many micro-batches and rests, then stop it.

    Note what it was.
    """
    until_committed(query, batches)
    while query.isActive and query.status["isTriggerActive"]:
        time.sleep(0.05)
    query.stop()
    note(query, folder)


def commits_of(query: Any) -> Path:
    """The commit log of a query, in its checkpoint."""
    checkpoint = query._jsq.streamingQuery().resolvedCheckpointRoot()
    return Path(checkpoint.removeprefix("file:")) / "commits"


def note(query: Any, folder: Path) -> None:
    """Write down what a query was called and what it did: this goes into the truth."""
    numbers = sorted(int(file.name) for file in commits_of(query).glob("[0-9]*"))
    about = {
        "name": query.name,
        "id": query.id,
        "newest_batch": max(numbers, default=None),
        "batches": len(numbers),
    }
    with (folder / "queries.jsonl").open("a") as file:
        file.write(json.dumps(about) + "\n")


def files(folder: Path, name: str, *rows: tuple[int, int, str]) -> Path:
    """Write one JSON file with these rows into a folder."""
    place = folder / "landing" / name
    place.mkdir(parents=True, exist_ok=True)
    lines = [
        json.dumps({"id": id_, "amount": amount, "region": region}) for id_, amount, region in rows
    ]
    (place / f"part-{len(list(place.iterdir()))}.json").write_text("\n".join(lines) + "\n")
    return place


def foreach_batch(spark: Any, folder: Path) -> None:
    """Each micro-batch of a stream of orders is joined with a table of customers and written to two tables."""
    tables(spark, "orders", "customers")
    empty(spark, "enriched", "totals")

    def write(batch: Any, number: int) -> None:
        customers = spark.table("lake.bank.customers")
        joined = (
            batch.alias("o")
            .join(customers.alias("c"), "id")
            .selectExpr("id", "o.amount", "c.region")
        )
        joined.writeTo("lake.bank.enriched").append()
        batch.groupBy("region").sum("amount").selectExpr(
            "0L AS id", "`sum(amount)` AS amount", "region"
        ).writeTo("lake.bank.totals").append()

    stream = spark.readStream.table("lake.bank.orders")
    query = stream.writeStream.queryName("enrich_orders").foreachBatch(write).start()
    time.sleep(6)
    spark.sql("INSERT INTO lake.bank.orders VALUES (4, 40, 'us')")
    drain(query, 2, folder)


def two_queries(spark: Any, folder: Path) -> None:
    """Two queries in one application.

    Files into an Iceberg table, and an Iceberg table into another by foreachBatch.
    """
    tables(spark, "orders")
    empty(spark, "landed", "copied")
    place = files(folder, "payments", (1, 5, "eu"), (2, 6, "us"))
    landing = spark.readStream.schema(SCHEMA).json(str(place))
    landing = landing.writeStream.queryName("land_payments").option(
        "checkpointLocation", f"{folder}/checkpoints/land"
    )
    first = landing.toTable("lake.bank.landed")

    def copy(batch: Any, number: int) -> None:
        batch.writeTo("lake.bank.copied").append()

    copying = spark.readStream.table("lake.bank.orders").writeStream.foreachBatch(copy)
    second = copying.option("checkpointLocation", f"{folder}/checkpoints/copy").start()
    time.sleep(6)
    files(folder, "payments", (3, 7, "eu"))
    spark.sql("INSERT INTO lake.bank.orders VALUES (4, 40, 'us')")
    drain(first, 2, folder)
    drain(second, 2, folder)


def available_now(spark: Any, folder: Path) -> None:
    """A stream of all that there is, by one file a micro-batch; it ends by itself.

    It merges into a table.
    """
    tables(spark, "orders")
    empty(spark, "latest")
    place = files(folder, "changes", (1, 11, "eu"), (5, 50, "us"))
    files(folder, "changes", (2, 22, "us"))

    def merge(batch: Any, number: int) -> None:
        batch.createOrReplaceTempView("changes")
        batch.sparkSession.sql(
            """MERGE INTO lake.bank.latest l USING changes c ON l.id = c.id
               WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"""
        )

    stream = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(str(place))
    writing = (
        stream.writeStream.queryName("merge_changes").trigger(availableNow=True).foreachBatch(merge)
    )
    query = writing.option("checkpointLocation", f"{folder}/checkpoints/merge").start()
    query.awaitTermination(SECONDS)
    note(query, folder)


def failing_stream(spark: Any, folder: Path) -> None:
    """A stream whose second micro-batch fails.

    The application catches the exception and ends well.
    """
    tables(spark, "orders")
    empty(spark, "checked")

    def check(batch: Any, number: int) -> None:
        if number == 1:
            raise ValueError("a negative amount")
        batch.writeTo("lake.bank.checked").append()

    query = (
        spark.readStream.table("lake.bank.orders")
        .writeStream.queryName("check_orders")
        .foreachBatch(check)
        .start()
    )
    time.sleep(6)
    spark.sql("INSERT INTO lake.bank.orders VALUES (4, -40, 'us')")
    try:
        query.awaitTermination(SECONDS)
    except PySparkException as error:
        print(str(error)[:200])
    note(query, folder)


def killed_stream(spark: Any, folder: Path) -> None:
    """A stream whose driver is killed in its second micro-batch, after the first of two writes of that batch."""
    import os

    tables(spark, "orders")
    empty(spark, "mirrored", "audited")
    spark.sql("INSERT INTO lake.bank.orders VALUES (4, 40, 'us')")

    def write(batch: Any, number: int) -> None:
        batch.writeTo("lake.bank.mirrored").append()
        if number == 1:
            time.sleep(2)
            os.kill(spark._jvm.java.lang.ProcessHandle.current().pid(), 9)
            os._exit(9)
        batch.writeTo("lake.bank.audited").append()

    mirror(spark, folder, write).awaitTermination(SECONDS)


def restarted_stream(spark: Any, folder: Path) -> None:
    """The same stream after the kill, with the same checkpoint."""

    def write(batch: Any, number: int) -> None:
        batch.writeTo("lake.bank.mirrored").append()
        batch.writeTo("lake.bank.audited").append()

    drain(mirror(spark, folder, write), 2, folder)


def mirror(spark: Any, folder: Path, write: Any) -> Any:
    """Start the stream `mirror_orders` with one file of the table in each micro-batch."""
    stream = spark.readStream.option("streaming-max-files-per-micro-batch", 1).table(
        "lake.bank.orders"
    )
    writing = stream.writeStream.queryName("mirror_orders").foreachBatch(write)
    return writing.option("checkpointLocation", f"{folder}/checkpoints/mirror").start()


def delta_stream(spark: Any, folder: Path) -> None:
    """Delta: a table, a stream from it into another, a MERGE and an INSERT .. SELECT beside it."""
    spark.sql("CREATE DATABASE IF NOT EXISTS shop")
    for name in ("events", "clean", "corrections"):
        spark.sql(f"CREATE TABLE shop.{name} ({SCHEMA}) USING delta")
    spark.sql("INSERT INTO shop.events VALUES (1, 10, 'eu'), (2, 20, 'us')")
    spark.sql("INSERT INTO shop.corrections VALUES (2, 21, 'us')")
    stream = spark.readStream.table("shop.events").where("amount > 0").writeStream.format("delta")
    stream = stream.queryName("clean_events").option(
        "checkpointLocation", f"{folder}/checkpoints/clean"
    )
    query = stream.toTable("shop.clean")
    until_committed(query, 1)
    spark.sql("INSERT INTO shop.events VALUES (3, 30, 'eu')")
    drain(query, 2, folder)
    spark.sql(
        "CREATE TABLE shop.totals USING delta AS SELECT region, sum(amount) AS amount FROM shop.clean GROUP BY region"
    )
    spark.sql(
        """MERGE INTO shop.clean t USING shop.corrections c ON t.id = c.id
           WHEN MATCHED THEN UPDATE SET t.amount = c.amount"""
    )


def fan_out(spark: Any, folder: Path) -> None:
    """A foreachBatch that joins a static table, appends to one sink and merges into another through a view; a stream of its sink."""
    tables(spark, "orders", "rates")
    empty(spark, "priced", "by_region", "large")

    def write(batch: Any, number: int) -> None:
        rates = spark.table("lake.bank.rates").selectExpr("id", "amount AS rate")
        priced = (
            batch.join(rates, "id").selectExpr("id", "amount * rate AS amount", "region").cache()
        )
        priced.writeTo("lake.bank.priced").append()
        priced.createOrReplaceTempView("priced_now")
        batch.sparkSession.sql(
            """MERGE INTO lake.bank.by_region t
               USING (SELECT max(id) AS id, sum(amount) AS amount, region FROM priced_now GROUP BY region) s
               ON t.region = s.region
               WHEN MATCHED THEN UPDATE SET t.amount = t.amount + s.amount WHEN NOT MATCHED THEN INSERT *"""
        )
        priced.unpersist()

    orders = (
        spark.readStream.table("lake.bank.orders")
        .writeStream.queryName("price_orders")
        .foreachBatch(write)
    )
    first = orders.option("checkpointLocation", f"{folder}/checkpoints/price").start()
    until_committed(first, 1)
    spark.sql("INSERT INTO lake.bank.orders VALUES (1, 40, 'us')")
    drain(first, 2, folder)

    def keep(batch: Any, number: int) -> None:
        batch.where("amount > 100").writeTo("lake.bank.large").append()

    priced = (
        spark.readStream.table("lake.bank.priced")
        .writeStream.queryName("keep_large")
        .foreachBatch(keep)
    )
    second = (
        priced.trigger(availableNow=True)
        .option("checkpointLocation", f"{folder}/checkpoints/keep")
        .start()
    )
    second.awaitTermination(SECONDS)
    note(second, folder)
