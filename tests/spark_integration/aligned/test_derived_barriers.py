"""An ordinary pipeline that nobody adapted, on real Spark and Iceberg: its tables at a barrier are what the root comes to."""

from __future__ import annotations

from pathlib import Path

import pytest

from emitter_world.drivers import Driver, emitting
from strandline.core.versions.facts import Table
from strandline.core.versions.strong_weak import strong
from strandline.store.sql.engine import make_engine
from versions_server.server import running

pytestmark = pytest.mark.spark

PIPELINE = """
import json, time
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.p")
for name in ("raw", "copy", "both", "each", "report"):
    spark.sql(f"CREATE TABLE IF NOT EXISTS lake.p.{name} (v bigint) USING iceberg")


def read(name):
    return spark.readStream.table(f"lake.p.{name}")


def write(frame, name, trigger):
    found = frame.writeStream.queryName(name).option("checkpointLocation", f"checkpoints/{name}").trigger(**trigger)
    return found


def ingest(until):
    ticks = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 2).option("numPartitions", 1).load()
    query = write(ticks.selectExpr("value AS v"), "raw", {"processingTime": "600 milliseconds"}).toTable("lake.p.raw")
    while query.lastProgress is None or query.lastProgress["batchId"] < until:
        time.sleep(0.05)
    end(query)


def end(query):
    while query.status["isTriggerActive"]:
        time.sleep(0.01)
    query.stop()


def append(frame, number):
    frame.writeTo("lake.p.each").append()


def streams(trigger):
    return [
        write(read("raw").selectExpr("2 * v AS v"), "copy", trigger).toTable("lake.p.copy"),
        write(read("raw").unionAll(read("copy")), "both", trigger).toTable("lake.p.both"),
        write(read("raw"), "each", trigger).foreachBatch(append).start(),
    ]


def report():
    spark.sql("INSERT OVERWRITE lake.p.report SELECT sum(v) FROM (SELECT v FROM lake.p.raw UNION ALL SELECT v FROM lake.p.copy)")


running = streams({"processingTime": "1 second"})
ingest(4)
for query in running:
    end(query)
for phase in (1, 2):
    for query in streams({"availableNow": True}):
        query.awaitTermination()
    again = write(read("raw").unionAll(read("copy")), "both", {"availableNow": True}).toTable("lake.p.both")
    again.awaitTermination()
    report()
    if phase == 1:
        ingest(7)
found = {}
for name in ("raw", "copy", "both", "each", "report"):
    for (snapshot,) in spark.sql(f"SELECT snapshot_id FROM lake.p.{name}.snapshots").collect():
        row = spark.sql(f"SELECT count(*), coalesce(sum(v), 0) FROM lake.p.{name} VERSION AS OF {snapshot}").first()
        found[str(snapshot)] = [int(row[0]), int(row[1])]
print(json.dumps(found))
"""


def expected(table: str, barrier: int) -> list[int]:
    """Rows and their sum, from the root's rows at a barrier: two more at each."""
    rows = 2 * barrier
    total = rows * (rows - 1) // 2
    return {
        "raw": [rows, total],
        "copy": [rows, 2 * total],
        "both": [2 * rows, 3 * total],
        "each": [rows, total],
        "report": [1, 3 * total],
    }[table]


def test_plain_streams_foreach_batch_and_batch_runs_stand_at_the_barriers_of_their_root(
    tmp_path: Path, iceberg_jars: str, sqlite_url: str
) -> None:
    driver = Driver(tmp_path, PIPELINE, conf(tmp_path, iceberg_jars))
    ran = driver.run()
    assert ran.code == 0, ran.err[-2000:]
    contents: dict[str, list[int]] = ran.answer()
    with running(make_engine(sqlite_url)) as server:
        server.post(*driver.events())
        with server.follower.model() as model:
            done = {short(table): history for table, history in model.done.items()}
            answer = strong(model, list(model.done))

    wrong = [
        (table, barrier, contents[one.snapshot], expected(table, barrier))
        for table, history in done.items()
        for barrier, one in history.of.items()
        if contents[one.snapshot] != expected(table, barrier)
    ]
    assert wrong == []
    assert done.keys() == {"raw", "copy", "both", "each", "report"}
    assert {history.last for history in done.values()} == {one.barrier for one in answer}
    assert all(len(history.order) > 1 for history in done.values())


def short(table: Table) -> str:
    """The last part of a table's location."""
    return table[1].rpartition("/")[2]


def conf(folder: Path, jars: str) -> dict[str, str]:
    """An Iceberg catalog, and the emitter in a domain, as an administrator sets both."""
    return {
        **emitting(folder),
        "spark.strandline.domain": "plain",
        "spark.jars": jars,
        "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.lake.type": "hadoop",
        "spark.sql.catalog.lake.warehouse": str(folder / "lake"),
        "spark.sql.catalog.lake.cache-enabled": "false",
    }
