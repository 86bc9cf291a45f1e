"""Attribution of Delta versions among concurrent statements and another writer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from fixtures.spark_lake import SPARK, needs
from strandline_spark.extraction.reader import PlanReader

pytestmark = [
    pytest.mark.spark,
    needs("delta"),
]


@pytest.fixture
def place(lake: Any, tmp_path: Path) -> Iterator[str]:
    """The folder of the table `whose`, which has version 0."""
    lake.sql(f"CREATE TABLE whose (k bigint, v string) USING delta LOCATION '{tmp_path}/whose'")
    yield f"{tmp_path}/whose"
    lake.sql("DROP TABLE whose")


def told(spark: Any, *statements: str, then: Any = None) -> list[str]:
    """The version that each made, read after all of them.

    With a question mark, if it is only observed.
    """
    executions = [spark.sql(statement)._jdf.queryExecution() for statement in statements]
    if then is not None:
        then()
    made = (
        PlanReader(spark).at_end(execution).outputs[0].dataset.snapshots[0]
        for execution in executions
    )
    return [one.snapshot_id + ("?" if one.observed else "") for one in made]


@pytest.mark.skipif(
    SPARK == "3.5", reason="Iceberg's extensions for Spark 3.5 fail on an UPDATE of a Delta table"
)
def test_each_statement_finds_its_version_among_concurrent_ones(lake: Any, place: str) -> None:
    from deltalake import write_deltalake

    def rival() -> None:
        for number in range(3):
            write_deltalake(place, pa.table({"k": [number], "v": ["rival"]}), mode="append")

    assert told(
        lake,
        "INSERT INTO whose VALUES (1, 'a'), (2, 'b'), (3, 'c')",
        "MERGE INTO whose AS t USING (SELECT 1L AS k, 'm' AS v) AS s ON t.k = s.k WHEN MATCHED THEN UPDATE SET *",
        "UPDATE whose SET v = 'u' WHERE k = 2",
        "DELETE FROM whose WHERE k = 3",
        then=rival,
    ) == ["1", "2", "3", "4"]


def test_similar_concurrent_inserts_are_observed(lake: Any, place: str) -> None:
    insert = "INSERT INTO whose VALUES (1, 'a')"

    assert told(lake, insert, insert) == ["2?", "2"]  # the first was over before the second began


@pytest.mark.slow
def test_version_far_behind_the_newest_is_observed(lake: Any, place: str) -> None:
    from deltalake import write_deltalake

    def rival() -> None:
        for number in range(205):
            write_deltalake(place, pa.table({"k": [number], "v": ["rival"]}), mode="append")
        lake.sql("INSERT INTO whose VALUES (9, 'z')")

    assert told(lake, "INSERT INTO whose VALUES (1, 'a')", then=rival) == ["207?"]
