"""The tables that JDBC's option `dbtable` or `query` names."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from fixtures.spark_lake import needs
from fixtures.spark_lake.analysis import ended_execution
from strandline_spark.columns.lineage import origins_of
from strandline_spark.extraction.reader import PlanReader
from strandline_spark.formats.jdbc.datasets import FORMAT
from strandline_spark.formats.jdbc.query import query_of
from strandline_spark.formats.mention import Mention
from strandline_spark.jvm.client import Jvm
from strandline_spark.jvm.event_queue import EventQueue

pytestmark = pytest.mark.spark


def tables(lake: Any, text: str) -> list[str]:
    """Return the names of the tables that are read."""
    mention = Mention(provider="jdbc", options={"url": "jdbc:sqlite:/shop.db", "dbtable": text})
    jvm = Jvm(lake._jvm, lake._jsparkSession)
    first = FORMAT.dataset_of(mention, jvm)
    found = [first] if first is not None else []
    return [one.name for one in (*found, *FORMAT.others_of(mention, jvm))]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("users", ["users"]),
        ("users AS u", ["users"]),
        ("users u JOIN orders o ON u.id = o.user_id", ["orders", "users"]),
        ("(SELECT id FROM users) u", ["users"]),
        ("(SELECT id FROM users) u JOIN (SELECT id FROM orders) o", ["orders", "users"]),
        ("WITH x AS (SELECT id FROM users) SELECT id FROM x", ["users"]),
    ],
)
def test_tables_of_a_from_clause_are_read(lake: Any, text: str, names: list[str]) -> None:
    assert sorted(tables(lake, text)) == [f"/shop.db.{name}" for name in names]


@pytest.mark.parametrize(
    "text", ["SELECT [id] FROM [users]", "(SELECT id FROM users WHERE CAST(age AS TEXT) <> 'x') u"]
)
def test_query_in_the_databases_own_dialect_is_said_to_be_unread(lake: Any, text: str) -> None:
    with pytest.raises(LookupError, match="dialect"):
        tables(lake, text)


@pytest.mark.parametrize(("database", "origins"), [("sqlite", ["id"]), ("mysql", [])])
def test_double_quotes_stand_around_what_they_mean_in_the_database(
    lake: Any, database: str, origins: list[str]
) -> None:
    options = {"url": f"jdbc:{database}://host/shop", "query": 'SELECT "id" AS x FROM users'}
    mention = Mention(columns=((7, "x"),), provider="jdbc", options=options)
    values = FORMAT.queried(mention, Jvm(lake._jvm, lake._jsparkSession)) or {}

    assert [origin.column for origin in origins_of(values[7])] == origins


@needs("iceberg")  # whose jars have the driver
def test_append_does_not_tell_the_columns_of_the_table(
    lake: Any, queue: EventQueue, tmp_path: Path
) -> None:
    options = {"url": f"jdbc:sqlite:{tmp_path}/shop.db", "driver": "org.sqlite.JDBC"}
    with sqlite3.connect(tmp_path / "shop.db") as database:
        database.execute("CREATE TABLE people (ID INTEGER, Name TEXT, City TEXT)")

    def columns(mode: str, **more: str) -> list[str]:
        """Return the columns of the table that a write reports."""
        writer = lake.sql("SELECT 1L AS id, 'ann' AS name").write.format("jdbc")
        writer.options(dbtable="people", **options, **more).mode(mode).save()
        save = ended_execution(queue, "SourceCommand")
        (output,) = PlanReader(lake).at_end(save).outputs
        return [field.name for field in output.dataset.schema]

    assert columns("append") == []
    assert columns("overwrite", truncate="true") == []
    assert columns("overwrite") == ["id", "name"]  # the table is made anew


@pytest.mark.parametrize(
    ("query", "columns", "origins"),
    [
        (
            "SELECT id, amt FROM orders UNION ALL SELECT oid, price FROM old",
            ["id", "amt"],
            [["orders.id", "old.oid"], ["orders.amt", "old.price"]],
        ),
        (
            "SELECT o.*, u.name AS who FROM orders o JOIN users u ON o.uid = u.id",
            ["id", "uid", "who"],
            [["orders.id"], ["orders.uid"], ["users.name"]],
        ),
        ("SELECT id FROM orders UNION SELECT * FROM old", ["id"], [[]]),
        ("SELECT o.*, u.* FROM orders o JOIN users u ON o.uid = u.id", ["id", "name"], [[], []]),
        (
            "WITH t AS (SELECT id FROM e UNION ALL SELECT e.id FROM e JOIN t) SELECT id FROM t",
            ["id"],
            [[]],
        ),
    ],
)
def test_columns_of_a_union_and_of_one_tables_star_are_read(
    lake: Any, query: str, columns: list[str], origins: list[list[str]]
) -> None:
    options = {"url": "jdbc:sqlite:/shop.db", "query": query}
    numbered = tuple(enumerate(columns))
    mention = Mention(columns=numbered, provider="jdbc", options=options)
    values = FORMAT.queried(mention, Jvm(lake._jvm, lake._jsparkSession)) or {}

    assert [
        [f"{o.dataset[1].removeprefix('/shop.db.')}.{o.column}" for o in origins_of(values[n])]
        for n, _ in numbered
    ] == origins


def test_quoted_common_table_expression_is_no_table(lake: Any) -> None:
    text = 'WITH "Recent" AS (SELECT * FROM orders) SELECT * FROM "Recent"'
    query = query_of("jdbc:postgresql://h/shop", text, Jvm(lake._jvm, lake._jsparkSession))

    assert query is not None
    assert query.tables == ["orders"]


def test_a_database_has_one_name_for_a_table_however_it_is_written(lake: Any) -> None:
    texts = ["orders", "ORDERS", "main.Orders", "SELECT * FROM main.ORDERS", '"orders" o']

    assert {name for text in texts for name in tables(lake, text)} == {"/shop.db.orders"}
