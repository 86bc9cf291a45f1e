"""A rename names the table's identity before; a change of columns tells the new ones."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fixtures.spark_lake import formats, needs
from fixtures.spark_lake.analysis import analysed
from strandline_spark.extraction.reader import PlanReader
from strandline_spark.model.statement import Output, Statement
from strandline_spark.openlineage.datasets import outputs_of

pytestmark = pytest.mark.spark
iceberg = needs("iceberg")
delta = needs("delta")


@pytest.fixture(scope="module", autouse=True)
def database(lake: Any) -> Iterator[None]:
    lake.sql("CREATE DATABASE moved")
    if "iceberg" in formats():
        lake.sql("CREATE NAMESPACE lake.moved")
    yield
    lake.sql("DROP DATABASE moved CASCADE")


def done(spark: Any, statement: str) -> Output:
    """Return what a statement wrote, read once it is over."""
    statement_done = PlanReader(spark).at_end(spark.sql(statement)._jdf.queryExecution())
    return statement_done.outputs[0]


def identity_before(output: Output) -> tuple[str, str] | None:
    """Return namespace and name that the standard facet calls the previous identifier."""
    facets: Any = outputs_of([Statement("Rename", outputs=(output,))])[0].facets
    previous = facets["lifecycleStateChange"].previousIdentifier
    return (previous.namespace, previous.name)


def home(spark: Any) -> str:
    return str(spark.conf.get("spark.sql.warehouse.dir")).removeprefix("file:")


@pytest.mark.parametrize("provider", ["parquet", pytest.param("delta", marks=delta)])
def test_managed_table_moves_its_folder(lake: Any, provider: str) -> None:
    name = f"m_{provider}"
    lake.sql(f"CREATE TABLE moved.{name} USING {provider} AS SELECT 1 AS id")
    output = done(lake, f"ALTER TABLE moved.{name} RENAME TO moved.{name}_old")

    assert output.operation == "rename"
    assert output.dataset.name == f"{home(lake)}/moved.db/{name}_old"
    assert output.dataset.table == f"spark_catalog.moved.{name}_old"
    assert identity_before(output) == ("file", f"{home(lake)}/moved.db/{name}")
    assert output.dataset.symlinks[0].name == f"moved.{name}_old"


def test_rename_that_has_not_run_yet_says_the_same(lake: Any) -> None:
    lake.sql("CREATE TABLE moved.later USING parquet AS SELECT 1 AS id")
    execution = analysed(lake, "ALTER TABLE moved.later RENAME TO moved.earlier")
    reader = PlanReader(lake)
    start, end = reader.at_start(execution).outputs, reader.at_end(execution).outputs[0]

    assert start == ()  # it may fail
    assert end.dataset.name == f"{home(lake)}/moved.db/earlier"
    assert identity_before(end) == ("file", f"{home(lake)}/moved.db/later")


def test_external_table_stays_and_changes_its_symlink(lake: Any, tmp_path: Path) -> None:
    lake.sql(f"CREATE TABLE moved.outside USING parquet LOCATION '{tmp_path}/x' AS SELECT 1 AS id")
    output = done(lake, "ALTER TABLE moved.outside RENAME TO moved.elsewhere")

    assert output.dataset.name == f"{tmp_path}/x"
    link = output.dataset.symlinks[0]
    assert link.name == "moved.elsewhere"
    assert identity_before(output) == (link.namespace, "moved.outside")


@iceberg
def test_iceberg_table_stays_and_changes_its_symlink(lake: Any) -> None:
    lake.sql("CREATE TABLE lake.moved.t USING iceberg AS SELECT 1 AS id")
    place = lake.sql("DESCRIBE EXTENDED lake.moved.t").filter("col_name = 'Location'").first()[1]
    output = done(lake, "ALTER TABLE lake.moved.t RENAME TO moved.u")

    assert output.dataset.name == place.removeprefix("file://")
    assert output.dataset.table == "lake.moved.u"
    link = output.dataset.symlinks[0]
    assert link.name == "moved.u"
    assert identity_before(output) == (link.namespace, "moved.t")
    assert lake.table("lake.moved.u").count() == 1


def test_view_is_renamed(lake: Any) -> None:
    lake.sql("CREATE VIEW moved.v AS SELECT 1 AS id")
    output = done(lake, "ALTER VIEW moved.v RENAME TO moved.w")

    assert (output.dataset.name, output.dataset.format) == ("spark_catalog.moved.w", "view")
    assert identity_before(output) == (output.dataset.namespace, "spark_catalog.moved.v")


def test_event_has_the_standard_facet(lake: Any) -> None:
    lake.sql("CREATE TABLE moved.one USING parquet AS SELECT 1 AS id")
    execution = lake.sql("ALTER TABLE moved.one RENAME TO moved.two")._jdf.queryExecution()
    facets = outputs_of([PlanReader(lake).at_end(execution)])[0].facets or {}
    change: Any = facets["lifecycleStateChange"]

    assert change.lifecycleStateChange.value == "RENAME"
    assert change.previousIdentifier.name == f"{home(lake)}/moved.db/one"


@pytest.mark.parametrize(
    "table",
    [
        "moved.wider USING parquet",
        pytest.param("moved.wider_delta USING delta", marks=delta),
        pytest.param("lake.moved.wider USING iceberg", marks=iceberg),
    ],
)
def test_change_of_columns_tells_the_new_ones(lake: Any, table: str) -> None:
    lake.sql(f"CREATE TABLE {table} AS SELECT 1 AS id")
    output = done(lake, f"ALTER TABLE {table.partition(' ')[0]} ADD COLUMNS (x INT)")

    assert output.operation == "alter"
    assert [field.name for field in output.dataset.schema] == ["id", "x"]


@pytest.mark.parametrize(
    "table",
    [
        pytest.param("moved.columns USING delta", marks=delta),
        pytest.param("lake.moved.columns USING iceberg", marks=iceberg),
    ],
)
def test_rename_of_a_column_tells_both_names(lake: Any, table: str) -> None:
    name = table.partition(" ")[0]
    mapped = " TBLPROPERTIES ('delta.columnMapping.mode' = 'name')" if "delta" in table else ""
    lake.sql(f"CREATE TABLE {name} (id INT, it STRUCT<old: INT>) {table.partition(' ')[2]}{mapped}")
    execution = analysed(lake, f"ALTER TABLE {name} RENAME COLUMN id TO number")
    start = PlanReader(lake).at_start(execution).outputs[0]
    output = done(lake, f"ALTER TABLE {name} RENAME COLUMN id TO number")
    inside = done(lake, f"ALTER TABLE {name} RENAME COLUMN it.old TO new")
    facets: Any = outputs_of([Statement("RenameColumn", outputs=(output,))])[0].outputFacets

    assert (output.operation, output.renamed) == ("alter", {"id": "number"})
    assert [field.name for field in output.dataset.schema] == ["number", "it"]
    assert (start.renamed, inside.renamed) == ({}, {"it.old": "it.new"})
    assert facets["strandline_snapshot"].renamedColumns == {"id": "number"}


def test_name_goes_to_another_folder_by_set_location(lake: Any, tmp_path: Path) -> None:
    lake.sql("CREATE TABLE moved.placed USING parquet AS SELECT 1 AS id")
    output = done(lake, f"ALTER TABLE moved.placed SET LOCATION '{tmp_path}/there'")

    assert (output.operation, output.dataset.name) == ("alter", f"{tmp_path}/there")
    assert output.dataset.symlinks[0].name == "moved.placed"
