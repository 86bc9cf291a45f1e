"""A plain pipeline on real Spark: its tables at a barrier match the base table."""

from __future__ import annotations

from pathlib import Path

import pytest

from deploy import jars
from fixtures.emitter.drivers import SparkProgram, emitting
from fixtures.spark_lake.truth import of_delta, of_iceberg
from fixtures.versions_server.server import running
from strandline.core.versions.facts import Table
from strandline.core.versions.strong_weak import strong
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
