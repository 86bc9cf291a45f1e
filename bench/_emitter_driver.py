"""The Spark driver of `bench.emitter_overhead`: contexts without an emitter, with ours and with the stock listener in turn.

One JVM for all of them, so that what differs is the emitter alone. Reads one JSON object (where events go, how many rounds,
queries, micro-batches), prints a JSON object a block: wall times in ms, CPU in ms, memory in MiB.
"""

import gc
import json
import os
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

STOCK = "io.openlineage.spark.agent.OpenLineageSparkListener"
QUERY = """
SELECT o.*, c.name, upper(c.city) AS city, sum(o.amount) OVER (PARTITION BY o.customer) AS total
  FROM orders o JOIN customers c ON o.customer = c.id WHERE o.amount > 1
"""
WARM_UP = 3


def context(variant: str, told: dict[str, Any], folder: Path) -> Any:
    """A new context of a variant: off, on or stock."""
    conf = {
        "spark.app.name": f"bench_{variant}",
        "spark.strandline.enabled": str(variant == "on").lower(),
        "spark.strandline.spool.dir": str(folder / "spool"),
        "spark.extraListeners": STOCK if variant == "stock" else "",
        "spark.openlineage.transport.type": "http",
        "spark.openlineage.transport.url": told["url"],
        "spark.openlineage.transport.timeoutInMillis": "5000",
    }
    builder = SparkSession.builder
    for key, value in conf.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark


def block(spark: Any, variant: str, kind: str, walls: Callable[[], list[float]]) -> None:
    """Measures one block and prints it."""
    before = cpu(spark)
    found = walls()
    used = cpu(spark) - before
    row = {"variant": variant, "kind": kind, "wall": found, "cpu": used / len(found), **memory(spark)}
    print(json.dumps(row), flush=True)


def queries(spark: Any, folder: Path, count: int) -> list[float]:
    """The wall times of the same query, again and again."""
    for name in ("orders", "customers"):
        spark.read.parquet(str(folder / name)).createOrReplaceTempView(name)
    found = []
    for _ in range(count + WARM_UP):
        begin = time.perf_counter()
        spark.sql(QUERY).write.mode("overwrite").parquet(str(folder / "out"))
        found.append((time.perf_counter() - begin) * 1000)
    return found[WARM_UP:]


def micro_batches(spark: Any, folder: Path, count: int) -> list[float]:
    """How long each micro-batch took, as Spark itself measures it."""
    stream = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 100).load()
    run = str(time.monotonic_ns())
    query = (
        stream.writeStream.format("parquet")
        .option("checkpointLocation", str(folder / "checkpoints" / run))
        .option("path", str(folder / "streams" / run))
        .trigger(processingTime="0 seconds")
        .start()
    )
    while query.lastProgress is None or query.lastProgress["batchId"] < count + WARM_UP:
        time.sleep(0.05)
    found = [float(p["durationMs"]["triggerExecution"]) for p in query.recentProgress if "addBatch" in p["durationMs"]]
    query.stop()
    return found[WARM_UP : WARM_UP + count]


def cpu(spark: Any) -> float:
    """CPU that this process and its JVM have used, in ms."""
    own = resource.getrusage(resource.RUSAGE_SELF)
    jvm = int(spark._jvm.java.lang.ProcessHandle.current().pid())
    ticks = Path(f"/proc/{jvm}/stat").read_text().rpartition(")")[2].split()[11:13]  # utime, stime
    return (own.ru_utime + own.ru_stime + sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")) * 1000


def memory(spark: Any) -> dict[str, float]:
    """Memory of this process, and what is reachable on the JVM's heap, in MiB."""
    gc.collect()
    spark._jvm.java.lang.System.gc()
    runtime = spark._jvm.java.lang.Runtime.getRuntime()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return {
        "python": pages * resource.getpagesize() / 2**20,
        "heap": (int(runtime.totalMemory()) - int(runtime.freeMemory())) / 2**20,
    }


def make_tables(folder: Path) -> None:
    """Two small tables of ten columns."""
    spark = SparkSession.builder.config("spark.strandline.enabled", "false").getOrCreate()
    more = ", ".join(f"id * {n} AS c{n}" for n in range(7))
    spark.sql(f"SELECT id, id % 50 AS customer, id AS amount, {more} FROM range(2000)").write.parquet(
        str(folder / "orders")
    )
    spark.sql("SELECT id, concat('n', id) AS name, concat('c', id % 7) AS city FROM range(50)").write.parquet(
        str(folder / "customers")
    )
    spark.stop()


def compare(told: dict[str, Any], folder: Path) -> None:
    """Off, on and stock in turn; who comes first changes from round to round."""
    make_tables(folder)
    variants = told["variants"]
    for number in range(told["rounds"] == 1, told["rounds"] + 1):
        for variant in variants[number % len(variants) :] + variants[: number % len(variants)]:
            spark = context(variant, told, folder)
            if number == 0:  # the JVM compiles what all of them use
                queries(spark, folder, WARM_UP)
            else:
                block(spark, variant, "query", lambda: queries(spark, folder, told["queries"]))  # noqa: B023
                block(spark, variant, "micro-batch", lambda: micro_batches(spark, folder, told["batches"]))  # noqa: B023
            spark.stop()


def endure(told: dict[str, Any], folder: Path) -> None:
    """Many small queries with the emitter on; memory at a tenth of them and at the end."""
    spark = context("on", told, folder)
    tenth = told["queries"] // 10
    frame = spark.range(1)
    for count in (tenth, told["queries"] - tenth):
        block(spark, "on", "dead backend", lambda: [_write(frame, folder) for _ in range(count)])  # noqa: B023
    spark.stop()


def _write(frame: Any, folder: Path) -> float:
    begin = time.perf_counter()
    frame.write.mode("overwrite").parquet(str(folder / "tiny"))
    return (time.perf_counter() - begin) * 1000


if __name__ == "__main__":
    asked = json.loads(sys.argv[1])
    {"compare": compare, "endure": endure}[asked["what"]](asked, Path(asked["folder"]))
