"""Lazily fetched JVM objects."""

from __future__ import annotations

from strandline_spark.jvm.client import Later, kept, once


def test_late_object_is_fetched_once_and_only_if_needed() -> None:
    fetched: list[str] = []

    def fetch() -> str:
        fetched.append("a table")
        return "orders"

    table = Later(fetch, {"name": "lake.orders", "owner": None})

    assert (once(table, "name", str), once(table, "owner", str)) == ("lake.orders", None)
    assert fetched == []
    assert (table.upper(), table.title()) == ("ORDERS", "Orders")
    assert fetched == ["a table"]


def test_answer_is_cached() -> None:
    table = Later(lambda: "orders")

    assert kept(table, "length") is None
    assert once(table, "length", lambda one: len(one.upper())) == 6
    assert kept(table, "length") == 6
