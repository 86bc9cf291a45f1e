"""Column lineage specific to Delta: generated columns and MERGE clauses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from fixtures.spark_lake import SPARK, needs
from fixtures.spark_lake.analysis import ended_execution
from strandline_spark import column_lineage
from strandline_spark.extraction.reader import PlanReader
from strandline_spark.jvm.event_queue import EventQueue

pytestmark = [
    pytest.mark.spark,
    needs("delta"),
]
GENERATED = [
    "id <- visits.id",
    "at <- visits.at",
    "day <- visits.at = CAST(at AS DATE)",
    "twice <- visits.id = (id * 2)",
]


@pytest.fixture(scope="module", autouse=True)
def tables(lake: Any) -> Iterator[None]:
    lake.sql("CREATE DATABASE generated")
    lake.sql("CREATE TABLE generated.visits (id bigint, at timestamp, name string) USING delta")
    table = lake._jvm.io.delta.tables.DeltaTable  # Delta 3 has no SQL for this
    days = table.create(lake._jsparkSession).tableName("generated.days")
    columns = {"id": "bigint", "at": "timestamp", "day": "date", "twice": "bigint"}
    made_of = {"day": "CAST(at AS DATE)", "twice": "id * 2"}
    for name, kind in columns.items():
        column = table.columnBuilder(lake._jsparkSession, name).dataType(kind)
        days = days.addColumn(
            (column.generatedAlwaysAs(made_of[name]) if name in made_of else column).build()
        )
    days.execute()
    yield
    lake.sql("DROP DATABASE generated CASCADE")


def rows(lake: Any, sql: str) -> list[str]:
    """Each origin of each column."""
    return [
        f"{row.target_column} <- {row.source_table.rpartition('.')[2]}.{row.source_column}"
        + (f" = {row.transform}" if row.transform else "")
        for row in column_lineage(lake, sql)
    ]


def test_generated_columns_come_from_their_source_columns(lake: Any) -> None:
    assert (
        rows(lake, "INSERT INTO generated.days (id, at) SELECT id, at FROM generated.visits")
        == GENERATED
    )


def test_generated_column_over_an_expression_is_expanded(lake: Any) -> None:
    found = rows(
        lake,
        "INSERT INTO generated.days (id, at) SELECT id + 1, current_timestamp() FROM generated.visits",
    )

    assert found == ["id <- visits.id = (id + 1)", "twice <- visits.id = ((id + 1) * 2)"]


def test_explicit_value_of_a_generated_column_wins(lake: Any) -> None:
    sql = "INSERT INTO generated.days SELECT id, at, CAST(at AS DATE), 2 * id FROM generated.visits"

    assert rows(lake, sql)[-1] == "twice <- visits.id = (2 * id)"


def test_append_by_path_has_all_columns_of_the_table_and_their_lineage(lake: Any) -> None:
    path = lake.sql("DESCRIBE DETAIL generated.days").select("location").first()[0]
    context = lake.sparkContext
    queue = EventQueue(context._gateway, 1000)
    queue.listen(context._jsc.sc())
    lake.table("generated.visits").select("id", "at").write.format("delta").mode("append").save(
        path
    )
    save = ended_execution(queue, "SaveIntoDataSourceCommand")
    queue.leave(context._jsc.sc())
    reader = PlanReader(lake)
    columns = reader.at_start(save).columns
    (output,) = reader.at_end(save).outputs

    assert [(column.name, [o.column for o in column.origins]) for column in columns] == [
        ("id", ["id"]),
        ("at", ["at"]),
        ("day", ["at"]),
        ("twice", ["id"]),
    ]
    assert [field.name for field in output.dataset.schema] == ["id", "at", "day", "twice"]


def test_merge_insert_clause_has_column_lineage(lake: Any) -> None:
    """`id` comes from the source through that clause only."""
    merge = """MERGE INTO generated.visits t USING (SELECT id AS key, at AS seen, name AS called FROM generated.days
        JOIN generated.visits USING (id, at)) s ON t.id = s.key
        WHEN MATCHED THEN UPDATE SET at = s.seen
        WHEN NOT MATCHED THEN INSERT (id, name) VALUES (s.key, upper(s.called))"""

    assert rows(lake, merge) == [
        "id <- days.id",
        "at <- days.at",
        "name <- visits.name = UPPER(name)",
    ]


def test_merge_recomputes_generated_columns(lake: Any) -> None:
    merge = """MERGE INTO generated.days t USING generated.visits s ON t.id = s.id
        WHEN MATCHED THEN UPDATE SET at = s.at WHEN NOT MATCHED THEN INSERT (id, at) VALUES (s.id, s.at)"""

    assert rows(lake, merge) == [
        "id <- visits.id",
        "at <- visits.at",
        "day <- visits.at = CAST(at AS DATE)",
        "twice <- days.id = (id * 2)",
        "twice <- visits.id = (id * 2)",
    ]


@pytest.mark.skipif(
    SPARK == "3.5", reason="Iceberg's extensions for Spark 3.5 fail on an UPDATE of a Delta table"
)
def test_update_recomputes_generated_columns(lake: Any) -> None:
    assert rows(lake, "UPDATE generated.days SET id = id + 1") == [
        "id <- days.id = (id + 1)",
        "day <- days.at = CAST(at AS DATE)",
        "twice <- days.id = ((id + 1) * 2)",
    ]


ALL = "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
NAMED = "WHEN MATCHED THEN UPDATE SET name = upper(s.name)"


@pytest.mark.parametrize(
    ("actions", "added"),
    [
        (ALL, ["id <- visits.id", "name <- visits.name"]),
        (NAMED, ["name <- visits.name = UPPER(name)"]),
    ],
)
def test_column_that_a_merge_adds_has_its_origin(lake: Any, actions: str, added: list[str]) -> None:
    lake.sql("CREATE OR REPLACE TABLE generated.few (id bigint) USING delta")
    lake.conf.set("spark.databricks.delta.schema.autoMerge.enabled", "true")
    try:
        source = "(SELECT id, name FROM generated.visits)"
        found = rows(lake, f"MERGE INTO generated.few t USING {source} s ON t.id = s.id {actions}")
    finally:
        lake.conf.unset("spark.databricks.delta.schema.autoMerge.enabled")

    assert found == added


def test_table_that_a_merge_gave_a_column_has_it(lake: Any) -> None:
    lake.sql("CREATE OR REPLACE TABLE generated.few (id bigint) USING delta")
    merge = f"""MERGE WITH SCHEMA EVOLUTION INTO generated.few t USING
        (SELECT id, name FROM generated.visits) s ON t.id = s.id {ALL}"""
    done = PlanReader(lake).at_end(lake.sql(merge)._jdf.queryExecution())

    (output,) = done.outputs
    assert [(field.name, field.type) for field in output.dataset.schema] == [
        ("id", "bigint"),
        ("name", "string"),
    ]
