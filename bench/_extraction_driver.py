"""The Spark driver of `bench.emitter_extraction`.

Reads plans as the emitter's thread does, and prints what it took.

The argument is a JSON object (rounds, statements for the memory, folder); each line of the answer
is one: a statement's name with wall times and CPU in ms, or the memory before and after in MiB.
"""

import gc
import json
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from deploy import jars
from strandline_spark.extraction.reader import PlanReader
from strandline_spark.jvm.client import Jvm
from strandline_spark.jvm.event_queue import acknowledge_quickly

COLUMNS, FILES = 1000, 2000
FIVE_JOINS = """
INSERT INTO lake.b.report
WITH recent AS (SELECT * FROM lake.b.t0 WHERE day > 7)
SELECT a.id, concat(a.name, b.name), sum(c.amount) OVER (PARTITION BY a.day ORDER BY d.amount), coalesce(e.day, f.day)
  FROM recent AS a JOIN lake.b.t1 AS b ON a.id = b.id JOIN lake.b.t2 AS c ON b.id = c.id
  JOIN lake.b.t3 AS d ON c.id = d.id LEFT JOIN lake.b.t4 AS e ON d.id = e.id JOIN lake.b.t5 AS f ON f.id = e.id
"""


def session(folder: Path, quick: bool) -> Any:
    """A session over an Iceberg catalog of a folder."""
    conf = {
        "spark.jars": jars.comma_list(["iceberg-4.1"]),
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": "-XX:+UseSerialGC"
        + (" -XX:TieredStopAtLevel=1" if quick else ""),
        "spark.ui.enabled": "false",
        "spark.sql.warehouse.dir": str(folder / "spark"),
        "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.lake.type": "hadoop",
        "spark.sql.catalog.lake.warehouse": str(folder / "lake"),
    }
    builder = SparkSession.builder.master("local[2]")
    for key, value in conf.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark


def tables(spark: Any, folder: Path) -> dict[str, str]:
    """Make the tables; give each statement by its name."""
    row = "id bigint, name string, amount decimal(10,2), day int"
    for number in range(6):
        spark.sql(f"CREATE TABLE lake.b.t{number} ({row}) USING iceberg")
    spark.sql(
        "CREATE TABLE lake.b.report (id bigint, name string, total decimal(20,2), day int) USING iceberg"
    )
    wide = ", ".join(f"c{number} int" for number in range(COLUMNS))
    for name in ("wide", "copy"):
        spark.sql(f"CREATE TABLE lake.b.{name} ({wide}) USING iceberg")
    sums = ", ".join(f"c{number} + {number}" for number in range(COLUMNS))
    listing(folder / "many")
    many = spark.read.schema("id bigint").parquet(str(folder / "many"))
    many.createOrReplaceTempView("many")
    return {
        "insert-select": "INSERT INTO lake.b.t1 SELECT id, upper(name), amount * 2, day FROM lake.b.t0 WHERE day > 3",
        "5-joins": FIVE_JOINS,
        "1000-columns": f"INSERT INTO lake.b.copy SELECT {sums} FROM lake.b.wide",
        "2000-files": "INSERT INTO lake.b.t1 SELECT id, 'x', 1, 1 FROM many",
    }


def listing(folder: Path) -> None:
    """As many small files."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder.mkdir()
    pq.write_table(pa.table({"id": [1]}), folder / "0.parquet")
    content = (folder / "0.parquet").read_bytes()
    for number in range(1, FILES):
        (folder / f"{number}.parquet").write_bytes(content)


def analysed(spark: Any, sql: str) -> Any:
    """A statement that is analysed and not run."""
    state = spark._jsparkSession.sessionState()
    mode = spark._jvm.org.apache.spark.sql.execution.CommandExecutionMode.SKIP()
    execution = state.executePlan(state.sqlParser().parsePlan(sql), mode)
    execution.analyzed()
    return execution


def measure(spark: Any, reader: PlanReader, name: str, sql: str, rounds: int, warm_up: int) -> None:
    """Read a statement again and again, analysed anew each time."""
    walls, cpus = [], []
    java = cpu_of_jvm(spark)
    for _ in range(rounds + warm_up):
        execution = analysed(spark, sql)
        before, used, begin = java(), time.thread_time(), time.perf_counter()
        reader.at_start(execution)
        walls.append((time.perf_counter() - begin) * 1000)
        cpus.append((time.thread_time() - used) * 1000 + (java() - before) / 1e6)
    print(json.dumps({"name": name, "wall": walls[warm_up:], "cpu": cpus[warm_up:]}), flush=True)


def cpu_of_jvm(spark: Any) -> Callable[[], int]:
    """Asks the JVM for the nanoseconds that it has used.

    The class that knows is one that Py4J may not look into.
    """
    jvm = Jvm(spark._jvm)
    bean = spark._jvm.java.lang.management.ManagementFactory.getOperatingSystemMXBean()
    found = jvm.class_named("com.sun.management.OperatingSystemMXBean")
    method = found.getMethod("getProcessCpuTime", jvm.array("java.lang.Class"))
    arguments = jvm.array("java.lang.Object")
    return lambda: int(method.invoke(bean, arguments))


def endure(spark: Any, reader: PlanReader, statements: int) -> None:
    """Read that many different statements, and say what memory they left behind."""
    before: dict[str, float] = {}
    for number in range(statements):
        if number == statements // 10:  # by then caches are full
            before = memory(spark)
        reader.at_start(
            analysed(
                spark,
                f"INSERT INTO lake.b.t1 SELECT id + {number}, name, amount, day FROM lake.b.t0",
            )
        )
        if number % 500 == 0:
            gc.collect()  # Py4J lets go of JVM objects when Python does
    after = memory(spark)
    print(
        json.dumps(
            {
                "name": "memory",
                "python": after["python"] - before["python"],
                "jvm": after["jvm"] - before["jvm"],
            }
        )
    )


def memory(spark: Any) -> dict[str, float]:
    """Python's resident memory and the JVM's live heap, in MiB."""
    gc.collect()
    time.sleep(1)
    spark._jvm.java.lang.System.gc()
    runtime = spark._jvm.java.lang.Runtime.getRuntime()
    pages = int(Path("/proc/self/statm").read_text().split()[1]) * 4096
    return {"python": pages / 2**20, "jvm": (runtime.totalMemory() - runtime.freeMemory()) / 2**20}


def work(spark: Any, told: dict[str, Any]) -> None:
    """Do the work of the emitter's thread."""
    acknowledge_quickly(spark.sparkContext._gateway)
    reader = PlanReader(spark)
    for name, sql in tables(spark, Path(told["folder"])).items():
        rounds = told["rounds"] if name != "1000-columns" else max(2, told["rounds"] // 5)
        measure(spark, reader, name, sql, rounds, told["warm_up"])
    if told["statements"]:
        endure(spark, reader, told["statements"])


def in_thread(act: Callable[[], None]) -> None:
    """Run in a thread of its own, whose connection to the JVM is its own."""
    failed: list[BaseException] = []

    def run() -> None:
        try:
            act()
        except BaseException as error:  # noqa: BLE001 - raised again where it can be seen
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if failed:
        raise failed[0]


if __name__ == "__main__":
    wanted = json.loads(sys.argv[1])
    spark = session(Path(wanted["folder"]), quick=not wanted["statements"])
    in_thread(lambda: work(spark, wanted))
    spark.stop()
