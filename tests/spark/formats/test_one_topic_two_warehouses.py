"""Two tables over one topic are one dataset; same names in two warehouses are two.

The three jobs of examples/warehouses run one after the other, on every lake format that this Spark
has a catalog of.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from deploy import jars
from fixtures.emitter.drivers import WAITING, SparkProgram, emitting
from fixtures.spark_lake import SPARK, formats
from fixtures.warm_jvm import WarmJvm

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.kafka]

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "warehouses"
KINDS = [kind for kind in formats() if kind in ("paimon", "iceberg")]
CONNECTED = ("3.5", "4.0", "4.1")  # a Spark that has a Kafka connector in the registry
JOBS = (
    WAITING
    + """
import runpy, sys
from pyspark.sql import SparkSession

def finish(spark):
    wait_until_told(spark, done, '"COMPLETE"', '"inputs":[{')
    stop(spark)

stop, SparkSession.stop = SparkSession.stop, finish
folder, servers, kind = sys.argv[1:]
first, second, address = f"{folder}/one", f"{folder}/two", f"jdbc:derby:{folder}/shop;create=true"
jobs = (("copied", "orders_here", servers, kind, first), ("copied", "orders_there", servers, kind, second),
        ("joined", kind, first, second, address))
for done, (job, *arguments) in enumerate(jobs, 1):
    sys.argv = [job, *arguments]
    runpy.run_module(job, run_name="__main__")
"""
)


@pytest.fixture(scope="module", params=KINDS)
def driver(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    kafka: str,
    warm_jvm: WarmJvm,
) -> SparkProgram:
    """The three jobs, run to their ends."""
    if SPARK not in CONNECTED:
        pytest.skip(f"no Kafka connector for Spark {SPARK} here")
    folder, kind = tmp_path_factory.mktemp(f"warehouses_{request.param}"), str(request.param)
    fill(kafka)
    try:
        sets = jars.comma_list([f"spark-kafka-{SPARK}", f"{kind}-{SPARK}"])
    except jars.JarsError as error:
        pytest.skip(str(error))
    conf = emitting(folder) | {"spark.jars": sets}
    environ, arguments = {"PYTHONPATH": str(EXAMPLE)}, (str(folder), kafka, kind)
    driver = SparkProgram(folder, JOBS, conf, environ=environ, arguments=arguments, jvm=warm_jvm)
    ran = driver.run()
    assert ran.code == 0, ran.err[:3000]
    return driver


def fill(servers: str) -> None:
    """Three orders, unless a run on another format has sent them."""
    from kafka import KafkaConsumer, KafkaProducer

    consumer = KafkaConsumer(bootstrap_servers=servers)
    known = "orders" in consumer.topics()
    consumer.close()
    producer = KafkaProducer(bootstrap_servers=servers)
    for number in () if known else (1, 2, 3):
        producer.send("orders", key=b"%d" % number, value=b"%d" % (number * 10))
    producer.close(30)


def test_spark_reports_one_topic_two_tables_and_a_join(driver: SparkProgram, kafka: str) -> None:
    folder = driver.folder
    one, two = (f"file {folder}/{name}/{path_of(driver)}" for name in ("one", "two"))
    told = [
        told_of(event)
        for event in driver.events()
        if event["eventType"] == "COMPLETE" and event["inputs"]
    ]

    assert told == [
        ({f"kafka://{kafka} orders"}, {one}),
        ({f"kafka://{kafka} orders"}, {two}),
        ({one, two}, {f"derby {folder}/shop.joined"}),
    ]


def test_collector_stores_four_datasets(
    driver: SparkProgram, request: pytest.FixtureRequest
) -> None:
    pytest.importorskip("msgspec", reason="the collector is not installed beside this Spark")
    from strandline.store.sql.engine import make_engine
    from worlds.builders import rows, store

    engine = make_engine(request.getfixturevalue("sqlite_url"))
    store(engine, driver.events())

    assert rows(engine, "SELECT count(DISTINCT canonical_id) FROM datasets") == [(4,)]
    engine.dispose()


def told_of(event: dict[str, Any]) -> tuple[set[str], set[str]]:
    """Return the reads and writes that an event states."""
    inputs, outputs = event["inputs"], event["outputs"]
    return {shown(dataset) for dataset in inputs}, {shown(dataset) for dataset in outputs}


def shown(dataset: dict[str, Any]) -> str:
    return f"{dataset['namespace']} {dataset['name']}"


def path_of(driver: SparkProgram) -> str:
    """Return the place of a catalog's table shop.my_paimon_table."""
    return "shop.db/my_paimon_table" if driver.arguments[2] == "paimon" else "shop/my_paimon_table"
