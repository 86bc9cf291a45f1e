"""Column lineage of PySpark DataFrames where they differ from SQL."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fixtures.spark_lake import needs
from fixtures.spark_lake.analysis import (
    analysed,
    column_origins,
    deciding_columns,
    ended_execution,
)
from strandline_spark import column_lineage
from strandline_spark.extraction.reader import PlanReader
from strandline_spark.jvm.event_queue import EventQueue

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def orders(lake: Any) -> Any:
    """Named otherwise than the other tests' tables."""
    lake.sql(
        "CREATE TABLE frame_orders (id bigint, status string, amount int, address struct<city: string, zip: string>)"
        " USING parquet"
    )
    yield lake.table("frame_orders")
    lake.sql("DROP TABLE frame_orders")


def rows_of(frame: Any) -> list[str]:
    """Return the origins of the columns, then the columns that decide, and what is opaque."""
    statement = PlanReader(frame.sparkSession).at_start(frame._jdf.queryExecution())
    return [
        *column_origins(statement),
        *sorted(deciding_columns(statement)),
        *statement.opaque,
    ]


def test_unstarted_stream_has_column_lineage(orders: Any, tmp_path: Path) -> None:
    """Streams of files and of a catalog table are each joined with a static table."""
    spark = orders.sparkSession
    sources = {"arriving": spark.readStream.schema("id bigint, amount int").parquet(str(tmp_path))}
    sources["added"] = spark.readStream.table("frame_orders")
    found = {}
    for name, source in sources.items():
        source.createOrReplaceTempView(name)
        rows = column_lineage(
            spark,
            f"SELECT s.amount + 1 AS more, o.status FROM {name} s JOIN frame_orders o USING (id)",
        )
        found[name] = [
            (row.source_table, row.source_column, row.target_column, row.transform) for row in rows
        ]

    status = ("spark_catalog.default.frame_orders", "status", "status", None)
    assert found == {
        "arriving": [(str(tmp_path), "amount", "more", "(amount + 1)"), status],
        "added": [("spark_catalog.default.frame_orders", "amount", "more", "(amount + 1)"), status],
    }


def test_pivot_of_two_aggregates_has_column_lineage(orders: Any) -> None:
    from pyspark.sql import functions as f

    frame = (
        orders.groupBy("id")
        .pivot("status", ["paid"])
        .agg(f.sum("amount").alias("s"), f.max("id").alias("n"))
    )

    assert rows_of(frame.withColumnsRenamed({"paid_s": "s"}).drop("paid_n")) == [
        "id <- id IDENTITY",
        "s <- amount AGGREGATION",
        "GROUP_BY id",
        "GROUP_BY status",
    ]


def test_unpivot_has_column_lineage(orders: Any) -> None:
    frame = orders.selectExpr("id", "amount", "id + 1 AS next").unpivot(
        "id", ["amount", "next"], "what", "value"
    )

    whole = ["id <- id IDENTITY", "value <- amount IDENTITY", "value <- id TRANSFORMATION"]
    assert rows_of(frame) == whole
    assert rows_of(frame.where("value > 1").select("value")) == [
        "value <- amount IDENTITY",
        "value <- id TRANSFORMATION",
        "FILTER amount",
        "FILTER id",
    ]


def test_melt_into_files_has_column_lineage(orders: Any, tmp_path: Path) -> None:
    frame = orders.melt(
        ids=["id"], values=["amount"], variableColumnName="what", valueColumnName="value"
    )
    frame.createOrReplaceTempView("melted")
    command = f"INSERT OVERWRITE DIRECTORY '{tmp_path}/out' USING parquet SELECT * FROM melted"

    spark = orders.sparkSession
    written = PlanReader(spark).at_start(analysed(spark, command))

    assert [(column.name, [o.column for o in column.origins]) for column in written.columns] == [
        ("id", ["id"]),
        ("value", ["amount"]),
    ]
    assert written.opaque == ()


def test_fillna_and_dropna_have_column_lineage(orders: Any) -> None:
    frame = (
        orders.select("id", "status", "amount").na.fill({"status": "x"}).na.drop(subset=["amount"])
    )

    assert rows_of(frame) == [
        "id <- id IDENTITY",
        "status <- status TRANSFORMATION",
        "amount <- amount IDENTITY",
        "FILTER amount",
    ]


def test_drop_duplicates_reports_its_columns(orders: Any) -> None:
    assert rows_of(orders.dropDuplicates(["status"]).select("amount")) == [
        "amount <- amount IDENTITY",
        "GROUP_BY status",
    ]
    assert rows_of(orders.select("amount").distinct()) == [
        "amount <- amount IDENTITY",
        "GROUP_BY amount",
    ]


def test_union_by_name_fills_missing_columns(orders: Any) -> None:
    frame = orders.select("id", "status").unionByName(
        orders.select("id", "amount"), allowMissingColumns=True
    )

    assert rows_of(frame) == [
        "id <- id IDENTITY",
        "status <- status IDENTITY",
        "amount <- amount IDENTITY",
    ]


def test_struct_fields_are_followed_in_and_out(orders: Any) -> None:
    from pyspark.sql import functions as f

    struct = (
        f.col("address")
        .withField("city", f.upper("status"))
        .withField("of", f.col("id"))
        .dropFields("zip")
    )
    frame = orders.select(struct.alias("s")).select("s", "s.city", "s.of")

    assert rows_of(frame) == [
        "s <- address TRANSFORMATION",
        "s <- status TRANSFORMATION",
        "s <- id TRANSFORMATION",
        "city <- status TRANSFORMATION",
        "of <- id IDENTITY",
    ]
    assert rows_of(
        orders.select(f.col("address").withField("city", f.lit("x"))["zip"].alias("zip"))
    ) == ["zip <- address TRANSFORMATION"]


def test_field_of_a_maximum_struct_has_column_lineage(orders: Any) -> None:
    from pyspark.sql import functions as f

    newest = (
        orders.groupBy("id").agg(f.max(f.struct("amount", "status")).alias("m")).select("m.status")
    )

    assert rows_of(newest) == [
        "status <- amount CONDITIONAL",
        "status <- status AGGREGATION",
        "GROUP_BY id",
    ]


def test_describe_has_column_lineage(orders: Any) -> None:
    assert rows_of(orders.describe("amount")) == ["amount <- amount AGGREGATION"]


def test_array_literals_do_not_hide_filter_columns(orders: Any) -> None:
    from pyspark.sql import functions as f

    frame = orders.where(f.array_contains(f.lit(["a", "b"]), f.col("status"))).select("id")

    assert rows_of(frame) == ["id <- id IDENTITY", "FILTER status"]


def test_observations_hints_and_samples_change_nothing(orders: Any) -> None:
    from pyspark.sql import functions as f

    frame = (
        orders.observe("seen", f.max("amount").alias("most")).hint("broadcast").sample(0.5, seed=1)
    )

    assert rows_of(frame.repartition(2, "amount").select("id")) == ["id <- id IDENTITY"]


@pytest.mark.filterwarnings(
    "ignore:distutils:DeprecationWarning"
)  # Spark 3.5 asks for the version of pandas with it
def test_user_code_over_whole_rows_is_opaque(orders: Any) -> None:
    pytest.importorskip("pandas")

    assert rows_of(orders.select("id").mapInPandas(lambda rows: rows, "id long")) == ["MapInPandas"]


def test_columns_about_files_come_from_no_column(orders: Any) -> None:
    frame = orders.selectExpr(
        "id", "_metadata.file_path AS lies_in", "input_file_name() AS read_from"
    )

    assert rows_of(frame) == ["id <- id IDENTITY"]


def test_stored_metadata_of_files_are_a_column_of_their_table(orders: Any) -> None:
    spark = orders.sparkSession
    orders.select("id", "_metadata").write.saveAsTable("frame_bronze")
    try:
        bronze = spark.table("frame_bronze")
        copied = PlanReader(spark).at_start(bronze._jdf.queryExecution())
        origins = rows_of(bronze)
        own = rows_of(bronze.selectExpr("_metadata.file_path AS lies_in"))
    finally:
        spark.sql("DROP TABLE frame_bronze")

    assert [field.name for field in copied.inputs[0].schema] == ["id", "_metadata"]
    assert origins == ["id <- id IDENTITY", "_metadata <- _metadata IDENTITY"]
    assert own == ["lies_in <- _metadata.file_path IDENTITY"]


@needs("iceberg")
@pytest.mark.parametrize(
    ("added", "origins"), [("upper(status)", ["status <- status TRANSFORMATION"]), ("'new'", [])]
)
def test_column_that_an_append_adds_is_the_tables_with_its_origin(
    orders: Any, queue: EventQueue, added: str, origins: list[str]
) -> None:
    spark = orders.sparkSession
    spark.sql(
        "CREATE OR REPLACE TABLE lake.db.growing (id BIGINT) USING iceberg"
        " TBLPROPERTIES ('write.spark.accept-any-schema' = 'true')"
    )
    more = orders.selectExpr("id", f"{added} AS status")
    more.writeTo("lake.db.growing").option("mergeSchema", "true").append()
    statement = PlanReader(spark).at_end(ended_execution(queue, "AppendData"))

    assert column_origins(statement) == ["id <- id IDENTITY", *origins]
    assert [field.name for field in statement.outputs[0].dataset.schema] == ["id", "status"]
