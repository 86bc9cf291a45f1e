"""Columns of an output whose explicit lineage names its source tables."""

import re
from typing import Any

import pytest
from sqlalchemy import Engine

from strandline.store.lineage.column_lineage import column_lineage_of
from strandline.store.lineage.lookup import node_called
from strandline.store.lineage.table_graph import Question
from strandline.store.questions.impact import Removal, impact_of
from worlds.builders import Json, dataset, event, store
from worlds.scenarios.taking import reader, view

NOW = view("2026-11-20T13:00:00Z")
A, B, C = dataset("a"), dataset("b"), dataset("c")
JOINED = {"type": "INDIRECT", "subtype": "JOIN"}


def origin(name: str, column: str | None = None, **how: str) -> Json:
    """A dataset, or a column of it, that a facet names as a source."""
    of = {"namespace": "hive://lake", "name": name, "type": "DATASET"}
    return of | ({"field": column} if column else {}) | ({"transformations": [how]} if how else {})


def tables(*sources: Json) -> Json:
    """A lineage facet that names no fields."""
    return {"inputs": list(sources)}


def columns(**origins: str) -> Json:
    """A columnLineage facet: each column with the one that it comes from, '' for a constant."""
    fields = {column: one.split(".") for column, one in origins.items()}
    return {
        "fields": {
            column: {"inputFields": [origin(*one)] if one[0] else []}
            for column, one in fields.items()
        }
    }


def edges(engine: Engine) -> list[tuple[str, str, str]]:
    """Each edge of columns that the job has, with how it depends and the rule."""
    with reader(engine) as connection:
        answer = column_lineage_of(
            connection, Question(node_called(connection, "job:tests:etl"), NOW)
        )
    found = [
        (f"{one['source']} -> {one['target']}", one["dependency"], one["rule"])
        for one in answer["edges"]
    ]
    return sorted(
        (re.sub("(dataset|column):hive://lake:", "", arrow), *how) for arrow, *how in found
    )


def broken(engine: Engine, column: str) -> dict[str, str]:
    """Return the dependency of each table that breaks with a column of `a`."""
    with reader(engine) as connection:
        start = node_called(connection, "dataset:hive://lake:a")
        answer = impact_of(connection, Removal(start, column, NOW, None, 100))
    return {one["name"]: one["dependency"] for one in answer["items"] if one["type"] == "dataset"}


def test_two_outputs_of_one_run_keep_their_columns(engine: Engine) -> None:
    """A foreachBatch that writes two tables reports table sources and columns of each."""
    total = dataset("total", lineage=tables(origin("a")), columnLineage=columns(k="a.k", sum="a.v"))
    log = dataset("log", lineage=tables(origin("a")), columnLineage=columns(n=""))
    store(engine, [event("COMPLETE", inputs=[A], outputs=[total, log])])

    assert edges(engine) == [
        ("a -> log", "opaque", "lineage"),
        ("a:k -> total:k", "direct", "columnLineage"),
        ("a:v -> total:sum", "direct", "columnLineage"),
    ]


def test_impact_of_an_unnamed_column_includes_whole_table_edges(engine: Engine) -> None:
    total = dataset("total", lineage=tables(origin("a")), columnLineage=columns(k="a.k"))
    log = dataset("log", lineage=tables(origin("a")))
    store(engine, [event("COMPLETE", inputs=[A], outputs=[total, log])])

    assert broken(engine, "id") == {"log": "opaque"}
    assert broken(engine, "k") == {"log": "opaque", "total": "direct"}


@pytest.mark.parametrize("order", [1, -1])
def test_columns_from_another_event_are_combined_with_table_edges(
    engine: Engine, order: int
) -> None:
    start = event("START", inputs=[A, B], outputs=[dataset("t", columnLineage=columns(c="a.x"))])
    end = event("COMPLETE", seconds=1, outputs=[dataset("t", lineage=tables(origin("a")))])
    store(engine, [start, end][::order])

    assert edges(engine) == [("a:x -> t:c", "direct", "columnLineage")]


def test_source_table_without_columns_is_an_opaque_edge(engine: Engine) -> None:
    sink = dataset("t", lineage=tables(origin("a"), origin("b")), columnLineage=columns(c="a.x"))
    store(engine, [event("COMPLETE", inputs=[A, B, C], outputs=[sink])])

    assert edges(engine) == [
        ("a:x -> t:c", "direct", "columnLineage"),
        ("b -> t", "opaque", "lineage"),
    ]


@pytest.mark.parametrize(
    ("named", "expected"), [(["a"], [("a:x -> t:c", "direct", "columnLineage")]), ([], [])]
)
def test_columns_of_unnamed_source_tables_are_ignored(
    engine: Engine, named: list[str], expected: list[Any]
) -> None:
    sink = dataset(
        "t", lineage=tables(*map(origin, named)), columnLineage=columns(c="a.x", d="b.x")
    )
    store(engine, [event("COMPLETE", inputs=[A, B], outputs=[sink])])

    assert edges(engine) == expected


def test_fields_of_the_lineage_facet_are_used(engine: Engine) -> None:
    fields = {"c": {"inputs": [origin("a", "y")]}}
    named = tables(origin("a"), origin("b"), origin("c", "key", type="INDIRECT")) | {
        "fields": fields
    }
    sink = dataset("t", lineage=named, columnLineage=columns(c="a.x"))
    store(engine, [event("COMPLETE", inputs=[A, B, C], outputs=[sink])])

    assert edges(engine) == [
        ("a:y -> t:c", "direct", "lineage"),
        ("b -> t", "opaque", "lineage"),
        ("c:key -> t", "indirect", "lineage"),
    ]


def test_row_filtering_source_is_marked_indirect(engine: Engine) -> None:
    sink = dataset(
        "t", lineage=tables(origin("a"), origin("b", **JOINED)), columnLineage=columns(c="a.x")
    )
    store(engine, [event("COMPLETE", inputs=[A, B], outputs=[sink])])

    assert edges(engine) == [
        ("a:x -> t:c", "direct", "columnLineage"),
        ("b -> t", "indirect", "lineage"),
    ]
