"""Nested fields belong to their column: reading `item.sku` reads `item`."""

import re

import pytest
from sqlalchemy import Engine

from strandline.core.walk import Direction
from strandline.store.lineage.column_lineage import column_lineage_of
from strandline.store.lineage.lookup import node_called
from strandline.store.lineage.table_graph import Question
from worlds.builders import Json, dataset, event, store
from worlds.scenarios.taking import arrows, reader, view

NOW = view("2026-11-20T13:00:00Z")


def made(run: int, sink: str, column: str, source: str, field: str) -> list[Json]:
    """A job's run that makes a column of a table from a column of another."""
    origin = {"namespace": "hive://lake", "name": source, "field": field}
    facet = {"fields": {column: {"inputFields": [origin]}}}
    sinks = [dataset(sink, columnLineage=facet)]
    return [event("COMPLETE", run, job=f"job of {sink}", inputs=[dataset(source)], outputs=sinks)]


@pytest.mark.parametrize(
    ("node", "column", "direction", "expected"),
    [
        (
            "raw",
            "item",
            Direction.DOWNSTREAM,
            ["orders:item -> report:sku", "raw:item -> orders:item"],
        ),
        (
            "report",
            "sku",
            Direction.UPSTREAM,
            ["orders:item.sku -> report:sku", "raw:item -> orders:item.sku"],
        ),
        ("orders", "item.sku", Direction.DOWNSTREAM, ["orders:item.sku -> report:sku"]),
        ("orders", "item.price", Direction.DOWNSTREAM, []),
        ("orders", "itemised", Direction.DOWNSTREAM, ["orders:itemised -> other:n"]),
    ],
)
def test_nested_field_is_part_of_its_column(
    engine: Engine, node: str, column: str, direction: Direction, expected: list[str]
) -> None:
    other = made(3, "other", "n", "orders", "itemised")
    store(
        engine,
        [
            *made(1, "orders", "item", "raw", "item"),
            *made(2, "report", "sku", "orders", "item.sku"),
            *other,
        ],
    )

    with reader(engine) as connection:
        asked = Question(node_called(connection, node), NOW, direction)
        answer = column_lineage_of(connection, asked, column)

    assert sorted(re.sub("column:hive://lake:", "", arrow) for arrow in arrows(answer)) == expected
