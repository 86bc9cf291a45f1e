"""A version of Delta that no statement writes by rows: a clone, a RESTORE, and those that change no row."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from spark_lake import formats
from strandline_spark.extraction.reader import PlanReader
from strandline_spark.model.statement import Operation, Statement

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif("delta" not in formats(), reason="Delta has no runtime for this Spark"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),  # PySpark leaves sockets to the gc
]


@pytest.fixture(scope="module", autouse=True)
def database(lake: Any) -> Iterator[None]:
    lake.sql("CREATE DATABASE versions")
    yield
    lake.sql("DROP DATABASE versions CASCADE")


def execution(spark: Any, statement: str) -> Any:
    """The QueryExecution of a statement that has run."""
    return spark.sql(statement)._jdf.queryExecution()


def read_and_written(statement: Statement) -> tuple[list[tuple[str, str]], list[tuple[str, Operation, str]]]:
    """What a statement read, as table (or folder) and version, and what it wrote, with its operation."""
    read = [(one.table or one.name, one.snapshots[0].snapshot_id if one.snapshots else "") for one in statement.inputs]
    outputs = [(one.dataset, one.operation) for one in statement.outputs]
    written = [(to.table or to.name, operation, to.snapshots[0].snapshot_id) for to, operation in outputs]
    return read, written


def test_a_table_that_is_cloned_or_restored_is_made_from_a_version(lake: Any, tmp_path: Path) -> None:
    lake.sql("CREATE TABLE versions.base USING delta AS SELECT 1 AS id")
    lake.sql("INSERT INTO versions.base VALUES (2)")

    def done(statement: str) -> Any:
        return read_and_written(PlanReader(lake).at_end(execution(lake, statement)))

    base, copy, folder = "spark_catalog.versions.base", "spark_catalog.versions.copy", str(tmp_path / "copy")
    assert done("RESTORE TABLE versions.base TO VERSION AS OF 0") == ([(base, "0")], [(base, "restore", "2")])
    assert done("CREATE TABLE versions.copy SHALLOW CLONE versions.base VERSION AS OF 1") == (
        [(base, "1")],
        [(copy, "create", "0")],
    )
    lake.sql("DELETE FROM versions.copy")  # Delta clones nothing over rows
    assert done("CREATE OR REPLACE TABLE versions.copy SHALLOW CLONE versions.base") == (
        [(base, "2")],
        [(copy, "replace", "2")],
    )
    assert done(f"CREATE TABLE delta.`{folder}` SHALLOW CLONE versions.base") == (
        [(base, "2")],
        [(folder, "create", "0")],
    )


def test_a_clone_of_parquet_files_is_made_from_them(lake: Any) -> None:
    lake.sql("CREATE TABLE versions.plain_too USING parquet AS SELECT 1 AS id")

    statement = PlanReader(lake).at_end(
        execution(lake, "CREATE TABLE versions.taken_too SHALLOW CLONE versions.plain_too")
    )

    assert [one.table for one in statement.inputs] == ["spark_catalog.versions.plain_too"]


def test_a_version_that_changes_no_row_is_read_with_the_one_that_did(lake: Any) -> None:
    lake.sql("CREATE TABLE versions.tuned USING delta AS SELECT 1 AS id")
    lake.sql("ALTER TABLE versions.tuned SET TBLPROPERTIES ('delta.appendOnly' = 'true')")
    lake.sql("ALTER TABLE versions.tuned ADD COLUMNS (note STRING)")
    query = lake.table("versions.tuned")
    query.collect()

    (read,) = PlanReader(lake).at_end(query._jdf.queryExecution()).inputs

    (snapshot,) = read.snapshots
    assert (snapshot.snapshot_id, snapshot.operation) == ("2", "add columns")
    assert [(one.snapshot_id, one.operation) for one in snapshot.same_rows_as] == [
        ("1", "set tblproperties"),
        ("0", "create table as select"),
    ]
