"""A statement whose analysis fails is told with the table that it would have written."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from fixtures.spark_lake import formats, needs
from fixtures.spark_lake.analysis import analysed
from strandline_spark.extraction.reader import PlanReader
from strandline_spark.model.job_names import output_name, unread_output_name
from strandline_spark.model.statement import Statement

pytestmark = pytest.mark.spark
iceberg = needs("iceberg")
delta = needs("delta")


@pytest.fixture(scope="module", autouse=True)
def database(lake: Any) -> Iterator[None]:
    lake.sql("CREATE DATABASE failed")
    lake.sql("CREATE TABLE failed.p USING parquet AS SELECT 1 AS id")
    if "delta" in formats():
        lake.sql("CREATE TABLE failed.d USING delta AS SELECT 1 AS id")
    if "iceberg" in formats():
        lake.sql("CREATE NAMESPACE lake.failed")
        lake.sql("CREATE TABLE lake.failed.i USING iceberg AS SELECT 1 AS id")
    yield
    lake.sql("DROP DATABASE failed CASCADE")


def failed(spark: Any, sql: str) -> Statement:
    """Return a statement that cannot be analysed, as it is told at its start and at its end.

    It is read on a thread of its own, as the emitter does; plans are read as JSON or as rows.
    """
    execution, reader, by_rows = analysed(spark, sql), PlanReader(spark), PlanReader(spark, 0)
    with ThreadPoolExecutor(1) as thread:
        statement = thread.submit(reader.at_start, execution).result()
        assert thread.submit(by_rows.at_start, execution).result() == statement
        assert thread.submit(reader.at_end, execution).result() == statement
    return statement


@pytest.mark.parametrize(
    "table",
    [
        "failed.p",
        pytest.param("failed.d", marks=delta),
        pytest.param("lake.failed.i", marks=iceberg),
    ],
)
@pytest.mark.parametrize(
    ("sql", "operation"),
    [
        ("INSERT INTO {} SELECT missing FROM failed.p", "append"),
        ("INSERT OVERWRITE {} SELECT 1, 2, 3", "overwrite"),
        ("WITH one AS (SELECT 1 AS id) INSERT INTO {} SELECT missing FROM one", "append"),
        ("MERGE INTO {} t USING failed.nowhere s ON t.id = s.id WHEN MATCHED THEN DELETE", "merge"),
        ("UPDATE {} SET missing = 1", "update"),
        ("DELETE FROM {} WHERE missing = 1", "delete"),
    ],
)
def test_failed_statement_names_its_target(lake: Any, table: str, sql: str, operation: str) -> None:
    statement = failed(lake, sql.format(table))

    assert output_name([statement]) == table
    assert [output.operation for output in statement.outputs] == [operation]
    assert (statement.inputs, statement.unread) == ((), ())
    assert statement.outputs[0].dataset.snapshots == ()


@iceberg
def test_failed_create_table_as_names_the_table_that_is_not_there(lake: Any) -> None:
    statement = failed(lake, "CREATE TABLE lake.failed.new USING iceberg AS SELECT missing")

    assert output_name([statement]) == "lake.failed.new"


def test_failed_insert_into_several_tables_names_each(lake: Any) -> None:
    lake.sql("CREATE TABLE failed.other USING parquet AS SELECT 1 AS id")
    statement = failed(
        lake,
        "FROM failed.p INSERT INTO failed.p SELECT missing INSERT INTO failed.other SELECT id",
    )

    assert [output.dataset.table for output in statement.outputs] == [
        "spark_catalog.failed.p",
        "spark_catalog.failed.other",
    ]


@pytest.mark.parametrize(
    ("sql", "name"),
    [
        ("INSERT INTO failed.nowhere SELECT 1", "unread.InsertIntoStatement"),
        (
            "CREATE TABLE failed.new USING parquet AS SELECT missing FROM failed.p",
            "unread.CreateTableAsSelect",
        ),
    ],
)
def test_failed_statement_whose_target_is_not_known_says_so(lake: Any, sql: str, name: str) -> None:
    statement = failed(lake, sql)

    assert statement.outputs == ()
    assert unread_output_name([statement]) == name


def test_failed_query_writes_nothing(lake: Any) -> None:
    statement = failed(lake, "SELECT missing FROM failed.p")

    assert (statement.outputs, statement.unread) == ((), ())
