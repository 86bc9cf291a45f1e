"""A statement whose analysis fails is told with the table that it would have written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql.functions import expr

from fixtures.spark_lake import formats, needs
from fixtures.spark_lake.analysis import analysed
from strandline_spark.extraction.reader import PlanReader
from strandline_spark.model.job_names import output_name, unread_output_name
from strandline_spark.model.statement import Statement
from strandline_spark.runs.unreported import UnreportedStatements

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

    It is read on a thread of its own, as the emitter does.
    """
    execution, reader = analysed(spark, sql), PlanReader(spark)
    with ThreadPoolExecutor(1) as thread:
        statement = thread.submit(reader.at_start, execution).result()
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
        ("INSERT INTO failed.nowhere SELECT 1", "failed.nowhere"),
        ("CREATE TABLE failed.new USING parquet AS SELECT missing FROM failed.p", "failed.new"),
        ("INSERT INTO failed.`a.b` SELECT 1", "failed.`a.b`"),
        (
            "MERGE INTO failed.nowhere AS t USING failed.p ON t.id = p.id WHEN MATCHED THEN DELETE",
            "failed.nowhere",
        ),
    ],
)
def test_failed_statement_whose_target_is_not_there_has_its_name(
    lake: Any, sql: str, name: str
) -> None:
    statement = failed(lake, sql)

    assert statement.outputs == ()
    assert unread_output_name([statement]) == name


def test_failed_query_writes_nothing(lake: Any) -> None:
    statement = failed(lake, "SELECT missing FROM failed.p")

    assert (statement.outputs, statement.unread) == ((), ())


@iceberg
@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO i SELECT missing FROM i",
        "INSERT INTO i SELECT 1, 2, 3",
        "INSERT INTO i SELECT 'a' AS id",
        "WITH one AS (SELECT 1 AS id) INSERT INTO i SELECT missing FROM one",
        "UPDATE i SET missing = 1",
        "MERGE INTO i USING nowhere s ON i.id = s.id WHEN MATCHED THEN DELETE",
    ],
)
def test_target_is_what_its_name_meant_when_the_statement_failed(lake: Any, sql: str) -> None:
    lake.sql("CREATE NAMESPACE IF NOT EXISTS lake.elsewhere")
    lake.sql("CREATE TABLE IF NOT EXISTS lake.elsewhere.i (id INT) USING iceberg")
    lake.sql("USE lake.failed")
    try:
        execution = analysed(lake, sql)
        with pytest.raises(Exception, match="\\["):
            execution.analyzed()
        lake.sql("USE lake.elsewhere")
        statement = PlanReader(lake).at_start(execution)
    finally:
        lake.sql("USE spark_catalog.default")

    assert output_name([statement]) == "lake.failed.i"


Refused = Callable[[Any], None]
FRAMES: list[tuple[Refused, str, str | None]] = [
    (lambda frame: frame.writeTo("failed.p").append(), "failed.p", "append"),
    (lambda frame: frame.writeTo("failed.nowhere").append(), "failed.nowhere", None),
    (lambda frame: frame.write.insertInto("failed.p"), "failed.p", "append"),
    (lambda frame: frame.write.insertInto("failed.p", overwrite=True), "failed.p", "overwrite"),
    (lambda frame: frame.write.insertInto("failed.nowhere"), "failed.nowhere", None),
]
LAKE_FRAMES: list[tuple[Refused, str, str | None]] = [
    (lambda frame: frame.writeTo("lake.failed.i").append(), "lake.failed.i", "append"),
    (
        lambda frame: frame.writeTo("lake.failed.i").overwritePartitions(),
        "lake.failed.i",
        "overwrite",
    ),
    (lambda frame: frame.write.insertInto("lake.failed.i"), "lake.failed.i", "append"),
    (
        lambda frame: frame.write.mode("append").saveAsTable(name="lake.failed.i"),
        "lake.failed.i",
        "append",
    ),
    (
        lambda frame: frame.selectExpr("x", "x AS X").writeTo("lake.failed.new").create(),
        "lake.failed.new",
        "create",
    ),
    (
        lambda frame: frame.write.format("iceberg").mode("append").save("lake.failed.i"),
        "lake.failed.i",
        "append",
    ),
]


def refused(spark: Any, write: Refused) -> Statement:
    """Return what is told of a DataFrame write that Spark refuses, once another catalog is used."""
    writes = UnreportedStatements()
    with pytest.raises(AnalysisException):
        write(spark.range(3).selectExpr("id AS x", "id AS y"))
    note = writes.take()
    assert note is not None
    assert writes.take() is None
    writes.leave()
    assert note.message is not None
    assert "[" in note.message or "`" in note.message
    return PlanReader(spark).unreported(note)


@pytest.mark.parametrize(("write", "name", "operation"), FRAMES)
def test_refused_write_of_a_frame_names_its_target(
    lake: Any, write: Refused, name: str, operation: str | None
) -> None:
    statement = refused(lake, write)

    assert (output_name([statement]) or unread_output_name([statement])) == name
    assert [one.operation for one in statement.outputs] == ([operation] if operation else [])


@iceberg
@pytest.mark.parametrize(("write", "name", "operation"), LAKE_FRAMES)
def test_refused_write_of_a_frame_names_its_table_of_a_catalog(
    lake: Any, write: Refused, name: str, operation: str | None
) -> None:
    statement = refused(lake, write)

    assert output_name([statement]) == name
    assert [one.operation for one in statement.outputs] == [operation]


@iceberg
def test_refused_merge_names_its_target(lake: Any) -> None:
    if not hasattr(lake.range(1), "mergeInto"):
        pytest.skip("mergeInto is there since Spark 4")
    statement = refused(
        lake,
        lambda frame: (
            frame.mergeInto("lake.failed.i", expr("nowhere = id")).whenMatched().delete().merge()
        ),
    )

    assert output_name([statement]) == "lake.failed.i"
    assert [one.operation for one in statement.outputs] == ["merge"]


def test_refused_write_to_a_path_names_it(lake: Any, tmp_path: Path) -> None:
    there = str(tmp_path / "there")
    statement = refused(
        lake,
        lambda frame: frame.write.partitionBy("nowhere").save(
            format="parquet", mode="overwrite", path=there
        ),
    )

    assert [(one.dataset.name, one.operation) for one in statement.outputs] == [
        (there, "overwrite")
    ]


@iceberg
@pytest.mark.parametrize(
    ("current", "named"), [("lake.failed", "i"), ("lake", "failed.i"), ("lake", "lake.failed.i")]
)
def test_refused_write_goes_where_its_name_pointed_when_it_failed(
    lake: Any, current: str, named: str
) -> None:
    writes = UnreportedStatements()
    lake.sql(f"USE {current}")
    try:
        with pytest.raises(AnalysisException):
            lake.range(3).selectExpr("id AS x", "id AS y").writeTo(named).append()
    finally:
        lake.sql("USE spark_catalog.default")
    note = writes.take()
    assert note is not None

    assert output_name([PlanReader(lake).unreported(note)]) == "lake.failed.i"


def test_noting_an_error_loads_no_catalog(lake: Any) -> None:
    session = lake.newSession()
    session.conf.set("spark.sql.catalog.broken", "no.such.Catalog")
    session.conf.set("spark.sql.defaultCatalog", "broken")
    statements = UnreportedStatements()
    with pytest.raises(Exception, match="broken"):
        session.sql("INSERT INTO broken.db.t SELECT 1")
    note = statements.take()
    statements.leave()

    assert note is not None
    assert note.current == ("broken", None)


def test_write_that_spark_reports_is_not_noted_too(lake: Any, tmp_path: Path) -> None:
    writes = UnreportedStatements()
    with pytest.raises(AnalysisException):
        lake.range(3).selectExpr("id", "id AS ID").write.parquet(str(tmp_path / "twice"))

    assert writes.take() is None


UNREPORTED: list[tuple[Callable[[Any], Any], str]] = [
    (lambda spark: spark.sql("CREATE TABLE failed.n USING nosuch AS SELECT 1 AS id"), "failed.n"),
    (lambda spark: spark.sql("INSERT INTO broken.db.t SELECT 1"), "broken.db.t"),
    (lambda spark: spark.sql("DELETE FROM broken.db.t WHERE :x = 1", args=7), "broken.db.t"),
    (lambda spark: spark.range(1).write.saveAsTable("failed.n", format="nosuch"), "failed.n"),
    (lambda spark: spark.range(1).write.saveAsTable("failed.p", mode="often"), "failed.p"),
    (lambda spark: spark.range(1).writeTo("broken.db.t").append(), "broken.db.t"),
]


@pytest.mark.parametrize(("act", "name"), UNREPORTED)
def test_other_errors_before_an_execution_are_noted_once(
    lake: Any, act: Callable[[Any], Any], name: str
) -> None:
    lake.conf.set("spark.sql.catalog.broken", "no.such.Catalog")
    statements = UnreportedStatements()
    with pytest.raises(Exception, match=r"\S") as raised:
        act(lake)
    note = statements.take()
    assert note is not None
    assert statements.take() is None

    statement = PlanReader(lake).unreported(note)
    assert (output_name([statement]) or unread_output_name([statement])) == name
    message = str(note.message)
    told = (message.partition("Error: ")[2] or message)[:60]
    assert told
    assert told in str(raised.value)


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO failed.p SELEC 1",
        "INSERT INTO failed.p SELECT missing FROM failed.p",
        "INSERT INTO failed.p SELECT raise_error('late')",
    ],
)
def test_errors_that_spark_reports_or_cannot_parse_are_not_noted(lake: Any, sql: str) -> None:
    statements = UnreportedStatements()
    with pytest.raises(Exception, match=r"late|PARSE|UNRESOLVED"):
        lake.sql(sql)

    assert statements.take() is None


@delta
def test_error_of_a_task_is_not_noted_too(lake: Any) -> None:
    lake.sql("CREATE TABLE failed.checked (id INT) USING delta")
    lake.sql("ALTER TABLE failed.checked ADD CONSTRAINT positive CHECK (id > 0)")
    statements = UnreportedStatements()
    with pytest.raises(Exception, match="positive"):
        lake.sql("INSERT INTO failed.checked SELECT -1")

    assert statements.take() is None
