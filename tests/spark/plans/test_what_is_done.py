"""Statements report exactly what they did, including no-ops and hidden operations."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fixtures.spark_lake import formats, needs
from fixtures.spark_lake.analysis import iceberg_queue, reports_in
from strandline_spark.extraction.reader import PlanReader
from strandline_spark.model.statement import Statement

pytestmark = pytest.mark.spark
iceberg = needs("iceberg")
delta = needs("delta")


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
def test_create_if_not_exists_of_an_existing_table_writes_nothing(lake: Any, table: str) -> None:
    queue = iceberg_queue(lake)
    creation = execution(lake, f"CREATE TABLE IF NOT EXISTS {table} AS SELECT 1 AS id")
    commits = reports_in(queue)
    made = PlanReader(lake).at_end(creation, commits)
    time.sleep(2.5)  # longer than a statement takes from its analysis to its table
    again = told(lake, f"CREATE TABLE IF NOT EXISTS {table} AS SELECT id AS other FROM range(3)")

    assert [one.operation for one in made.outputs] == ["create"]
    assert (again.inputs, again.outputs) == ((), ())


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("done.young", "CREATE TABLE IF NOT EXISTS done.young (id INT) USING parquet"),
        ("done.young_view", "CREATE VIEW IF NOT EXISTS done.young_view AS SELECT 1 AS id"),
        ("done.young_like", "CREATE TABLE IF NOT EXISTS done.young_like LIKE done.parquet"),
    ],
)
def test_what_the_application_has_just_made_is_not_made_again(
    lake: Any, name: str, command: str
) -> None:
    lake.sql("CREATE TABLE IF NOT EXISTS done.parquet (id INT) USING parquet")
    reader = PlanReader(lake)
    first, again = (reader.at_end(execution(lake, command)) for _ in range(2))
    kind = "VIEW" if "VIEW" in command else "TABLE"
    lake.sql(f"DROP {kind} {name}")
    reader.at_end(execution(lake, f"DROP {kind} IF EXISTS {name}"))
    anew = reader.at_end(execution(lake, command))

    assert [output.operation for output in first.outputs] == ["create"]
    assert again.outputs == ()
    assert [output.operation for output in anew.outputs] == ["create"]


def test_partition_that_must_not_exist_is_overwritten_once(lake: Any) -> None:
    lake.sql("CREATE TABLE done.days (id INT, day STRING) USING parquet PARTITIONED BY (day)")
    reader = PlanReader(lake)
    command = "INSERT OVERWRITE done.days PARTITION (day = '1') IF NOT EXISTS SELECT 1 AS id"
    first, again = (reader.at_end(execution(lake, command)) for _ in range(2))

    assert [output.operation for output in first.outputs] == ["overwrite"]
    assert (again.inputs, again.outputs) == ((), ())
    assert lake.table("done.days").count() == 1


def test_table_like_another_is_made_without_rows(lake: Any, tmp_path: Path) -> None:
    lake.sql("CREATE TABLE done.pattern (id INT, v STRING) USING parquet")
    place = f"{tmp_path}/elsewhere"
    made = [
        told(lake, f"CREATE TABLE done.{name} LIKE done.pattern {more}").outputs[0]
        for name, more in (("like_it", ""), ("as_orc", f"USING orc LOCATION '{place}'"))
    ]

    assert [(o.dataset.table, o.operation) for o in made] == [
        ("spark_catalog.done.like_it", "create"),
        ("spark_catalog.done.as_orc", "create"),
    ]
    assert made[0].dataset.name.endswith("/done.db/like_it")
    assert made[1].dataset.name == place
    assert [field.name for field in made[0].dataset.schema] == ["id", "v"]


@delta
def test_conversion_to_delta_is_the_first_version_and_is_done_once(lake: Any) -> None:
    lake.sql("CREATE TABLE done.files USING parquet AS SELECT 1 AS id")
    reader = PlanReader(lake)
    converted, again = (
        reader.at_end(execution(lake, "CONVERT TO DELTA done.files")) for _ in range(2)
    )
    (output,) = converted.outputs

    assert output.dataset.name.endswith("/done.db/files")
    assert [(s.snapshot_id, s.was_empty) for s in output.dataset.snapshots] == [("0", False)]
    assert again.outputs == ()


@delta
def test_delta_table_like_another_is_made(lake: Any) -> None:
    output = told(lake, "CREATE TABLE done.empty LIKE done.pattern USING delta").outputs[0]

    assert (output.dataset.table, output.operation) == ("spark_catalog.done.empty", "create")


@delta
def test_dynamic_overwrite_of_delta_is_an_overwrite(lake: Any) -> None:
    lake.sql("CREATE TABLE done.parts (id bigint, p string) USING delta PARTITIONED BY (p)")
    lake.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    try:
        statement = told(lake, "INSERT OVERWRITE done.parts SELECT id + 1, p FROM done.parts")
    finally:
        lake.conf.unset("spark.sql.sources.partitionOverwriteMode")

    assert [(one.dataset.table, one.operation) for one in statement.outputs] == [
        ("spark_catalog.done.parts", "overwrite")
    ]
    assert [(one.name, one.origins[0].transform) for one in statement.columns] == [
        ("id", "(id + 1)"),
        ("p", None),
    ]


@pytest.mark.parametrize(
    ("command", "operation"),
    [
        ("TRUNCATE TABLE done.parted PARTITION (p = 'a')", "alter"),
        ("ALTER TABLE done.parted DROP PARTITION (p = 'a')", "alter"),
        ("TRUNCATE TABLE done.parted", "truncate"),
    ],
)
def test_loss_of_a_partition_alters_its_table(lake: Any, command: str, operation: str) -> None:
    lake.sql("CREATE TABLE done.parted (id INT, p STRING) USING parquet PARTITIONED BY (p)")
    try:
        lake.sql("INSERT INTO done.parted VALUES (1, 'a'), (2, 'b')")
        statement = PlanReader(lake).at_end(execution(lake, command))
    finally:
        lake.sql("DROP TABLE done.parted")

    assert [(one.dataset.table, one.operation) for one in statement.outputs] == [
        ("spark_catalog.done.parted", operation)
    ]


@delta
def test_truncate_of_delta_is_reported(lake: Any) -> None:
    lake.sql("CREATE TABLE done.emptied USING delta AS SELECT 1 AS id")

    statement = PlanReader(lake).at_end(execution(lake, "TRUNCATE TABLE done.emptied"))

    assert [(one.dataset.table, one.operation) for one in statement.outputs] == [
        ("spark_catalog.done.emptied", "truncate")
    ]
    assert [one.snapshot_id for one in statement.outputs[0].dataset.snapshots] == ["1"]


@iceberg
def test_branch_write_belongs_to_its_table(lake: Any) -> None:
    queue = iceberg_queue(lake)
    lake.sql("CREATE TABLE lake.done.branched (id bigint) USING iceberg")
    lake.sql("INSERT INTO lake.done.branched VALUES (1)")
    lake.sql("ALTER TABLE lake.done.branched CREATE BRANCH tried")
    reports_in(queue)
    insert = execution(lake, "INSERT INTO lake.done.branched.branch_tried VALUES (2)")
    commits = reports_in(queue)

    written = PlanReader(lake).at_end(insert, commits).outputs[0].dataset
    refs = lake.sql(
        "SELECT snapshot_id FROM lake.done.branched.refs WHERE name = 'tried'"
    ).collect()
    assert [one.snapshot_id for one in written.snapshots] == [str(refs[0]["snapshot_id"])]
    assert (written.table, [link.name for link in written.symlinks]) == (
        "lake.done.branched",
        ["done.branched"],
    )


@iceberg
def test_table_whose_name_has_a_dot_has_the_snapshot_that_was_written(lake: Any) -> None:
    queue = iceberg_queue(lake)
    insert = execution(lake, "CREATE TABLE lake.done.`x.y` USING iceberg AS SELECT 1 AS id")
    commits = reports_in(queue)

    written = PlanReader(lake).at_end(insert, commits).outputs[0].dataset
    made = lake.sql("SELECT snapshot_id FROM lake.done.`x.y`.snapshots").first()
    assert written.table == "lake.done.`x.y`"
    assert [one.snapshot_id for one in written.snapshots] == [str(made["snapshot_id"])]
