"""The Spark driver of `bench.emitter_overhead`: no emitter, ours and the stock listener in turn.

One SparkContext and one JVM for all of them: listeners come to the bus for a few queries and leave
it, so that what differs is the emitter alone, and the machine has no time to become another in
between. Reads one JSON object (where events go, how many rounds, queries, micro-batches), prints a
JSON object a block: wall times in ms, CPU in ms, Py4J commands, memory in MiB.
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

from py4j.java_gateway import GatewayClient
from pyspark.sql import SparkSession

from strandline_spark import activation

STOCK = "io.openlineage.spark.agent.OpenLineageSparkListener"
QUERY = """
SELECT o.*, c.name, upper(c.city) AS city, sum(o.amount) OVER (PARTITION BY o.customer) AS total
  FROM orders o JOIN customers c ON o.customer = c.id WHERE o.amount > 1
"""
WIDE = 300  # columns
SETTLE_SECONDS = 0.3  # of an emitter that was just told of the last query


def context(told: dict[str, Any], folder: Path, variant: str = "on") -> Any:
    """A new context of a variant: off, on or stock."""
    conf = {
        "spark.app.name": f"bench_{variant}",
        "spark.strandline.enabled": str(variant == "on").lower(),
        "spark.extraListeners": STOCK if variant == "stock" else "",
        "spark.strandline.spool.dir": str(folder / "spool"),
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


class Commands:
    """The number of Py4J commands of this process, the program's own and the emitter's."""

    def __init__(self) -> None:
        self.sent = 0
        send = GatewayClient.send_command

        def counted(client: GatewayClient, *arguments: Any, **named: Any) -> Any:
            self.sent += 1
            return send(client, *arguments, **named)

        GatewayClient.send_command = counted


class Variants:
    """The listeners on the bus. Starts with ours alone."""

    def __init__(self, spark: Any) -> None:
        self._scala = spark.sparkContext._jsc.sc()
        (emitter,) = activation._emitters.values()
        self._ours = emitter._queue
        self._stock = spark._jvm.io.openlineage.spark.agent.OpenLineageSparkListener(
            self._scala.conf()
        )
        self._now = "on"

    def use(self, variant: str) -> None:
        """Off, on or stock from now on."""
        settle(self._scala)
        if self._now == "on":
            self._ours.leave(self._scala)
        elif self._now == "stock":
            self._scala.removeSparkListener(self._stock)
        if variant == "on":
            self._ours.listen(self._scala)
        elif variant == "stock":
            self._scala.addSparkListener(self._stock)
        self._now = variant


def settle(scala_context: Any) -> None:
    """Wait until the listeners have been told of the last query, and done what they do then."""
    scala_context.listenerBus().waitUntilEmpty(10_000)
    time.sleep(SETTLE_SECONDS)


def block(
    spark: Any, variant: str, kind: str, walls: Callable[[], list[float]], skip: int = 0
) -> None:
    """Measures one block and prints it.

    The first few walls do not count, the CPU is that of all.
    """
    before, sent = cpu(spark), COMMANDS.sent
    found = walls()
    settle(spark.sparkContext._jsc.sc())
    used, sent = cpu(spark) - before, COMMANDS.sent - sent
    row = {
        "variant": variant,
        "kind": kind,
        "wall": found[skip:],
        "cpu": used / len(found),
        "commands": sent / len(found),
        **memory(spark),
    }
    print(json.dumps(row), flush=True)


def queries(spark: Any, folder: Path, count: int) -> list[float]:
    """The wall times of the same query, again and again."""
    found = []
    for _ in range(count):
        begin = time.perf_counter()
        spark.sql(QUERY).write.mode("overwrite").parquet(str(folder / "out"))
        found.append((time.perf_counter() - begin) * 1000)
    return found


def small_queries(spark: Any, folder: Path, count: int) -> list[float]:
    """The wall times of the smallest write there is.

    Less time in which the machine can become another.
    """
    frame = spark.range(1)
    return [_write(frame, folder) for _ in range(count)]


def wide_queries(spark: Any, folder: Path, count: int) -> list[float]:
    """The wall times of a write of 300 columns, each added by `withColumn`."""
    frame = spark.range(1)
    for number in range(WIDE):
        frame = frame.withColumn(f"c{number}", frame.id + number)
    return [_write(frame, folder) for _ in range(count)]


def micro_batches(spark: Any, folder: Path, count: int) -> list[float]:
    """Return the duration of each micro-batch, as Spark itself measures it."""
    stream = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 100).load()
    run = str(time.monotonic_ns())
    query = (
        stream.writeStream.format("parquet")
        .option("checkpointLocation", str(folder / "checkpoints" / run))
        .option("path", str(folder / "streams" / run))
        .trigger(processingTime="0 seconds")
        .start()
    )
    while query.lastProgress is None or query.lastProgress["batchId"] < count:
        time.sleep(0.05)
    found = [
        float(p["durationMs"]["triggerExecution"])
        for p in query.recentProgress
        if "addBatch" in p["durationMs"]
    ]
    query.stop()
    return found


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
    spark.sql(
        f"SELECT id, id % 50 AS customer, id AS amount, {more} FROM range(2000)"
    ).write.parquet(str(folder / "orders"))
    spark.sql(
        "SELECT id, concat('n', id) AS name, concat('c', id % 7) AS city FROM range(50)"
    ).write.parquet(str(folder / "customers"))
    spark.stop()


def make_views(spark: Any, folder: Path) -> None:
    """The tables under the names that the query gives them."""
    for name in ("orders", "customers"):
        spark.read.parquet(str(folder / name)).createOrReplaceTempView(name)


def compare(told: dict[str, Any], folder: Path) -> None:
    """Off, on and stock in turn, a few queries each, then a few micro-batches each.

    Who comes first changes.
    """
    make_tables(folder)
    spark = context(told, folder)
    make_views(spark, folder)
    variants, names = Variants(spark), told["variants"]
    for name in names:
        variants.use(name)
        queries(spark, folder, told["warm"])
    for kind, measured, skip in KINDS:
        rounds, count = told[kind]
        for number in range(rounds):
            for name in names[number % len(names) :] + names[: number % len(names)]:
                variants.use(name)
                block(spark, name, kind, lambda: measured(spark, folder, count + skip), skip)  # noqa: B023
    spark.stop()


KINDS = (
    ("query", queries, 1),
    ("small-query", small_queries, 1),
    ("wide-query", wide_queries, 1),
    ("micro-batch", micro_batches, 3),
)
COMMANDS = Commands()


def remember(told: dict[str, Any], folder: Path) -> None:
    """Record what memory there is after some queries with each variant.

    Each variant has a context of its own, in turn.
    """
    make_tables(folder)
    for _ in range(told["rounds"]):
        for name in told["variants"]:
            spark = context(told, folder, name)
            make_views(spark, folder)
            block(spark, name, "memory", lambda: queries(spark, folder, told["queries"]))  # noqa: B023
            spark.stop()


def _write(frame: Any, folder: Path) -> float:
    begin = time.perf_counter()
    frame.write.mode("overwrite").parquet(str(folder / "tiny"))
    return (time.perf_counter() - begin) * 1000


if __name__ == "__main__":
    asked = json.loads(sys.argv[1])
    {"compare": compare, "remember": remember}[asked["what"]](asked, Path(asked["folder"]))
