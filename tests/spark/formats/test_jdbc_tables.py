"""The tables that JDBC's option `dbtable` or `query` names."""

from __future__ import annotations

from typing import Any

import pytest

from strandline_spark.formats.jdbc.datasets import FORMAT
from strandline_spark.formats.mention import Mention
from strandline_spark.jvm.client import Jvm

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
