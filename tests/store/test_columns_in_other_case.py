"""Columns whose names differ only in case are one column where exactly one fits."""

import pickle
from typing import Any

import pytest
from sqlalchemy import Engine

from strandline.errors import NotFoundError
from strandline.store.lineage.column_lineage import Columns, walk_columns
from strandline.store.lineage.known_jobs import KnownJobs
from strandline.store.lineage.lookup import node_called
from strandline.store.lineage.run_state import View
from strandline.store.lineage.table_graph import Question
from strandline.store.questions.lineage_answers import ANSWERS
from worlds.builders import Json
from worlds.scenarios.bank import FACET
from worlds.scenarios.plain import columns, dataset, run
from worlds.scenarios.taking import NOW, arrows, fill, reader, view


def listing(*names: str) -> Json:
    fields = [{"name": name, "type": "BIGINT"} for name in names]
    return {"schema": FACET | {"fields": fields}}


def store(engine: Engine, *listed: str) -> None:
    """Store a table of these columns, into whose ID one job writes and whose Id another reads."""
    made = columns("t", ID=("raw", "key"))
    made["facets"] |= listing(*listed)
    fill(
        engine,
        [
            run("COMPLETE", 1, "load", ["raw"], [made]),
            run("COMPLETE", 2, "report", [dataset("t")], [columns("out", n=("t", "Id"))]),
        ],
    )


def ask(engine: Engine, path: str, at: View = NOW, **asked: Any) -> dict[str, Any]:
    with reader(engine) as connection:
        return ANSWERS[path](connection, asked, at)


WAY = ["column:db:raw:key -> column:db:t:id", "column:db:t:id -> column:db:out:n"]


@pytest.mark.parametrize("column", ["id", "ID", "iD"])
def test_edges_meet_in_the_one_listed_column_that_differs_from_them_only_in_case(
    engine: Engine, column: str
) -> None:
    store(engine, "id", "name")

    lineage = ask(engine, "/lineage", node="t", column=column, granularity="column")
    impact = ask(engine, "/impact", node="raw", column="key")
    of_t = ask(engine, "/impact", node="t", column=column)
    ends: dict[str, Any] = {"from": "raw", "to": "out"}
    paths = ask(engine, "/lineage/paths", **ends, granularity="column")

    for answer in (lineage, paths):
        assert sorted(arrows(answer)) == WAY
        assert {edge["target"][-2:]: edge["otherCase"] for edge in answer["edges"]} == {
            "id": ["ID"],
            ":n": ["Id"],
        }
    assert of_t["node"]["column"] == "id"
    for answer, expected in ((impact, {"id": ["ID"], "n": ["Id"]}), (of_t, {"n": ["Id"]})):
        items = [item for item in answer["items"] if item["type"] == "column"]
        assert {item["column"]: item["otherCase"] for item in items} == expected


def test_no_column_is_followed_where_two_differ_only_in_case(engine: Engine) -> None:
    store(engine, "id", "iD")

    lineage = ask(engine, "/lineage", node="t", granularity="column")
    assert sorted(arrows(lineage)) == [
        "column:db:raw:key -> column:db:t:ID",
        "column:db:t:Id -> column:db:out:n",
    ]
    assert not any("otherCase" in edge for edge in lineage["edges"])
    assert ask(engine, "/lineage", node="t", column="id", granularity="column")["edges"] == []
    with pytest.raises(NotFoundError):
        ask(engine, "/impact", node="t", column="i_d")


def test_an_exact_name_wins_over_one_in_another_case(engine: Engine) -> None:
    store(engine, "ID", "id")

    lineage = ask(engine, "/lineage", node="t", column="ID", granularity="column")

    assert arrows(lineage) == ["column:db:raw:key -> column:db:t:ID"]


@pytest.mark.parametrize(("moment", "column"), [("12:00:05Z", "Total"), ("12:00:25Z", "total")])
def test_past_edge_is_not_spelled_as_a_column_that_came_later(
    engine: Engine, moment: str, column: str
) -> None:
    """Total became amount, and total is a new column."""
    made, renamed, grown = (columns("t", Total=("raw", "key")) for _ in range(3))
    made["facets"] |= listing("Total")
    renamed = dataset("t", **listing("amount"))
    renamed["outputFacets"] = {
        "strandline_snapshot": FACET | {"renamedColumns": {"Total": "amount"}}
    }
    grown["facets"] |= listing("amount", "total")
    fill(
        engine,
        [
            run("COMPLETE", 1, "load", ["raw"], [made]),
            run("COMPLETE", 10, "alter", [], [renamed]),
            run("COMPLETE", 20, "load", ["raw"], [grown], run_id="2"),
        ],
    )

    past = view(f"2026-11-20T{moment}", past=True)
    answer = ask(engine, "/lineage", past, node="t", column="Total", granularity="column")
    assert f"column:db:raw:key -> column:db:t:{column}" in arrows(answer)


def test_a_question_keeps_no_column_that_no_edge_names(engine: Engine) -> None:
    store(engine, "id", *(f"unnamed_{number}" for number in range(200)))

    with reader(engine) as connection:
        graph = Columns(KnownJobs(connection, NOW), Question(node_called(connection, "t"), NOW))
        walk_columns(connection, graph)
        kept = pickle.dumps(graph._columns)
    assert b"Id" in kept
    assert b"unnamed" not in kept
