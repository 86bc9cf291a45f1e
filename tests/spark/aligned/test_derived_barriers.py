"""A plain pipeline on real Spark: its tables at a barrier match the base table."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from deploy import jars
from fixtures.emitter.drivers import SparkProgram, emitting
from fixtures.spark_lake.truth import of_delta, of_iceberg
from fixtures.versions_server.server import running
from strandline.core.versions.facts import Table
from strandline.core.versions.strong_weak import strong
from strandline.errors import RefusedError
from strandline.store.sql.engine import make_engine

pytestmark = pytest.mark.spark

PIPELINE = """
import sys, time
from pyspark.sql import SparkSession

KIND, PLACE = sys.argv[1:]
PACE = ("600 milliseconds", "1 second") if KIND == "iceberg" else ("3 seconds", "4 seconds")  # a commit of Delta takes a second
spark = SparkSession.builder.getOrCreate()
spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {PLACE}")
for name in ("raw", "copy", "both", "each", "report"):
    spark.sql(f"CREATE TABLE IF NOT EXISTS {PLACE}.{name} (v bigint) USING {KIND}")


def read(name):
    return spark.readStream.table(f"{PLACE}.{name}")


def write(frame, name, trigger):
    found = frame.writeStream.format(KIND).queryName(name).option("checkpointLocation", f"checkpoints/{name}").trigger(**trigger)
    return found


def ingest(until):
    ticks = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 2).option("numPartitions", 1).load()
    query = write(ticks.selectExpr("value AS v"), "raw", {"processingTime": PACE[0]}).toTable(f"{PLACE}.raw")
    while query.lastProgress is None or query.lastProgress["batchId"] < until:
        time.sleep(0.05)
    patience = time.monotonic() + 20  # one that takes longer than its trigger is never at rest
    while query.status["isTriggerActive"] and time.monotonic() < patience:
        time.sleep(0.01)
    query.stop()


def end(query):
    query.processAllAvailable()
    query.stop()


def append(frame, number):
    found = frame.where("v >= 4")  # none of the first micro-batches
    if found.isEmpty():
        return
    found.write.format(KIND).mode("append").saveAsTable(f"{PLACE}.each")


def streams(trigger):
    return [
        write(read("raw").selectExpr("2 * v AS v"), "copy", trigger).toTable(f"{PLACE}.copy"),
        write(read("raw").unionAll(read("copy")), "both", trigger).toTable(f"{PLACE}.both"),
        write(read("raw"), "each", trigger).foreachBatch(append).start(),
    ]


def report():
    both = f"SELECT v FROM {PLACE}.raw UNION ALL SELECT v FROM {PLACE}.copy"
    spark.sql(f"INSERT OVERWRITE {PLACE}.report SELECT sum(v) FROM ({both})")


running = streams({"processingTime": PACE[1]})
ingest(3)
for query in running:
    end(query)
for phase in (1, 2):
    for query in streams({"availableNow": True}):
        query.awaitTermination()
    again = write(read("raw").unionAll(read("copy")), "both", {"availableNow": True}).toTable(f"{PLACE}.both")
    again.awaitTermination()
    report()
    if phase == 1:
        ingest(5)
"""


def expected(table: str, barrier: int) -> list[int]:
    """Rows and their sum, from the root's rows at a barrier: two more at each."""
    rows = 2 * barrier
    total = rows * (rows - 1) // 2
    return {
        "raw": [rows, total],
        "copy": [rows, 2 * total],
        "both": [2 * rows, 3 * total],
        "each": [max(rows - 4, 0), max(total - 6, 0)],
        "report": [1, 3 * total],
    }[table]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "place"), [("iceberg", "lake.p"), ("delta", "spark_catalog.p")])
def test_plain_streams_and_batch_runs_carry_base_table_barriers(
    tmp_path: Path, kind: str, place: str, sqlite_url: str
) -> None:
    driver = SparkProgram(tmp_path, PIPELINE, conf(tmp_path, kind), arguments=(kind, place))
    ran = driver.run()
    assert ran.code == 0, ran.err[-2000:]
    table_at = {"iceberg": of_iceberg, "delta": of_delta}[kind](tmp_path, "p")
    with running(make_engine(sqlite_url)) as server:
        server.post(*driver.events())
        with server.follower.model() as model:
            done = {short(table): history for table, history in model.done.items()}
            answer = strong(model, list(model.done))

    wrong = []
    for table, history in done.items():
        for barrier, one in history.of.items():
            values = [row["v"] for row in table_at.rows(table, one.snapshot)]
            if [len(values), sum(values)] != expected(table, barrier):
                wrong.append((table, barrier, values))
    assert wrong == []
    assert done.keys() == {"raw", "copy", "both", "each", "report"}
    assert {history.last for history in done.values()} == {one.barrier for one in answer}
    assert all(len(history.order) > 1 for history in done.values())


FOUND = """
import os, sys, time
from pyspark.sql import SparkSession

KIND, PLACE, STEP = sys.argv[1:]
spark = SparkSession.builder.getOrCreate()
COPY = f"{PLACE}.copy"


def copy(checkpoint):
    rows = spark.readStream.table(f"{PLACE}.raw")
    stream = rows.writeStream.format(KIND).queryName("copy").trigger(availableNow=True)
    stream.option("checkpointLocation", f"checkpoints/{checkpoint}").toTable(COPY).awaitTermination()


if STEP == "fill":
    spark.sql(f"CREATE NAMESPACE {PLACE}")
    spark.sql(f"CREATE TABLE {PLACE}.raw (v bigint) USING {KIND}")
    spark.sql(f"CREATE TABLE {COPY} USING {KIND} AS SELECT 100L AS v")
else:
    if KIND == "delta":  # a session's own catalog holds its tables for its lifetime only
        spark.sql(f"CREATE NAMESPACE {PLACE}")
        for name in ("raw", "copy"):
            folder = os.path.abspath(f"spark/p.db/{name}")
            spark.sql(f"CREATE TABLE {PLACE}.{name} USING delta LOCATION '{folder}'")
    ticks = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 2).load().selectExpr("value AS v")
    ingest = ticks.writeStream.format(KIND).queryName("raw").option("checkpointLocation", "checkpoints/raw")
    query = ingest.trigger(processingTime="5 seconds").toTable(f"{PLACE}.raw")
    while query.lastProgress is None or query.lastProgress["batchId"] < 1 or query.status["isTriggerActive"]:
        time.sleep(0.01)
    query.stop()
    copy("copy")
    time.sleep(0.1)
    print(time.time())
    time.sleep(0.1)
    spark.sql(f"TRUNCATE TABLE {COPY}")
    copy("anew")
"""


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "place"), [("iceberg", "lake.p"), ("delta", "spark_catalog.p")])
def test_rows_that_a_stream_found_in_its_table_are_in_no_strong_answer(
    tmp_path: Path, kind: str, place: str, sqlite_url: str
) -> None:
    """A plain job of which nothing is reported filled it; emptied, with a new checkpoint, it answers."""
    settings = conf(tmp_path, kind)
    unreported = {"OPENLINEAGE_DISABLED": "true"}
    filled = SparkProgram(
        tmp_path, FOUND, settings, environ=unreported, arguments=(kind, place, "fill")
    ).run()
    assert filled.code == 0, filled.err[-2000:]
    driver = SparkProgram(tmp_path, FOUND, settings, arguments=(kind, place, "stream"))
    ran = driver.run()
    assert ran.code == 0, ran.err[-2000:]
    emptied = datetime.fromtimestamp(ran.answer(), UTC)
    events = driver.events()
    before = [one for one in events if datetime.fromisoformat(one["eventTime"]) < emptied]

    with running(make_engine(sqlite_url)) as server:
        server.post(*before)
        with server.follower.model() as model:
            tables = sorted(table for table in model.done if short(table) in ("raw", "copy"))
            with pytest.raises(RefusedError) as refused:
                strong(model, tables)
        server.post(*events[len(before) :])
        with server.follower.model() as model:
            answer = {short(one.table): one.snapshot for one in strong(model, tables)}

    assert len(tables) == 2
    assert "empty it with TRUNCATE TABLE and restart its stream" in str(refused.value)
    table_at = {"iceberg": of_iceberg, "delta": of_delta}[kind](tmp_path, "p")
    rows = {name: sorted(row["v"] for row in table_at.rows(name, answer[name])) for name in answer}
    assert rows["copy"] == rows["raw"]
    assert len(rows["raw"]) >= 4


def short(table: Table) -> str:
    """The last part of a table's location."""
    return table[1].rpartition("/")[2]


def conf(folder: Path, kind: str) -> dict[str, str]:
    """A catalog of this format, and the emitter in a group, as an administrator sets both."""
    from fixtures.spark_lake import settings

    own = settings(folder, [kind])
    return {
        **emitting(folder),
        "spark.strandline.group": "plain",
        "spark.jars": jars.comma_list([f"{kind}-4.1"]),
        **own,
    }
