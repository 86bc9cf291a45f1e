"""A driver killed between a commit and its event: the next start reports it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fixtures.emitter.drivers import SECONDS, SparkProgram, emitting, kill_group
from fixtures.emitter.faulty_proxy import faulty_proxy
from fixtures.emitter.recording import recording_server
from fixtures.waiting import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.slow]

STREAM = """
import json, sys, time
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.bank")
spark.sql("CREATE TABLE IF NOT EXISTS lake.bank.ticks (timestamp timestamp, value bigint) USING iceberg")
ticks = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 2).load()
query = (ticks.writeStream.queryName("ticks").option("checkpointLocation", "checkpoint")
         .trigger(processingTime="200 milliseconds").toTable("lake.bank.ticks"))
until = time.monotonic() + 200
while (query.lastProgress is None or query.lastProgress["batchId"] < last) and time.monotonic() < until:
    time.sleep(0.1)
while query.status["isTriggerActive"] and time.monotonic() < until:
    time.sleep(0.01)
query.stop()
rows = spark.sql("SELECT snapshot_id, summary['spark.sql.streaming.epochId'] FROM lake.bank.ticks.snapshots").collect()
print(json.dumps([[str(row[0]), int(row[1]) + 1] for row in rows]))
"""
COMMITS = """
class Factory:
    def create_listener(self, context):
        return self
    def on_event(self, event):
        pass
    def notify_commit_complete(self, identifier, snapshot_id, commit_kind):
        with open("commits.txt", "a") as lines:
            lines.write(f"{identifier} {snapshot_id} {commit_kind}\\n")
"""
ALIGNED = """
import json, os
from pyspark.sql import SparkSession
from strandline_spark import aligned_stream
from strandline_spark.consistency.aligned.checkpoints import Checkpoints

def once_committed(self, session, barrier):
    if barrier == 2 and then == "killed":
        os.killpg(0, 9)
    if barrier == 2 and then == "failed":
        raise RuntimeError("after the commit")
    return checked(self, session, barrier)

checked, Checkpoints._check_once = Checkpoints._check_once, once_committed
spark = SparkSession.builder.getOrCreate()
spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.bank")
if not spark.catalog.tableExists("lake.bank.transfers"):
    spark.sql("CREATE TABLE lake.bank.transfers (account bigint) USING iceberg")
    for barrier in (1, 2, 3):
        spark.range(2).toDF("account").writeTo("lake.bank.transfers").option(
            "snapshot-property.strandline.barrier", str(barrier)).append()
query = aligned_stream(spark, ["lake.bank.transfers"], "lake.bank.credits", lambda inputs, barrier: inputs["transfers"],
                       changes=["transfers"], mode="append", checkpoint="checkpoint", until_barrier=3, timeout=60)
try:
    query.awaitTermination(200)
except Exception as error:
    print(error)
rows = [spark.sql(f"SELECT snapshot_id, summary['strandline.barrier'] FROM lake.bank.{table}.snapshots").collect()
        for table in ("credits", "transfers")]
inputs = spark.sql("SELECT summary['strandline.barrier'], summary['strandline.inputs'] FROM lake.bank.credits.snapshots")
read = [[int(barrier), json.loads(stated)["lake.bank.transfers"]] for barrier, stated in inputs.collect()]
print(json.dumps([*[[[str(row[0]), int(row[1])] for row in table] for table in rows], read]))
"""
KILLED_AFTER = 2  # the micro-batch that is committed when the driver is killed
FOREVER = 1_000_000


def test_next_start_reports_commits_of_a_killed_driver(tmp_path: Path, iceberg_jars: str) -> None:
    with (
        recording_server() as server,
        faulty_proxy("black hole", ("127.0.0.1", server.port)) as port,
    ):
        conf = streaming_conf(tmp_path, iceberg_jars, f"http://127.0.0.1:{port.port}")
        with driver(tmp_path, conf, FOREVER).started() as process:
            wait_until((tmp_path / "checkpoint" / "commits" / str(KILLED_AFTER)).exists, SECONDS)
            kill_group(process)
        told_before = server.bodies()
        port.heal()
        ran = driver(tmp_path, conf, KILLED_AFTER + 2).run()
        assert ran.code == 0, ran.err[-2000:]
        ended = server.wait_until(
            lambda: any(event["eventType"] == "ABORT" for event in server.documents())
        )
        told = barriers(server.documents())
    commits = [line.split() for line in (tmp_path / "commits.txt").read_text().splitlines()]

    assert told_before == []
    assert ended
    assert told == dict(ran.answer())
    assert sorted(told.values())[: KILLED_AFTER + 3] == [1, 2, 3, 4, 5]
    committed = {
        snapshot for _, snapshot, _ in commits
    }  # the killed driver's newest may be missing
    assert committed <= set(told)
    assert {barrier for snapshot, barrier in told.items() if snapshot in committed} >= {4, 5}
    assert {(table, kind) for table, _, kind in commits} == {("lake.bank.ticks", "append")}


@pytest.mark.parametrize(("then", "told_at_once"), [("killed", [1]), ("failed", [1, 2])])
def test_checkpoint_is_reported_even_if_its_micro_batch_failed(
    then: str, told_at_once: list[int], tmp_path: Path, iceberg_jars: str, sqlite_url: str
) -> None:
    """The data lineage in the store also equals the tables' own metadata."""
    with recording_server() as server:
        conf = streaming_conf(tmp_path, iceberg_jars, f"http://127.0.0.1:{server.port}")
        first = SparkProgram(tmp_path, f"then = '{then}'\n{ALIGNED}", conf).run()
        before = barriers(server.documents(), "credits")
        second = SparkProgram(tmp_path, f"then = 'nothing'\n{ALIGNED}", conf).run()
        told = barriers(server.documents(), "credits")
        reads = reads_of(server.documents())
        made_in_store, read_in_store = data_lineage(sqlite_url, server.documents())

    assert first.code == (-9 if then == "killed" else 0), first.err[-2000:]
    assert second.code == 0, second.err[-2000:]
    credits, transfers, inputs = map(dict, second.answer())
    assert sorted(before.values()) == told_at_once
    assert told == credits
    assert sorted(told.values()) == [1, 2, 3]
    assert reads == {barrier: snapshot for snapshot, barrier in transfers.items()}
    assert made_in_store == {barrier: snapshot for snapshot, barrier in credits.items()}
    assert read_in_store == {barrier: str(snapshot) for barrier, snapshot in inputs.items()}


def data_lineage(url: str, events: list[Any]) -> tuple[dict[int, str], dict[int, str]]:
    """Return the lineage of the credits in a store that takes these events.

    The snapshot made at each barrier, and the one read.
    """
    from strandline.store.sql.engine import make_engine
    from worlds.builders import rows, store

    engine = make_engine(url)
    store(engine, events)
    made, read = (
        dict(
            rows(
                engine,
                f"SELECT barrier_id, snapshot_id FROM {way}_snapshot_lineage WHERE \"table\" = '{table}'",
            )
        )
        for way, table in (("sink", "credits"), ("source", "transfers"))
    )
    engine.dispose()
    return made, read


def reads_of(events: list[Any]) -> dict[int, str]:
    """Return the reported snapshot of the transfers that was read at each barrier of credits."""
    return {
        event["run"]["facets"]["strandline_barrier"]["barrierId"]: source["inputFacets"][
            "strandline_snapshot"
        ]["snapshotId"]
        for event in events
        if any(output["name"].endswith("/credits") for output in event["outputs"])
        for source in event["inputs"]
        if "strandline_barrier" in event["run"]["facets"] and source["name"].endswith("/transfers")
    }


def barriers(events: list[Any], table: str = "ticks") -> dict[str, int]:
    """Return the reported barrier of each snapshot of a table."""
    facets = [
        (event["run"]["facets"].get("strandline_barrier"), event["outputs"]) for event in events
    ]
    return {
        output["outputFacets"]["strandline_snapshot"]["snapshotId"]: barrier["barrierId"]
        for barrier, outputs in facets
        if barrier is not None
        for output in outputs
        if output["name"].endswith(f"/{table}")
    }


def driver(folder: Path, conf: dict[str, str], last: int) -> SparkProgram:
    """The stream, until that micro-batch."""
    (folder / "committed.py").write_text(COMMITS)
    return SparkProgram(folder, f"last = {last}\n{STREAM}", conf)


def streaming_conf(folder: Path, jars: str, url: str) -> dict[str, str]:
    """An Iceberg catalog, and the emitter sending to that address."""
    return {
        **emitting(folder),
        "spark.openlineage.transport.type": "http",
        "spark.openlineage.transport.url": url,
        "spark.strandline.listeners": "committed.Factory",
        "spark.jars": jars,
        "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.lake.type": "hadoop",
        "spark.sql.catalog.lake.warehouse": str(folder / "lake"),
        "spark.sql.catalog.lake.cache-enabled": "false",
    }
