"""A view that a statement reads is an input beside the tables below it, by Spark's name."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from fixtures.spark_lake import formats, needs
from strandline_spark.consistency.reading.followed_views import View
from strandline_spark.consistency.table_identity import Identities
from strandline_spark.extraction.reader import PlanReader
from strandline_spark.model.statement import Statement
from strandline_spark.openlineage.datasets import inputs_of

pytestmark = pytest.mark.spark
iceberg = needs("iceberg")
delta = needs("delta")


@pytest.fixture(scope="module", autouse=True)
def database(lake: Any) -> Iterator[None]:
    lake.sql("CREATE DATABASE seen")
    if "iceberg" in formats():
        lake.sql("CREATE NAMESPACE lake.seen")
    yield
    lake.sql("DROP DATABASE seen CASCADE")


def read_by(frame: Any) -> Statement:
    """Return what a query reads."""
    return PlanReader(frame.sparkSession).at_start(frame._jdf.queryExecution())


def behind(statement: Statement) -> dict[str | None, list[str | None]]:
    """Return by each input the views that it was read through; None: the statement itself."""
    names = {(one.namespace, one.name): one.table for one in statement.inputs}
    return {
        one.table: [None if view is None else names[view] for view in one.through]
        for one in statement.inputs
    }


def tables(statement: Statement) -> set[str | None]:
    """Return the inputs by Spark's names."""
    return {dataset.table for dataset in statement.inputs}


@pytest.mark.parametrize("provider", ["parquet", pytest.param("delta", marks=delta)])
def test_view_is_an_input_beside_its_tables(lake: Any, provider: str) -> None:
    table = f"{provider}_table"
    lake.sql(f"CREATE TABLE seen.{table} USING {provider} AS SELECT 1 AS id")
    lake.sql(f"CREATE VIEW seen.v_{table} AS SELECT id, id + 1 AS next FROM seen.{table}")
    lake.sql(f"CREATE VIEW seen.w_{table} AS SELECT next FROM seen.v_{table}")
    base, view, outer = (f"spark_catalog.seen.{name}{table}" for name in ("", "v_", "w_"))
    frame = lake.table(f"seen.v_{table}").select("next")
    statement = read_by(frame)

    assert tables(statement) == {base, view}
    assert {one.table for one in Identities(lake).behind(f"seen.v_{table}")} == {base}
    assert statement.inputs[0].table == base  # a job that only reads is called after it
    assert (statement.inputs[1].name, statement.inputs[1].format) == (view, "view")
    assert [link.name for link in statement.inputs[1].symlinks] == [f"seen.v_{table}"]
    frame.createOrReplaceTempView("passing")
    for query, read in (
        ("SELECT next FROM passing", {base, view}),
        (f"SELECT next FROM {outer}", {base, view, outer}),
        (f"SELECT id FROM seen.{table} WHERE id IN (SELECT id FROM {view})", {base, view}),
        (f"WITH unused AS (SELECT * FROM {view}) SELECT id FROM seen.{table}", {base}),
    ):
        assert tables(read_by(lake.sql(query))) == read


@iceberg
def test_view_of_icebergs_catalog_is_an_input(lake: Any) -> None:
    table = "lake.seen.t_of_view"
    lake.sql(f"CREATE TABLE {table} USING iceberg AS SELECT 1 AS id")
    made = lake.sql(f"CREATE VIEW lake.seen.v_of_table AS SELECT id + 1 AS next FROM {table}")
    created = PlanReader(lake).at_end(made._jdf.queryExecution()).outputs[0].dataset
    frame = lake.table("lake.seen.v_of_table").alias("other").join(lake.table(table).alias("x"))
    frame.collect()
    statement = PlanReader(lake).at_end(frame._jdf.queryExecution())

    assert tables(statement) == {table, "lake.seen.v_of_table"}
    assert statement.unread == ()
    assert statement.inputs[1].name == created.name == "lake.seen.v_of_table"
    assert statement.inputs[1].snapshots == ()
    whole = lake.sql(f"SELECT * FROM (SELECT * FROM {table}) AS inner_query")
    assert tables(read_by(whole)) == {table}


def test_view_that_is_made_and_read_is_one_dataset(lake: Any) -> None:
    lake.sql("CREATE TABLE seen.base USING parquet AS SELECT 1 AS id")
    execution = lake.sql("CREATE VIEW seen.v AS SELECT id FROM seen.base")._jdf.queryExecution()
    made = PlanReader(lake).at_end(execution).outputs[0].dataset
    read = read_by(lake.table("seen.v")).inputs[1]

    assert (made.namespace, made.name) == (read.namespace, read.name)
    assert made.name == "spark_catalog.seen.v"


@pytest.fixture(scope="module", params=["parquet", pytest.param("delta", marks=delta), "iceberg"])
def views(request: pytest.FixtureRequest, lake: Any) -> str:
    """Return the database with two tables, a view, and a view on that view."""
    if request.param == "iceberg" and "iceberg" not in formats():
        pytest.skip("Iceberg's jar is not there")
    catalog = "lake" if request.param == "iceberg" else "spark_catalog"
    database = f"{catalog}.behind_{request.param}"
    lake.sql(f"CREATE NAMESPACE {database}")
    for table in ("a", "b"):
        lake.sql(f"CREATE TABLE {database}.{table} USING {request.param} AS SELECT 1 AS id")
    lake.sql(
        f"CREATE VIEW {database}.v AS SELECT id FROM {database}.a"
        f" WHERE id IN (SELECT id FROM {database}.b)"
    )
    lake.sql(f"CREATE VIEW {database}.w AS SELECT id + 1 AS next FROM {database}.v")
    return database


def test_inputs_say_which_views_they_were_read_through(lake: Any, views: str) -> None:
    a, b, v, w = (f"{views}.{name}" for name in "abvw")

    expected: tuple[tuple[str, dict[str, list[str | None]]], ...] = (
        (f"SELECT id FROM {v}", {v: [None], a: [v], b: [v]}),
        (f"SELECT next FROM {w}", {w: [None], v: [w], a: [v], b: [v]}),
        (f"SELECT id FROM {v} JOIN {a} USING (id)", {v: [None], a: [v, None], b: [v]}),
        (f"SELECT next FROM {w} JOIN {v} ON next = id", {w: [None], v: [w, None], a: [v], b: [v]}),
        (
            f"SELECT id FROM {a} WHERE id IN (SELECT next FROM {w})",
            {w: [None], v: [w], a: [None, v], b: [v]},
        ),
    )
    for query, through in expected:
        found = behind(read_by(lake.sql(query)))
        assert {name: set(of) for name, of in found.items()} == {
            name: set(of) for name, of in through.items()
        }, query
    lake.table(w).createOrReplaceTempView("passing")
    made = lake.table("passing").filter("next > 1").select("next")
    assert behind(read_by(made)) == {w: [None], v: [w], a: [v], b: [v]}


def test_replaced_view_shows_what_it_read_then(lake: Any, views: str) -> None:
    a, b, seen = (f"{views}.{name}" for name in ("a", "b", "seen"))
    lake.sql(f"CREATE VIEW {seen} AS SELECT id FROM {a}")
    before = behind(read_by(lake.table(seen)))
    lake.sql(f"CREATE OR REPLACE VIEW {seen} AS SELECT id FROM {b}")

    assert before == {a: [seen], seen: [None]}
    assert behind(read_by(lake.table(seen))) == {b: [seen], seen: [None]}


def test_event_names_the_views_that_an_input_was_read_through(lake: Any, views: str) -> None:
    a, v, w = (f"{views}.{name}" for name in "avw")
    statement = read_by(lake.sql(f"SELECT next FROM {w} JOIN {a} ON next = id"))
    facets: dict[str, dict[str, Any]] = {
        one.name: (one.inputFacets or {}) for one in inputs_of([statement])
    }
    names = {one.table: one.name for one in statement.inputs}

    assert "strandline_snapshot" not in facets[names[w]]
    of_view, of_table = (facets[names[name]]["strandline_snapshot"] for name in (v, a))
    assert [(view.name, of_view.direct) for view in of_view.through] == [(names[w], None)]
    assert [(view.name, of_table.direct) for view in of_table.through] == [(names[v], True)]


def test_view_whose_query_stands_in_its_place_is_named(lake: Any, views: str) -> None:
    a, b, v, w = (f"{views}.{name}" for name in "abvw")
    inner = f"SELECT id FROM {a} WHERE id IN (SELECT id FROM {b})"
    of_v = View(inner, selected=("id",), columns=("id",), name=tuple(v.split("."))).around(inner)
    outer = f"SELECT id + 1 FROM {of_v}"
    of_w = View(outer, selected=("n", "n"), columns=("next",), name=tuple(w.split(".")))

    found = behind(read_by(lake.sql(f"SELECT next FROM {of_w.around(outer)}")))
    assert found == {w: [None], v: [w], a: [v], b: [v]}


def test_view_that_is_altered_is_made_from_its_new_tables(lake: Any) -> None:
    lake.sql("CREATE TABLE seen.newer USING parquet AS SELECT 1 AS id")
    lake.sql("CREATE VIEW seen.altered AS SELECT 1 AS id")
    execution = lake.sql("ALTER VIEW seen.altered AS SELECT id FROM seen.newer")
    statement = PlanReader(lake).at_end(execution._jdf.queryExecution())

    assert tables(statement) == {"spark_catalog.seen.newer"}
    assert [one.dataset.table for one in statement.outputs] == ["spark_catalog.seen.altered"]
    assert [(one.name, one.origins[0].column) for one in statement.columns] == [("id", "id")]


def test_view_that_is_there_is_not_made_if_it_must_not_exist(lake: Any) -> None:
    lake.sql("CREATE VIEW seen.there AS SELECT 1 AS id")
    time.sleep(2.5)  # longer than a statement takes from its analysis to its view
    again = lake.sql("CREATE VIEW IF NOT EXISTS seen.there AS SELECT 2 AS id")

    assert PlanReader(lake).at_start(again._jdf.queryExecution()).outputs == ()


@iceberg
def test_drop_of_a_view_in_icebergs_catalog_is_reported(lake: Any) -> None:
    lake.sql("CREATE VIEW lake.seen.dropped AS SELECT 1 AS id")
    execution = lake.sql("DROP VIEW lake.seen.dropped")._jdf.queryExecution()
    (output,) = PlanReader(lake).at_start(execution).outputs

    assert (output.dataset.table, output.operation) == ("lake.seen.dropped", "drop")
