"""A procedure of Iceberg's is one run of a job, although Spark makes no execution of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fixtures.emitter.drivers import WAITING, SparkProgram, emitting
from fixtures.spark_lake import needs
from fixtures.spark_lake.running import snapshot
from fixtures.warm_jvm import WarmJvm

pytestmark = [pytest.mark.spark, pytest.mark.slow, needs("iceberg")]

Event = dict[str, Any]

BRINGING = (
    WAITING
    + """
import json, os
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
home = os.getcwd()
spark.sql("CREATE DATABASE old")
spark.sql("CREATE TABLE old.p (id BIGINT, d STRING) USING parquet PARTITIONED BY (d)")
spark.sql("INSERT INTO old.p VALUES (1, 'x'), (2, 'y')")
spark.range(3).write.parquet(f"{home}/files")
spark.sql("CREATE NAMESPACE lake.db")
spark.sql("CREATE TABLE lake.db.added (id BIGINT, d STRING) USING iceberg PARTITIONED BY (d)")
spark.sql("CREATE TABLE lake.db.files (id BIGINT) USING iceberg")
spark.sql("CALL lake.system.snapshot({source}, 'lake.db.copied')", source="spark_catalog.old.p").collect()
spark.sql("USE lake.db")
adding = "CALL system.add_files(table => :added, source_table => 'old.p', partition_filter => map('d', :d))"
spark.sql(adding, args={"added": "added", "d": "x"})
spark.sql("USE spark_catalog.default")
spark.sql(f"/* from /* some */ files */ call lake.system.add_files('db.files', '`parquet`.`{home}/files`')")
for source in ("nowhere", "files"):
    try:
        spark.sql(f"CALL lake.system.add_files('db.{source}', '`parquet`.`{home}/nowhere`')")
    except Exception as error:
        print(type(error).__name__)
spark.sql("CALL lake.system.rewrite_data_files('db.files')")
own = spark._jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergCatalog(spark._jsparkSession, "spark_catalog")
names = spark.sparkContext._gateway.new_array(spark._jvm.java.lang.String, 1)
names[0] = "old"
own.createNamespace(spark._jvm.org.apache.iceberg.catalog.Namespace.of(names))
spark.sql("CALL system.migrate('old.p')")
tables = ("copied", "added", "files")
newest = {t: spark.sql(f"SELECT snapshot_id FROM lake.db.{t}.snapshots").collect()[0][0] for t in tables}
wait_until_told(spark, 2, '"eventType":"FAIL"')
spark.stop()
print(json.dumps({name: str(number) for name, number in newest.items()}))
"""
)

SETTING = (
    WAITING
    + """
import json
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.sql("CREATE NAMESPACE lake.db")
spark.sql("CREATE TABLE lake.db.s USING iceberg AS SELECT 1 AS id")
spark.sql("CREATE TABLE lake.db.t (id INT) USING iceberg TBLPROPERTIES ('write.wap.enabled' = 'true')")
ids = lambda: [row[0] for row in spark.sql("SELECT snapshot_id FROM lake.db.t.snapshots ORDER BY committed_at").collect()]
for number in range(2):
    spark.sql(f"INSERT INTO lake.db.t VALUES ({number})")
first, second = ids()
spark.sql("CALL lake.system.rollback_to_snapshot('db.t', ?)", [first]).collect()
spark.sql(f"CALL lake.system.set_current_snapshot(table => 'db.t', snapshot_id => {second})")
spark.conf.set("spark.wap.id", "nightly")
spark.sql("INSERT INTO lake.db.t SELECT id FROM lake.db.s")
spark.conf.unset("spark.wap.id")
spark.sql("INSERT INTO lake.db.t VALUES (7)")
staged = ids()[2]
spark.sql(f"CALL lake.system.cherrypick_snapshot('db.t', {staged})")
spark.sql("ALTER TABLE lake.db.t CREATE BRANCH dev")
spark.sql("INSERT INTO lake.db.t.branch_dev VALUES (8)")
spark.sql("CALL lake.system.fast_forward('db.t', 'main', 'dev')")
try:
    spark.sql("CALL lake.system.rollback_to_snapshot('db.t', 404)")
except Exception as error:
    print(type(error).__name__)
published = ids()[4]
wait_until_told(spark, 1, '"eventType":"FAIL"')
spark.stop()
print(json.dumps([str(staged), str(published)]))
"""
)


def catalog(folder: Path) -> dict[str, str]:
    """Return the conf of the catalog `lake`, and of the session's own."""
    own = "spark.sql.catalog.spark_catalog"
    return {
        own: "org.apache.iceberg.spark.SparkSessionCatalog",
        f"{own}.type": "jdbc",
        f"{own}.uri": f"jdbc:sqlite:{folder}/own.db",
        f"{own}.jdbc.schema-version": "V1",
        f"{own}.cache-enabled": "false",
        f"{own}.warehouse": f"file://{folder}/warehouse",
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.lake.type": "jdbc",
        "spark.sql.catalog.lake.uri": f"jdbc:sqlite:{folder}/catalog.db",
        "spark.sql.catalog.lake.jdbc.schema-version": "V1",
        "spark.sql.catalog.lake.warehouse": f"file://{folder}/lake",
    }


def calls(driver: SparkProgram) -> Iterator[Event]:
    """Yield the ends of the runs of CALLs."""
    for event in driver.events():
        sql = event["job"].get("facets", {}).get("sql", {}).get("query", "")
        if "call " in sql.lower() and event["eventType"] != "START":
            yield event


def line(event: Event, folder: Path) -> str:
    """Return the end of a run in a line."""
    names = [
        [one["name"].replace(str(folder), "~") for one in event[way]]
        for way in ("inputs", "outputs")
    ]
    return f"{event['eventType']} {event['job']['name']} {names[0]} -> {names[1]}"


def test_procedure_that_brings_in_files_has_its_source(tmp_path: Path, warm_jvm: WarmJvm) -> None:
    driver = SparkProgram(tmp_path, BRINGING, emitting(tmp_path) | catalog(tmp_path), jvm=warm_jvm)
    ran = driver.run()
    assert ran.code == 0, ran.err[-2000:]
    ended = list(calls(driver))

    assert [line(event, tmp_path) for event in ended] == [
        "COMPLETE bank.lake.db.copied ['~/warehouse/old.db/p'] -> ['~/lake/db/copied']",
        "COMPLETE bank.lake.db.added ['~/warehouse/old.db/p'] -> ['~/lake/db/added']",
        "COMPLETE bank.lake.db.files ['~/files'] -> ['~/lake/db/files']",
        "FAIL bank.lake.db.files [] -> ['~/lake/db/files']",
        "COMPLETE bank.old.p ['~/warehouse/old.db/p'] -> ['~/warehouse/old.db/p']",
    ]
    failed = [event for event in driver.events() if event["eventType"] == "FAIL"]
    assert {event["job"]["name"] for event in failed} == {
        "bank.lake.db.files",
        "bank.lake.db.nowhere",
    }
    made = [snapshot(event["outputs"][0]) for event in ended[:3]]
    assert [one["snapshotId"] for one in made] == list(ran.answer().values())
    assert [one.get("observed", False) for one in made] == [False] * 3
    assert [one.get("replacesTable", False) for one in made] == [True, False, False]
    columns = ended[1]["outputs"][0]["facets"]["columnLineage"]["fields"]
    assert {
        name: [one["field"] for one in column["inputFields"]] for name, column in columns.items()
    } == {
        "id": ["id"],
        "d": ["d"],
    }


def test_procedure_that_sets_a_tables_snapshot_alters_it(tmp_path: Path, warm_jvm: WarmJvm) -> None:
    driver = SparkProgram(tmp_path, SETTING, emitting(tmp_path) | catalog(tmp_path), jvm=warm_jvm)
    ran = driver.run()
    assert ran.code == 0, ran.err[-2000:]
    ended, (staged, published) = list(calls(driver)), ran.answer()

    assert [event["eventType"] for event in ended] == [*["COMPLETE"] * 4, "FAIL"]
    altered = [event["outputs"][0] for event in (*ended[:2], *ended[3:])]
    for output in altered:
        assert output["facets"]["lifecycleStateChange"]["lifecycleStateChange"] == "ALTER"
        assert snapshot(output) == {}
    assert [event["inputs"] for event in (*ended[:2], *ended[3:])] == [[]] * 4
    assert snapshot(ended[2]["inputs"][0])["snapshotId"] == staged
    assert snapshot(ended[2]["outputs"][0])["snapshotId"] == published
    assert {event["job"]["name"] for event in ended} == {"bank.lake.db.t", "bank.lake.db.t.alter"}
