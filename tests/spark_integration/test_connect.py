"""A PySpark process that hosts the Connect server sees what remote clients do."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from deploy.kafka import free_port
from emitter_world.drivers import SECONDS, Driver, emitting

pytestmark = [
    pytest.mark.spark,
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
CLIENT = """
import sys
from pyspark.sql import SparkSession

spark = SparkSession.builder.remote(sys.argv[1]).getOrCreate()
spark.range(3).write.parquet(sys.argv[2])
"""


def test_a_remote_client_s_write_is_told_by_the_server_s_process(tmp_path: Path, java: str) -> None:
    port = free_port()
    plugin = "org.apache.spark.sql.connect.SparkConnectPlugin"
    conf = {"spark.plugins": plugin, "spark.connect.grpc.binding.port": str(port)}
    driver = Driver(tmp_path, SERVER, emitting(tmp_path) | conf)
    with driver.started() as process:
        until = time.monotonic() + SECONDS
        while not (tmp_path / "ready").exists():
            assert time.monotonic() < until, "the server did not start"
            time.sleep(0.1)
        client = [sys.executable, "-c", CLIENT, f"sc://127.0.0.1:{port}", str(tmp_path / "remote")]
        subprocess.run(client, check=True, timeout=SECONDS, env=dict(os.environ), capture_output=True)
        (tmp_path / "stop").touch()
        process.communicate(timeout=SECONDS)

    assert driver.lines() == [
        "START bank [] -> []",
        "START bank.remote [] -> [remote]",
        "COMPLETE bank.remote [] -> [remote]",
        "COMPLETE bank [] -> []",
    ]
