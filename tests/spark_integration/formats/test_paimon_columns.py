"""Columns of the commands that Paimon has of its own, where it has a runtime: Spark 3.5."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from spark_lake import formats
from strandline_spark.columns import column_lineage

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif("paimon" not in formats(), reason="Paimon has no runtime for this Spark"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),  # PySpark leaves sockets to the gc
]


@pytest.fixture(scope="module")
def shop(lake: Any) -> Iterator[Any]:
    lake.sql("CREATE DATABASE IF NOT EXISTS paimon.shop")
    for name in ("people", "news"):
        key = "TBLPROPERTIES ('primary-key' = 'id')"
        lake.sql(f"CREATE TABLE paimon.shop.{name} (id bigint, name string, city string) USING paimon {key}")
    yield lake
    lake.sql("DROP DATABASE paimon.shop CASCADE")


def rows(spark: Any, sql: str) -> list[str]:
    found = column_lineage(spark, sql)
    return [f"{r.target_column} <- {r.source_table}.{r.source_column} = {r.transform}" for r in found]


def test_merge(shop: Any) -> None:
    sql = """MERGE INTO paimon.shop.people AS t USING paimon.shop.news AS s ON t.id = s.id
        WHEN MATCHED THEN UPDATE SET t.name = upper(s.name)
        WHEN NOT MATCHED THEN INSERT (id, name, city) VALUES (s.id, s.name, 'x')"""

    assert rows(shop, sql) == [
        "id <- paimon.shop.news.id = None",
        "name <- paimon.shop.news.name = UPPER(name)",
        "name <- paimon.shop.news.name = None",
    ]


def test_update(shop: Any) -> None:
    sql = "UPDATE paimon.shop.people SET name = concat(name, city) WHERE id = 3"

    assert rows(shop, sql) == [
        "name <- paimon.shop.people.name = CONCAT(name, city)",
        "name <- paimon.shop.people.city = CONCAT(name, city)",
    ]


def test_delete(shop: Any) -> None:
    assert rows(shop, "DELETE FROM paimon.shop.people WHERE id = 3") == []
