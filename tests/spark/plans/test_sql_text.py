"""The SQL text of a statement, if it was written in SQL."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fixtures.spark_lake import formats
from fixtures.spark_lake.analysis import analysed, ended_execution
from strandline_spark.extraction.reader import PlanReader
from strandline_spark.jvm.event_queue import EventQueue

pytestmark = pytest.mark.spark
KIND = next((name for name in ("iceberg", "delta") if name in formats()), "parquet")
SCHEMA = "lake.texts" if KIND == "iceberg" else "texts"


@pytest.fixture(scope="module", autouse=True)
def tables(lake: Any) -> None:
    lake.sql(f"CREATE NAMESPACE {SCHEMA}")
    for name in ("orders", "copied"):
        lake.sql(f"CREATE TABLE {SCHEMA}.{name} (id bigint, status string) USING {KIND}")
    lake.sql(f"SELECT id FROM {SCHEMA}.orders").createOrReplaceTempView("chosen")


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO {s}.copied SELECT id, 'x' FROM {s}.orders",
        "INSERT OVERWRITE {s}.copied SELECT * FROM {s}.orders",
        "CREATE TABLE {s}.made USING {k} AS SELECT id FROM {s}.orders",
        "FROM {s}.orders INSERT INTO {s}.copied SELECT * INSERT INTO {s}.orders SELECT *",
    ],
)
def test_sql_statement_has_its_text(lake: Any, statement: str) -> None:
    text = statement.format(s=SCHEMA, k=KIND)
    read = PlanReader(lake).at_start(analysed(lake, text))

    assert [one.sql for one in (read.branches or (read,))] == [text] * max(1, len(read.branches))


def test_data_frame_of_a_whole_sql_query_has_its_text(
    lake: Any, queue: EventQueue, tmp_path: Path
) -> None:
    query = f"SELECT id FROM {SCHEMA}.orders WHERE status = 'a'"
    frames = {
        "whole": lake.sql(query),
        "part": lake.sql(query).where("id > 1"),
        "view": lake.table("chosen"),
        "table": lake.table(f"{SCHEMA}.orders"),
    }
    found = {}
    for name, frame in frames.items():
        frame.write.parquet(str(tmp_path / name))
        found[name] = (
            PlanReader(lake).at_start(ended_execution(queue, "HadoopFsRelationCommand")).sql
        )

    assert found == {"whole": query, "part": None, "view": None, "table": None}
