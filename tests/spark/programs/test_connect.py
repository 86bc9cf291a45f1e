"""A PySpark process that hosts the Connect server reports what remote clients do."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from deploy.kafka import free_port
from fixtures.emitter.drivers import SECONDS, SparkProgram, emitting
from fixtures.waiting import wait_until

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.skipif(
        not all(importlib.util.find_spec(name) for name in ("grpc", "grpc_status")),
        reason="a Connect client needs grpcio and grpcio-status, which are not installed",
    ),
]

SERVER = """
import time
from pathlib import Path
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
Path("ready").touch()
while not Path("stop").exists():
    time.sleep(0.1)
spark.stop()
"""
ONLY_A_CONTEXT = SERVER.replace(
    "from pyspark.sql import SparkSession", "from pyspark import SparkContext"
).replace("SparkSession.builder.getOrCreate()", "SparkContext()")
STREAM = """
import sys
from pyspark.sql import SparkSession

spark = SparkSession.builder.remote(sys.argv[1]).getOrCreate()
ticks = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 2).load()
query = ticks.writeStream.queryName("ticks").option("checkpointLocation", sys.argv[2] + "-checkpoint")
query.trigger(once=True).start(sys.argv[2]).awaitTermination()
"""
CLIENT = """
import sys
from pyspark.sql import SparkSession

spark = SparkSession.builder.remote(sys.argv[1]).getOrCreate()
spark.range(3).write.parquet(sys.argv[2])
"""


def test_server_process_reports_a_remote_clients_write(tmp_path: Path, java: str) -> None:
    assert hosted(tmp_path, SERVER, CLIENT).lines() == [
        "START bank [] -> []",
        "START bank.~/remote [] -> [remote]",
        "COMPLETE bank.~/remote [] -> [remote]",
        "COMPLETE bank [] -> []",
    ]


def test_remote_streaming_query_is_reported_by_a_context_only_process(
    tmp_path: Path, java: str
) -> None:
    ticks = [
        event
        for event in hosted(tmp_path, ONLY_A_CONTEXT, STREAM).events()
        if event["job"]["name"] != "bank"
    ]

    types = [event["eventType"] for event in ticks]
    between = ticks[1:-1]  # also heartbeats, where the machine is slow
    barriers = [event["run"]["facets"].get("strandline_barrier") for event in between]
    (barrier,) = filter(None, barriers)
    assert (types[0], {*types[1:-1]}, types[-1]) == ("START", {"RUNNING"}, "COMPLETE")
    assert barrier["checkpointLocation"].endswith("/remote-checkpoint")
    assert len(barrier["sources"]) == 1


def hosted(folder: Path, server: str, program: str) -> SparkProgram:
    """The driver of a server, when a remote client's program is over and the server has ended."""
    port = free_port()
    plugin = "org.apache.spark.sql.connect.SparkConnectPlugin"
    conf = {"spark.plugins": plugin, "spark.connect.grpc.binding.port": str(port)}
    driver = SparkProgram(folder, server, emitting(folder) | conf)
    with driver.started() as process:
        wait_until((folder / "ready").exists, SECONDS)
        client = [sys.executable, "-c", program, f"sc://127.0.0.1:{port}", str(folder / "remote")]
        subprocess.run(
            client, check=True, timeout=SECONDS, env=dict(os.environ), capture_output=True
        )
        (folder / "stop").touch()
        process.communicate(timeout=SECONDS)
    return driver
