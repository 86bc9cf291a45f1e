"""Delta versions written without rows: clones, RESTORE, and versions that change no row."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fixtures.spark_lake import needs
from strandline_spark.extraction.reader import PlanReader
from strandline_spark.model.statement import Operation, Statement

pytestmark = [
    pytest.mark.spark,
    needs("delta"),
]


@pytest.fixture(scope="module", autouse=True)
def database(lake: Any) -> Iterator[None]:
    lake.sql("CREATE DATABASE versions")
    yield
    lake.sql("DROP DATABASE versions CASCADE")


def execution(spark: Any, statement: str) -> Any:
    """The QueryExecution of a statement that has run."""
    return spark.sql(statement)._jdf.queryExecution()


def read_and_written(
    statement: Statement,
) -> tuple[list[tuple[str, str]], list[tuple[str, Operation, str]]]:
    """Return the table (or folder) and version that a statement read, and what it wrote.

    What it wrote has the operation, too.
    """
    read = [
        (one.table or one.name, one.snapshots[0].snapshot_id if one.snapshots else "")
        for one in statement.inputs
    ]
    outputs = [(one.dataset, one.operation) for one in statement.outputs]
    written = [
        (to.table or to.name, operation, to.snapshots[0].snapshot_id) for to, operation in outputs
    ]
    return read, written


@pytest.mark.slow
def test_clone_and_restore_read_a_version(lake: Any, tmp_path: Path) -> None:
    lake.sql("CREATE TABLE versions.base USING delta AS SELECT 1 AS id")
    lake.sql("INSERT INTO versions.base VALUES (2)")

    def done(statement: str) -> Any:
        return read_and_written(PlanReader(lake).at_end(execution(lake, statement)))

    base, copy, folder = (
        "spark_catalog.versions.base",
        "spark_catalog.versions.copy",
        str(tmp_path / "copy"),
    )
    assert done("RESTORE TABLE versions.base TO VERSION AS OF 0") == (
        [(base, "0")],
        [(base, "restore", "2")],
    )
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
    time.sleep(2.5)  # longer than a statement takes from its analysis to its table
    assert done("CREATE TABLE IF NOT EXISTS versions.copy SHALLOW CLONE versions.base") == ([], [])
    second = lake.sql("DESCRIBE HISTORY versions.base").where("version = 1").first().timestamp
    assert done(f"RESTORE TABLE versions.base TO TIMESTAMP AS OF '{second}'") == (
        [(base, "1")],
        [(base, "restore", "3")],
    )


@pytest.mark.slow
def test_clone_of_parquet_files_reads_them(lake: Any) -> None:
    lake.sql("CREATE TABLE versions.plain_too USING parquet AS SELECT 1 AS id")

    statement = PlanReader(lake).at_end(
        execution(lake, "CREATE TABLE versions.taken_too SHALLOW CLONE versions.plain_too")
    )

    assert [one.table for one in statement.inputs] == ["spark_catalog.versions.plain_too"]
    assert read_and_written(statement)[1] == [("spark_catalog.versions.taken_too", "create", "0")]
    counted = statement.outputs[0].statistics
    assert (counted["fileCount"], "rowCount" in counted) == (1, False)


KEPT = (
    ("REORG TABLE versions.tuned APPLY (PURGE)", "reorg"),
    ("OPTIMIZE versions.tuned", "optimize"),
    (
        "ALTER TABLE versions.tuned SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",
        "set tblproperties",
    ),
    ("ALTER TABLE versions.tuned SET TBLPROPERTIES ('note' = 'x')", "set tblproperties"),
    ("ALTER TABLE versions.tuned UNSET TBLPROPERTIES ('note')", "unset tblproperties"),
    ("ALTER TABLE versions.tuned ADD COLUMNS (note STRING)", "add columns"),
    ("ALTER TABLE versions.tuned ALTER COLUMN note COMMENT 'x'", "change column"),
    ("ALTER TABLE versions.tuned RENAME COLUMN note TO remark", "rename column"),
    ("ALTER TABLE versions.tuned ADD CONSTRAINT positive CHECK (id > 0)", "add constraint"),
    ("ALTER TABLE versions.tuned DROP CONSTRAINT positive", "drop constraint"),
    ("ALTER TABLE versions.tuned CLUSTER BY (id)", "cluster by"),
)


@pytest.mark.slow
def test_version_without_row_changes_names_the_last_one_with_changes(lake: Any) -> None:
    lake.sql(
        "CREATE TABLE versions.tuned USING delta TBLPROPERTIES ('delta.enableDeletionVectors' = 'true') "
        "AS SELECT /*+ COALESCE(1) */ id FROM range(1, 4)"
    )
    lake.sql("INSERT INTO versions.tuned VALUES (4)")
    lake.sql("DELETE FROM versions.tuned WHERE id > 2 AND id < 4")
    for statement, _ in KEPT:
        lake.sql(statement)
    query = lake.table("versions.tuned")
    assert [row.id for row in query.orderBy("id").collect()] == [1, 2, 4]

    (read,) = PlanReader(lake).at_end(lake.table("versions.tuned")._jdf.queryExecution()).inputs

    (snapshot,) = read.snapshots
    told = [one.operation for one in (snapshot, *snapshot.same_rows_as)]
    assert told == [*(operation for _, operation in reversed(KEPT)), "delete"]
