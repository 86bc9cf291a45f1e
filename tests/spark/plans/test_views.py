"""A view that a statement reads is an input beside the tables below it, by Spark's name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from fixtures.spark_lake import formats, needs
from strandline_spark.consistency.table_identity import Identities
from strandline_spark.extraction.reader import PlanReader
from strandline_spark.model.statement import Statement

pytestmark = pytest.mark.spark
iceberg = needs("iceberg")
delta = needs("delta")


@pytest.fixture(scope="module", autouse=True)
def database(lake: Any) -> Iterator[None]:
    lake.sql("CREATE DATABASE seen")
    if "iceberg" in formats():
        lake.sql("CREATE NAMESPACE lake.seen")
    yield
    lake.sql("DROP DATABASE seen CASCADE")


def read_by(frame: Any, rows_after: int) -> Statement:
    """Return what a query reads, its plan asked for as JSON, or as rows."""
    return PlanReader(frame.sparkSession, rows_after).at_start(frame._jdf.queryExecution())


def tables(statement: Statement) -> set[str | None]:
    """Return the inputs by Spark's names."""
    return {dataset.table for dataset in statement.inputs}


@pytest.mark.parametrize("rows_after", [0, 200_000])
@pytest.mark.parametrize("provider", ["parquet", pytest.param("delta", marks=delta)])
def test_view_is_an_input_beside_its_tables(lake: Any, provider: str, rows_after: int) -> None:
    table = f"{provider}_{rows_after}"
    lake.sql(f"CREATE TABLE seen.{table} USING {provider} AS SELECT 1 AS id")
    lake.sql(f"CREATE VIEW seen.v_{table} AS SELECT id, id + 1 AS next FROM seen.{table}")
    lake.sql(f"CREATE VIEW seen.w_{table} AS SELECT next FROM seen.v_{table}")
    base, view, outer = (f"spark_catalog.seen.{name}{table}" for name in ("", "v_", "w_"))
    frame = lake.table(f"seen.v_{table}").select("next")
    statement = read_by(frame, rows_after)

    assert tables(statement) == {base, view}
    assert {one.table for one in Identities(lake).behind(f"seen.v_{table}")} == {base}
    assert statement.inputs[0].table == base  # a job that only reads is called after it
    assert (statement.inputs[1].name, statement.inputs[1].format) == (view, "view")
    assert [link.name for link in statement.inputs[1].symlinks] == [f"seen.v_{table}"]
    frame.createOrReplaceTempView("passing")
    for query, read in (
        ("SELECT next FROM passing", {base, view}),
        (f"SELECT next FROM {outer}", {base, outer}),
        (f"SELECT id FROM seen.{table} WHERE id IN (SELECT id FROM {view})", {base, view}),
        (f"WITH unused AS (SELECT * FROM {view}) SELECT id FROM seen.{table}", {base}),
    ):
        assert tables(read_by(lake.sql(query), rows_after)) == read


@iceberg
@pytest.mark.parametrize("rows_after", [0, 200_000])
def test_view_of_icebergs_catalog_is_an_input(lake: Any, rows_after: int) -> None:
    table = f"lake.seen.t_{rows_after}"
    lake.sql(f"CREATE TABLE {table} USING iceberg AS SELECT 1 AS id")
    made = lake.sql(f"CREATE VIEW lake.seen.v_{rows_after} AS SELECT id + 1 AS next FROM {table}")
    created = PlanReader(lake).at_end(made._jdf.queryExecution()).outputs[0].dataset
    frame = (
        lake.table(f"lake.seen.v_{rows_after}").alias("other").join(lake.table(table).alias("x"))
    )
    frame.collect()
    statement = PlanReader(lake, rows_after).at_end(frame._jdf.queryExecution())

    assert tables(statement) == {table, f"lake.seen.v_{rows_after}"}
    assert statement.unread == ()
    assert statement.inputs[1].name == created.name == f"lake.seen.v_{rows_after}"
    assert statement.inputs[1].snapshots == ()
    whole = lake.sql(f"SELECT * FROM (SELECT * FROM {table}) AS inner_query")
    assert tables(read_by(whole, rows_after)) == {table}


def test_view_that_is_made_and_read_is_one_dataset(lake: Any) -> None:
    lake.sql("CREATE TABLE seen.base USING parquet AS SELECT 1 AS id")
    execution = lake.sql("CREATE VIEW seen.v AS SELECT id FROM seen.base")._jdf.queryExecution()
    made = PlanReader(lake).at_end(execution).outputs[0].dataset
    read = read_by(lake.table("seen.v"), 0).inputs[1]

    assert (made.namespace, made.name) == (read.namespace, read.name)
    assert made.name == "spark_catalog.seen.v"
