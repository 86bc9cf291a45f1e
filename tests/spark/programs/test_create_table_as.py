"""Atomic CREATE TABLE AS (FLIP-305): its table, its hook, and its lineage."""

from __future__ import annotations

import pytest

from fixtures.emitter.drivers import ProgramResult, SparkProgram, emitting
from fixtures.warm_jvm import WarmJvm

pytestmark = [pytest.mark.spark, pytest.mark.slow]

JOB = """
import json, os, signal, threading, time
from pathlib import Path
from pyspark.sql import SparkSession
from strandline_spark import create_table_as
from strandline_spark.consistency.ctas import NotAtomicError

class Hook:
    def __init__(self):
        self.calls = []
    def on_created(self, job_id):
        self.calls.append("created")
    def on_finished(self, job_id):
        self.calls.append("finished")
    def on_failed(self, job_id, exception):
        self.calls.append("failed: " + exception.splitlines()[0])
    def on_canceled(self, job_id):
        self.calls.append("canceled")

running, go = Path("running").absolute(), Path("go").absolute()

def wait(row):  # runs in Spark's Python worker, whose folder is that of the JVM
    running.touch()
    until = time.monotonic() + 100
    while not go.exists() and time.monotonic() < until:
        time.sleep(0.02)
    return row

def meanwhile(act):
    running.unlink(missing_ok=True)
    go.unlink(missing_ok=True)
    def when_running():
        while not running.exists():
            time.sleep(0.02)
        act()
    threading.Thread(target=when_running).start()

def made(table, query, **more):
    hook, raised = Hook(), ""
    try:
        create_table_as(spark, table, query, hook, **more)
    except BaseException as error:
        raised = type(error).__name__
    rows = spark.table(table).count() if spark.catalog.tableExists(table) else None
    return hook.calls, raised, rows

spark = SparkSession.builder.getOrCreate()
spark.udf.register("wait", wait, "bigint")
spark.sql("CREATE NAMESPACE lake.shop")
spark.range(0, 4, 1, 4).writeTo("lake.shop.rows").create()
seen, found = [], {}

def look_and_let_go():
    seen.append(spark.catalog.tableExists("lake.shop.whole"))
    go.touch()

meanwhile(look_and_let_go)
found["whole"] = made("lake.shop.whole", "SELECT wait(id) AS id FROM lake.shop.rows", properties={"owner": "shop"})
found["again"] = made("lake.shop.whole", "SELECT id FROM lake.shop.rows WHERE id = 1")
found["half"] = made("lake.shop.half", "SELECT IF(id = 3, raise_error('half-way'), id) AS id FROM lake.shop.rows")
meanwhile(lambda: os.kill(os.getpid(), signal.SIGINT))
found["interrupted"] = made("lake.shop.interrupted", "SELECT wait(id) AS id FROM lake.shop.rows")
meanwhile(spark.sparkContext.cancelAllJobs)
found["canceled"] = made("lake.shop.canceled", "SELECT wait(id) AS id FROM lake.shop.rows")
found["not atomic"] = made("spark_catalog.default.filled", "SELECT 1 AS id")
clock = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).load()
stream = clock.selectExpr("IF(value > 0, raise_error('too many'), value) AS value").writeStream
query = stream.queryName("streamed").option("checkpointLocation", "checkpoint").toTable("lake.shop.streamed")
try:
    query.awaitTermination(100)
except Exception as error:
    found["streamed"] = [[], type(error).__name__, spark.table("lake.shop.streamed").count()]
history = spark.sql("SELECT count(*) FROM lake.shop.whole.snapshots").first()[0]
running = list(spark.sparkContext.statusTracker().getActiveJobsIds())
print(json.dumps([found, seen, history, running]))
"""


@pytest.fixture(scope="module")
def ran(
    tmp_path_factory: pytest.TempPathFactory, warm_jvm: WarmJvm
) -> tuple[SparkProgram, ProgramResult]:
    """The job, run to its end."""
    folder = tmp_path_factory.mktemp("shop")
    catalog = {
        "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.lake.type": "hadoop",
        "spark.sql.catalog.lake.warehouse": str(folder / "lake"),
    }
    driver = SparkProgram(folder, JOB, emitting(folder) | catalog, jvm=warm_jvm)
    result = driver.run()
    assert result.code == 0, result.err[-3000:]
    return driver, result


def test_table_and_data_appear_atomically(ran: tuple[SparkProgram, ProgramResult]) -> None:
    found, seen_while_it_ran, snapshots, _ = ran[1].answer()

    assert found["whole"] == [["created", "finished"], "", 4]
    assert (seen_while_it_ran, snapshots) == ([False], 1)


def test_failed_ctas_leaves_no_table_and_calls_the_hook_once(
    ran: tuple[SparkProgram, ProgramResult],
) -> None:
    found = ran[1].answer()[0]

    (created, failed), raised, rows = found["half"]
    assert (created, raised, rows) == ("created", "SparkRuntimeException", None)
    assert failed.startswith("failed: SparkRuntimeException: [USER_RAISED_EXCEPTION] half-way")
    (created, failed), raised, rows = found["again"]
    assert (created, raised, rows) == ("created", "AnalysisException", 4)
    assert failed.startswith("failed: AnalysisException: [TABLE_OR_VIEW_ALREADY_EXISTS]")


def test_canceled_ctas_leaves_no_table_and_no_running_task(
    ran: tuple[SparkProgram, ProgramResult],
) -> None:
    """This includes Ctrl-C, although Py4J blocks the calling thread."""
    found, *_, running = ran[1].answer()

    assert found["interrupted"] == [["created", "canceled"], "KeyboardInterrupt", None]
    assert [found["canceled"][0], found["canceled"][2]] == [["created", "canceled"], None]
    assert running == []


def test_nonatomic_catalog_is_rejected_before_the_hook_is_called(
    ran: tuple[SparkProgram, ProgramResult],
) -> None:
    assert ran[1].answer()[0]["not atomic"] == [[], "NotAtomicError", None]


def test_the_collector_shows_no_table_that_was_not_made_but_a_failed_stream_s(
    ran: tuple[SparkProgram, ProgramResult], sqlite_url: str
) -> None:
    from strandline.store.catalog.filters import ALL
    from strandline.store.catalog.lists import datasets_page
    from strandline.store.sql.engine import make_engine
    from worlds.builders import live, rows, store

    engine = make_engine(sqlite_url)
    store(engine, ran[0].events())
    with engine.connect() as connection:
        listed = datasets_page(connection, ALL, 2**62, 100, None)["items"]
    written = rows(engine, 'SELECT DISTINCT "table", state FROM sink_job_lineage_history')
    ended = live(engine)
    engine.dispose()

    assert ran[1].answer()[0]["streamed"] == [[], "StreamingQueryException", 1]
    assert sorted(one["table"] for one in listed if one["catalog"] == "lake") == [
        "rows",
        "streamed",
        "whole",
    ]
    assert ended == {}
    assert sorted(map(tuple, written)) == [
        ("rows", "COMPLETE"),
        ("streamed", "COMPLETE"),  # toTable creates it by a statement of its own
        ("streamed", "FAIL"),
        ("whole", "COMPLETE"),
    ]
