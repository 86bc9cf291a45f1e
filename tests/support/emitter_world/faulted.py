"""A job of a batch query and a streaming query of three micro-batches, to be run under faults of the network."""

from __future__ import annotations

from pathlib import Path

from emitter_world.drivers import Driver

TRANSPORTS = ("kafka", "http", "composite")
JOB = """
import json, os, time
from pathlib import Path
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.range(10).selectExpr("id", "id * 2 AS amount").repartition(3).write.parquet("credits")
spark.read.parquet("credits").where("amount > 4").write.parquet("large")
credits = spark.readStream.schema("id bigint, amount bigint").option("maxFilesPerTrigger", 1).parquet("credits")
query = (credits.writeStream.queryName("copy").format("parquet").option("path", "copied")
         .option("checkpointLocation", "checkpoint").trigger(availableNow=True).start())
query.awaitTermination()
Path("worked").touch()
until = time.monotonic() + 200
while "WAITS" in os.environ and not Path("healed").exists() and time.monotonic() < until:
    time.sleep(0.1)
sums = [spark.read.parquet(name).groupBy().sum("amount").first()[0] for name in ("large", "copied")]
batches = sorted(int(path.name) for path in Path("checkpoint/commits").glob("[0-9]*"))
spark.stop()
print(json.dumps([sums, batches]))
"""


def driver(folder: Path, program: str, transport: dict[str, str], enabled: str = "true", **environ: str) -> Driver:
    """A driver whose emitter, if it is enabled, sends by that transport; its spool lies in the folder."""
    conf = {f"spark.openlineage.transport.{key}": value for key, value in transport.items()}
    conf |= {"spark.strandline.enabled": enabled, "spark.openlineage.appName": "bank"}
    return Driver(folder, program, conf, environ=environ)
