"""An ordinary PySpark application on tables that somebody else writes at the same time.

Three threads insert into one table, while what they read grows; one statement of each kind changes another table; what
is there is counted; two streaming queries copy what arrives. Every insert also reads a file of its own, whose name tells
which insert it was. `race.py FOLDER FORMAT NAMESPACE ROUNDS`; the tables are there already.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

TRIES = 40
TRIGGER = {
    "iceberg": "300 milliseconds"
}  # a micro-batch of Delta takes seconds, and a trigger that waits for nothing all there is
CHANGES = (
    "INSERT INTO {t} VALUES (1, 'a'), (2, 'b')",
    """MERGE INTO {t} AS t USING (SELECT * FROM VALUES (1L, 'm'), (7L, 'n') AS s(k, who)) AS s ON t.k = s.k
        WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *""",
    "UPDATE {t} SET who = concat(who, '!') WHERE k = 2",
    "DELETE FROM {t} WHERE k = 7",
    "INSERT OVERWRITE {t} SELECT k, upper(who) FROM {t} WHERE k < 100",
    "DELETE FROM {t} WHERE k < 1000",
)


def patiently(spark: SparkSession, statement: str) -> None:
    """Run a statement again when another writer came first."""
    for left in reversed(range(TRIES)):
        try:
            spark.sql(statement)
        except Exception:
            if not left:
                raise
            time.sleep(0.2)
        else:
            return


def register(spark: SparkSession, folder: str, namespace: str) -> None:
    """Tables that are there already, in the session's own catalog."""
    spark.sql(f"CREATE DATABASE {namespace}")
    for table in ("source", "sink", "target", "copied", "merged"):
        spark.sql(f"CREATE TABLE {namespace}.{table} USING delta LOCATION '{folder}/spark/race.db/{table}'")


def insert(spark: SparkSession, folder: str, namespace: str, thread: int, rounds: int) -> None:
    """Each thread inserts another number of rows than the others do."""
    for number in range(rounds):
        tag = f"insert_{thread}_{number}"
        patiently(
            spark,
            f"INSERT INTO {namespace}.sink SELECT n, tag FROM (SELECT count(v) AS n, max(tag) AS tag FROM"
            f" {namespace}.source CROSS JOIN parquet.`{folder}/marks/{tag}`) CROSS JOIN range({thread + 1})",
        )


def change(spark: SparkSession, namespace: str) -> None:
    for statement in CHANGES:
        patiently(spark, statement.format(t=f"{namespace}.target"))


def count(spark: SparkSession, namespace: str, rounds: int) -> list[int]:
    """Counts what is there; the filter keeps Iceberg from answering out of its metadata."""
    counted = []
    for _ in range(rounds):
        rows = spark.sql(f"SELECT count(v) AS n FROM {namespace}.source WHERE v >= 0").collect()
        counted.append(int(rows[0]["n"]))
        time.sleep(0.3)
    return counted


def copy(spark: SparkSession, folder: str, namespace: str, kind: str) -> StreamingQuery:
    """Stream what arrives in the source into a table."""
    rows = spark.readStream.format(kind).table(f"{namespace}.source").selectExpr("v", "v AS tag")
    writer = rows.writeStream.trigger(processingTime=TRIGGER.get(kind, "5 seconds")).queryName("copy")
    writer = writer.option("checkpointLocation", f"{folder}/checkpoints/copy").format(kind)
    if kind == "paimon":
        return writer.start(f"{folder}/paimon/race.db/copied")
    return writer.toTable(f"{namespace}.copied")


def upsert(spark: SparkSession, folder: str, namespace: str, kind: str) -> StreamingQuery:
    """Stream what arrives in the source into another table, batch by batch."""

    def merge(rows: DataFrame, batch: int) -> None:
        rows.selectExpr("v").createOrReplaceTempView("arrived")
        patiently(
            rows.sparkSession,
            f"MERGE INTO {namespace}.merged AS t USING (SELECT max(v) AS v, {batch} AS batch FROM arrived) AS s"
            " ON t.batch = s.batch WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
        )

    rows = spark.readStream.format(kind).table(f"{namespace}.source")
    writer = rows.writeStream.trigger(processingTime=TRIGGER.get(kind, "5 seconds")).queryName("upsert")
    return writer.option("checkpointLocation", f"{folder}/checkpoints/upsert").foreachBatch(merge).start()


def end(query: StreamingQuery, rounds: int) -> None:
    """Stop a query between two of its micro-batches, after a few of them."""
    until = time.monotonic() + 120
    while len(query.recentProgress) < rounds and query.exception() is None and time.monotonic() < until:
        time.sleep(0.2)
    while query.status["isTriggerActive"] and time.monotonic() < until:
        time.sleep(0.02)
    query.stop()
    if query.exception() is not None:
        raise RuntimeError(str(query.exception()))


def main(folder: str, kind: str, namespace: str, told: str) -> None:
    rounds = int(told)
    spark = SparkSession.builder.appName("race").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    if kind == "delta":
        register(spark, folder, namespace)
    queries = [copy(spark, folder, namespace, kind), upsert(spark, folder, namespace, kind)]
    sessions = [spark, spark, spark.newSession()]
    threads = [
        threading.Thread(target=insert, args=(session, folder, namespace, number, rounds))
        for number, session in enumerate(sessions)
    ]
    for thread in threads:
        thread.start()
    change(spark, namespace)
    (Path(folder) / "counted.json").write_text(json.dumps(count(spark, namespace, rounds)))
    patiently(spark, f"CREATE TABLE {namespace}.made USING {kind} AS SELECT count(v) AS n FROM {namespace}.source")
    for thread in threads:
        thread.join()
    for query in queries:
        end(query, rounds)
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty(60_000)  # a busy machine is slow to tell of the end
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
