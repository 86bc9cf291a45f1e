"""Edges of columns are found by their near end, whatever a schema lists."""

from typing import Any

import pytest
from sqlalchemy import Engine

from strandline.core.walk import Direction
from strandline.store.lineage import column_edges
from strandline.store.lineage.column_lineage import column_lineage_of
from strandline.store.lineage.lookup import node_called
from strandline.store.lineage.table_graph import Question
from worlds.scenarios.bank import FACET
from worlds.scenarios.plain import columns, dataset, run
from worlds.scenarios.taking import NOW, arrows, fill, reader


@pytest.mark.parametrize("direction", [Direction.UPSTREAM, Direction.DOWNSTREAM])
def test_edges_of_columns_exist_whether_a_schema_lists_the_columns_or_not(
    engine: Engine, direction: Direction
) -> None:
    """A producer may list the documented columns alone and state the lineage of all."""
    listed = {"schema": FACET | {"fields": [{"name": "id", "type": "BIGINT"}]}}
    made = columns("stg", id=("raw", "id"), name=("raw", "name"), rate=("raw", "total"))
    made["facets"] |= listed
    fill(engine, [run("COMPLETE", 1, "stage", [dataset("raw", **listed)], [made])])
    start = "stg" if direction is Direction.UPSTREAM else "raw"

    with reader(engine) as connection:
        question = Question(node_called(connection, start), NOW, direction)
        of_all = column_lineage_of(connection, question)
        of_one = column_lineage_of(connection, question, "name")

    assert arrows(of_all) == [
        "column:db:raw:id -> column:db:stg:id",
        "column:db:raw:name -> column:db:stg:name",
        "column:db:raw:total -> column:db:stg:rate",
    ]
    assert arrows(of_one) == ["column:db:raw:name -> column:db:stg:name"]


def test_field_of_a_column_meets_the_column_and_its_own_fields(engine: Engine) -> None:
    fill(
        engine,
        [
            run("COMPLETE", 1, "one", ["a"], [columns("b", item=("a", "x"))]),
            run("COMPLETE", 1, "two", ["b"], [columns("c", y=("b", "item.sku"))]),
            run("COMPLETE", 1, "three", ["c"], [columns("d", z=("c", "y.part"), w=("c", "yy"))]),
        ],
    )

    with reader(engine) as connection:
        question = Question(node_called(connection, "a"), NOW, Direction.DOWNSTREAM)
        answer = column_lineage_of(connection, question, "x")

    assert arrows(answer) == [
        "column:db:a:x -> column:db:b:item",
        "column:db:b:item -> column:db:c:y",
        "column:db:c:y -> column:db:d:z",
    ]


def test_wide_table_takes_a_look_for_each_column_and_none_for_each_pair(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    width = 200
    made = columns("wide", **{f"c{n}": ("src", f"s{n}") for n in range(width)})
    fill(engine, [run("COMPLETE", 1, "load", ["src"], [made])])
    read: list[Any] = []
    at = column_edges.NearEnds.at

    def counted(ends: column_edges.NearEnds, dataset: int, column: str) -> Any:
        edges = at(ends, dataset, column)
        read.extend(edges)
        return edges

    monkeypatch.setattr(column_edges.NearEnds, "at", counted)
    with reader(engine) as connection:
        question = Question(node_called(connection, "wide"), NOW, Direction.UPSTREAM, 1)
        answer = column_lineage_of(connection, question)

    assert len(answer["edges"]) == width
    assert len(read) <= 3 * width
