"""What a statement is told to have done is what it did: no more where it does nothing, no less where Spark hides it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from spark_lake import formats
from strandline_spark.extraction.reader import PlanReader
from strandline_spark.jvm.iceberg_snapshot import Registry, commit_of
from strandline_spark.model.statement import Operation, Statement

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),  # PySpark leaves sockets to the gc
]
iceberg = pytest.mark.skipif("iceberg" not in formats(), reason="Iceberg has no runtime for this Spark")
delta = pytest.mark.skipif("delta" not in formats(), reason="Delta has no runtime for this Spark")


@pytest.fixture(scope="module", autouse=True)
def database(lake: Any) -> Iterator[None]:
    lake.sql("CREATE DATABASE done")
    if "iceberg" in formats():
        lake.sql("CREATE NAMESPACE lake.done")
    yield
    lake.sql("DROP DATABASE done CASCADE")


def execution(spark: Any, statement: str) -> Any:
    """The QueryExecution of a statement that has run."""
    return spark.sql(statement)._jdf.queryExecution()


def told(spark: Any, statement: str) -> Statement:
    return PlanReader(spark).at_start(execution(spark, statement))


@pytest.mark.parametrize(
    "table",
    [
        pytest.param("done.there USING parquet", id="session"),
        pytest.param("done.kept USING delta", id="delta", marks=delta),
        pytest.param("lake.done.there USING iceberg", id="iceberg", marks=iceberg),
    ],
)
def test_a_table_that_is_there_is_not_made_again(lake: Any, table: str) -> None:
    queue = lake._jvm.java.util.concurrent.LinkedBlockingQueue(1000)
    if "iceberg" in formats():
        Registry(lake._jvm, queue, "offer").register()
    creation = execution(lake, f"CREATE TABLE IF NOT EXISTS {table} AS SELECT 1 AS id")
    commits = [one for event in iter(queue.poll, None) if (one := commit_of(event)) is not None]
    made = PlanReader(lake).at_end(creation, commits)
    time.sleep(2.5)  # longer than a statement takes from its analysis to its table
    again = told(lake, f"CREATE TABLE IF NOT EXISTS {table} AS SELECT id AS other FROM range(3)")

    assert [one.operation for one in made.outputs] == ["create"]
    assert (again.inputs, again.outputs) == ((), ())


@delta
def test_partitions_of_delta_that_are_overwritten_as_they_come(lake: Any) -> None:
    lake.sql("CREATE TABLE done.parts (id bigint, p string) USING delta PARTITIONED BY (p)")
    lake.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    try:
        statement = told(lake, "INSERT OVERWRITE done.parts SELECT id + 1, p FROM done.parts")
    finally:
        lake.conf.unset("spark.sql.sources.partitionOverwriteMode")

    assert [(one.dataset.table, one.operation) for one in statement.outputs] == [
        ("spark_catalog.done.parts", "overwrite")
    ]
    assert [(one.name, one.origins[0].transform) for one in statement.columns] == [("id", "(id + 1)"), ("p", None)]


@delta
def test_a_truncated_table_of_delta(lake: Any) -> None:
    lake.sql("CREATE TABLE done.emptied USING delta AS SELECT 1 AS id")

    statement = PlanReader(lake).at_end(execution(lake, "TRUNCATE TABLE done.emptied"))

    assert [(one.dataset.table, one.operation) for one in statement.outputs] == [
        ("spark_catalog.done.emptied", "truncate")
    ]
    assert [one.snapshot_id for one in statement.outputs[0].dataset.snapshots] == ["1"]


def read_and_written(statement: Statement) -> tuple[list[tuple[str, str]], list[tuple[str, Operation, str]]]:
    """What a statement read, as table (or folder) and version, and what it wrote, with its operation."""
    read = [(one.table or one.name, one.snapshots[0].snapshot_id if one.snapshots else "") for one in statement.inputs]
    outputs = [(one.dataset, one.operation) for one in statement.outputs]
    written = [(to.table or to.name, operation, to.snapshots[0].snapshot_id) for to, operation in outputs]
    return read, written


@delta
def test_a_table_that_is_cloned_or_restored_is_made_from_a_version(lake: Any, tmp_path: Path) -> None:
    lake.sql("CREATE TABLE done.base USING delta AS SELECT 1 AS id")
    lake.sql("INSERT INTO done.base VALUES (2)")

    def done(statement: str) -> Any:
        return read_and_written(PlanReader(lake).at_end(execution(lake, statement)))

    base, copy, folder = "spark_catalog.done.base", "spark_catalog.done.copy", str(tmp_path / "copy")
    assert done("RESTORE TABLE done.base TO VERSION AS OF 0") == ([(base, "0")], [(base, "restore", "2")])
    assert done("CREATE TABLE done.copy SHALLOW CLONE done.base VERSION AS OF 1") == (
        [(base, "1")],
        [(copy, "create", "0")],
    )
    lake.sql("DELETE FROM done.copy")  # Delta clones nothing over rows
    assert done("CREATE OR REPLACE TABLE done.copy SHALLOW CLONE done.base") == (
        [(base, "2")],
        [(copy, "replace", "2")],
    )
    assert done(f"CREATE TABLE delta.`{folder}` SHALLOW CLONE done.base") == ([(base, "2")], [(folder, "create", "0")])


@delta
def test_a_clone_of_parquet_files_is_made_from_them(lake: Any) -> None:
    lake.sql("CREATE TABLE done.plain_too USING parquet AS SELECT 1 AS id")

    statement = PlanReader(lake).at_end(execution(lake, "CREATE TABLE done.taken_too SHALLOW CLONE done.plain_too"))

    assert [one.table for one in statement.inputs] == ["spark_catalog.done.plain_too"]


@delta
def test_a_version_that_changes_no_row_is_read_with_the_one_that_did(lake: Any) -> None:
    lake.sql("CREATE TABLE done.tuned USING delta AS SELECT 1 AS id")
    lake.sql("ALTER TABLE done.tuned SET TBLPROPERTIES ('delta.appendOnly' = 'true')")
    lake.sql("ALTER TABLE done.tuned ADD COLUMNS (note STRING)")
    query = lake.table("done.tuned")
    query.collect()

    (read,) = PlanReader(lake).at_end(query._jdf.queryExecution()).inputs

    (snapshot,) = read.snapshots
    assert (snapshot.snapshot_id, snapshot.operation) == ("2", "add columns")
    assert [(one.snapshot_id, one.operation) for one in snapshot.same_rows_as] == [
        ("1", "set tblproperties"),
        ("0", "create table as select"),
    ]


@iceberg
def test_a_branch_is_of_its_table(lake: Any) -> None:
    queue = lake._jvm.java.util.concurrent.LinkedBlockingQueue(1000)
    Registry(lake._jvm, queue, "offer").register()
    lake.sql("CREATE TABLE lake.done.branched (id bigint) USING iceberg")
    lake.sql("INSERT INTO lake.done.branched VALUES (1)")
    lake.sql("ALTER TABLE lake.done.branched CREATE BRANCH tried")
    queue.clear()
    insert = execution(lake, "INSERT INTO lake.done.branched.branch_tried VALUES (2)")
    commits = [one for event in iter(queue.poll, None) if (one := commit_of(event)) is not None]

    written = PlanReader(lake).at_end(insert, commits).outputs[0].dataset
    refs = lake.sql("SELECT snapshot_id FROM lake.done.branched.refs WHERE name = 'tried'").collect()
    assert [one.snapshot_id for one in written.snapshots] == [str(refs[0]["snapshot_id"])]
    assert (written.table, [link.name for link in written.symlinks]) == ("lake.done.branched", ["done.branched"])


def test_columns_that_come_through_an_unpivot_of_a_dataframe(lake: Any, tmp_path: Path) -> None:
    lake.range(3).selectExpr("id", "id * 2 AS a", "id * 3 AS b").write.parquet(str(tmp_path / "wide"))
    wide = lake.read.parquet(str(tmp_path / "wide"))
    wide.unpivot(["id"], ["a", "b"], "what", "value").createOrReplaceTempView("long")

    statement = told(lake, f"INSERT OVERWRITE DIRECTORY '{tmp_path}/long' USING parquet SELECT * FROM long")

    columns = [(one.name, [origin.column for origin in one.origins]) for one in statement.columns]
    assert columns == [("id", ["id"]), ("value", ["a", "b"])]
    assert statement.opaque == ()
