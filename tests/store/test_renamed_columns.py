"""Columns that were renamed keep their edges, for lineage, impact, paths and search."""

from datetime import UTC, datetime

import pytest
from sqlalchemy import Engine

from strandline.store.catalog.search import search_page
from strandline.store.ingest.retention import expire
from strandline.store.lineage.column_lineage import columns_of
from strandline.store.lineage.lookup import node_called
from strandline.store.lineage.run_state import View
from strandline.store.questions.lineage_answers import ANSWERS
from worlds.builders import Json
from worlds.scenarios.bank import FACET
from worlds.scenarios.plain import columns, run
from worlds.scenarios.taking import fill, reader, view

NOW = view("2026-11-20T12:10:00Z")
BATCH = {"jobType": FACET | {"processingType": "BATCH", "integration": "SPARK"}}


def renames(table: str, change: str = "ALTER", **names: str) -> Json:
    """A table whose columns a run gives these names, without making a snapshot."""
    facet = FACET | {"format": "iceberg", "renamedColumns": names}
    return {
        "namespace": "db",
        "name": table,
        "facets": {"lifecycleStateChange": FACET | {"lifecycleStateChange": change}},
        "outputFacets": {"strandline_snapshot": facet},
    }


LOAD = run("COMPLETE", 1, "load", ["raw"], [columns("t", total=("raw", "amount"))])
READ = run("COMPLETE", 2, "report", ["t"], [columns("out", sum=("t", "total"))])
RENAME = run("COMPLETE", 3, "ddl", [], [renames("t", total="gross")], of_job=BATCH)
AGAIN = run("COMPLETE", 4, "later", ["t"], [columns("late", sum=("t", "gross"))])
EDGES = {
    "raw:amount -load-> t:gross",
    "t:gross -report-> out:sum",
    "t:gross -later-> late:sum",
}


def named(node: str) -> str:
    return node.removeprefix("column:db:").removeprefix("dataset:db:")


def edges_of(engine: Engine, column: str, at: View = NOW, table: str = "t") -> set[str]:
    asked = {"node": f"dataset:db:{table}", "column": column, "granularity": "column"}
    with reader(engine) as connection:
        answer = ANSWERS["/lineage"](connection, asked, at)
    return {
        f"{named(one['source'])} -{one['job'].removeprefix('job:ns:')}-> {named(one['target'])}"
        for one in answer["edges"]
    }


@pytest.mark.parametrize("first", range(4))
def test_edges_follow_a_renamed_column_in_any_order_of_events(engine: Engine, first: int) -> None:
    events = [LOAD, READ, RENAME, AGAIN]
    for one in events[first:] + events[:first]:
        fill(engine, [one])

    assert edges_of(engine, "gross") == EDGES


@pytest.mark.parametrize("first", range(3))
def test_edges_of_a_run_that_is_under_way_at_the_rename_follow_the_column(
    engine: Engine, first: int
) -> None:
    written = [columns("t", total=("raw", "amount"))]
    start = run("START", 1, "load", ["raw"], written, of_job=BATCH)
    end = run("COMPLETE", 9, "load", ["raw"], written, of_job=BATCH)
    events = [start, RENAME, end]
    for one in events[first:] + events[:first]:
        fill(engine, [one])

    assert edges_of(engine, "gross") == {"raw:amount -load-> t:gross"}
    with reader(engine) as connection:
        assert columns_of(connection, node_called(connection, "dataset:db:t")) == ["gross"]
        assert search_page(connection, "total", 10, None, NOW.at)["items"] == []


def test_stream_that_continues_after_the_rename_has_the_new_names(engine: Engine) -> None:
    written = [columns("t", total=("raw", "amount"))]
    streaming = {"jobType": FACET | {"processingType": "STREAMING", "integration": "FLINK"}}
    start = run("START", 1, "load", ["raw"], written, of_job=streaming)
    again = run("RUNNING", 9, "load", ["raw"], written, of_job=streaming)
    fill(engine, [start, RENAME, again])

    assert edges_of(engine, "total") == {"raw:amount -load-> t:total"}
    assert edges_of(engine, "gross") == set()


def test_a_renamed_column_has_its_old_name_before_the_rename(engine: Engine) -> None:
    fill(engine, [LOAD, READ, RENAME, AGAIN])

    then = view("2026-11-20T12:00:02.5Z", past=True)
    assert edges_of(engine, "total", then) == {
        "raw:amount -load-> t:total",
        "t:total -report-> out:sum",
    }


def test_impact_paths_and_search_follow_a_renamed_column(engine: Engine) -> None:
    fill(engine, [LOAD, READ, RENAME, AGAIN])
    way = {"from": "dataset:db:raw", "fromColumn": "amount"}
    way |= {"to": "dataset:db:out", "toColumn": "sum"}
    with reader(engine) as connection:
        hit = {"node": "dataset:db:t", "column": "gross"}
        impact = ANSWERS["/impact"](connection, hit, NOW)
        paths = ANSWERS["/lineage/paths"](connection, way, NOW)
        found = {
            word: [one["name"] for one in search_page(connection, word, 10, None, NOW.at)["items"]]
            for word in ("gross", "total")
        }

    assert {one["name"] for one in impact["items"] if one["type"] == "dataset"} == {"out", "late"}
    assert {one["id"] for one in paths["nodes"] if one["type"] == "column"} >= {"column:db:t:gross"}
    assert found == {"gross": ["t"], "total": []}


def test_a_column_that_takes_an_old_name_is_another(engine: Engine) -> None:
    added = run("COMPLETE", 5, "refill", ["raw"], [columns("t", total=("raw", "net"))])
    fill(engine, [LOAD, RENAME, added])

    assert edges_of(engine, "gross") == {"raw:amount -load-> t:gross"}
    assert edges_of(engine, "total") == {"raw:net -refill-> t:total"}


def test_fields_follow_their_column_and_swapped_names_are_swapped(engine: Engine) -> None:
    made = columns("t", **{"item.sku": ("raw", "sku"), "a": ("raw", "a"), "b": ("raw", "b")})
    swap = renames("t", item="article", a="b", b="a")
    fill(
        engine,
        [
            run("COMPLETE", 1, "load", ["raw"], [made]),
            run("COMPLETE", 2, "ddl", [], [swap], of_job=BATCH),
        ],
    )

    assert edges_of(engine, "article.sku") == {"raw:sku -load-> t:article.sku"}
    assert edges_of(engine, "a") == {"raw:b -load-> t:a"}


@pytest.mark.parametrize("state", ["START", "FAIL", "ABORT"])
def test_a_rename_that_is_not_done_renames_nothing(engine: Engine, state: str) -> None:
    failed = run(state, 3, "ddl", [], [renames("t", total="gross")], of_job=BATCH)
    fill(engine, [LOAD, failed])

    assert edges_of(engine, "total") == {"raw:amount -load-> t:total"}


def test_retention_keeps_renames(engine: Engine) -> None:
    """The runs that retention keeps may be older than the rename, whose job ran often since."""
    others = [run("COMPLETE", 10 + n, "ddl", [], ["x"], run_id=str(n)) for n in range(20)]
    fill(engine, [LOAD, RENAME, *others])
    with engine.begin() as connection:
        dropped = expire(connection, datetime(2026, 12, 31, tzinfo=UTC))
    assert dropped.rows["runs"] == 8

    assert edges_of(engine, "gross") == {"raw:amount -load-> t:gross"}
