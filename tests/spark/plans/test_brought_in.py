"""Folders that become a table's without a query are its inputs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fixtures.emitter.drivers import SparkProgram, emitting
from fixtures.spark_lake import needs
from fixtures.warm_jvm import WarmJvm
from strandline_spark.extraction.reader import PlanReader
from strandline_spark.model.statement import Statement

pytestmark = pytest.mark.spark
iceberg = needs("iceberg")


@pytest.fixture(scope="module", autouse=True)
def table(lake: Any) -> Iterator[None]:
    lake.sql("CREATE DATABASE brought")
    lake.sql("CREATE TABLE brought.t (id INT, p INT) USING parquet PARTITIONED BY (p)")
    yield
    lake.sql("DROP DATABASE brought CASCADE")


def told(spark: Any, statement: str) -> Statement:
    """What a statement read and wrote, read once it is over."""
    return PlanReader(spark).at_end(spark.sql(statement)._jdf.queryExecution())


def test_partition_with_a_place_has_that_folder_as_its_input(lake: Any, tmp_path: Path) -> None:
    added = told(lake, f"ALTER TABLE brought.t ADD PARTITION (p = 1) LOCATION '{tmp_path}/one'")
    moved = told(lake, f"ALTER TABLE brought.t PARTITION (p = 1) SET LOCATION '{tmp_path}/two'")

    for statement, folder, operation in ((added, "one", "append"), (moved, "two", "overwrite")):
        assert [one.name for one in statement.inputs] == [f"{tmp_path}/{folder}"]
        assert [(one.dataset.table, one.operation) for one in statement.outputs] == [
            ("spark_catalog.brought.t", operation)
        ]
        assert (statement.columns, statement.unread) == ((), ())


def test_partition_of_the_tables_own_folder_brings_nothing(lake: Any) -> None:
    statement = told(lake, "ALTER TABLE brought.t ADD PARTITION (p = 7)")

    assert (statement.inputs, statement.outputs) == ((), ())


@iceberg
def test_metadata_of_a_table_is_not_its_data(lake: Any) -> None:
    lake.sql("CREATE NAMESPACE lake.brought")
    lake.sql("CREATE TABLE lake.brought.t USING iceberg AS SELECT 1 AS id")
    files = told(
        lake, "CREATE TABLE lake.brought.f USING iceberg AS SELECT * FROM lake.brought.t.files"
    )
    both = told(
        lake,
        "CREATE TABLE lake.brought.b USING iceberg AS"
        " SELECT id, file_path FROM lake.brought.t, lake.brought.t.snapshots, lake.brought.t.files",
    )

    assert files.inputs == ()
    assert [one.table for one in both.inputs] == ["lake.brought.t"]


LOAD = """
import os
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
home = os.getcwd()
spark.sql("CREATE TABLE lines (line STRING) STORED AS TEXTFILE")
spark.sql("CREATE TABLE parts (line STRING) PARTITIONED BY (p INT) STORED AS TEXTFILE")
for name in ("local", "all", "some"):
    spark.createDataFrame([(name,)], "line STRING").write.text(f"{home}/{name}")
spark.sql(f"LOAD DATA LOCAL INPATH '{home}/local/*.txt' INTO TABLE lines")
spark.sql(f"LOAD DATA INPATH '{home}/all' OVERWRITE INTO TABLE lines")
spark.sql(f"LOAD DATA INPATH '{home}/some' INTO TABLE parts PARTITION (p = 1)")
spark.stop()
"""


@pytest.mark.slow
def test_loaded_files_are_inputs_of_their_table(tmp_path: Path, warm_jvm: WarmJvm) -> None:
    conf = emitting(tmp_path, spark__sql__catalogImplementation="hive")
    driver = SparkProgram(tmp_path, LOAD, conf, jvm=warm_jvm)
    ran = driver.run()

    assert ran.code == 0, ran.err[-2000:]
    assert [
        line for line in driver.lines() if line.startswith("COMPLETE") and "[]" not in line
    ] == [
        "COMPLETE bank.default.lines [local] -> [lines]",
        "COMPLETE bank.default.lines [all] -> [lines]",
        "COMPLETE bank.default.parts [some] -> [parts]",
    ]
