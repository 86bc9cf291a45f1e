"""Stock listener recordings: sources, queries and running jobs match the programs."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import Engine

import recordings
from fixtures.stores import SQLITE_FIRST
from strandline.core.openlineage.times import micros_of
from strandline.core.walk import Direction
from strandline.store.catalog.details import job_detail
from strandline.store.catalog.filters import Filter
from strandline.store.catalog.lists import jobs_page
from strandline.store.catalog.runs import runs_page
from strandline.store.catalog.search import search_page
from strandline.store.lineage.column_lineage import column_lineage_of
from strandline.store.lineage.lookup import node_called
from strandline.store.lineage.run_state import View
from strandline.store.lineage.table_graph import Question
from strandline.store.lineage.table_lineage import lineage_of
from worlds.builders import live, rows, run_id, store
from worlds.scenarios.taking import reader

NOW = micros_of(datetime.now(UTC))


@pytest.fixture(params=SQLITE_FIRST)
def database_url(request: pytest.FixtureRequest) -> str:
    """Give the URL of an empty store."""
    url: str = request.getfixturevalue(f"{request.param}_url")
    return url


def test_a_create_table_as_is_one_command(engine: Engine) -> None:
    """The listener reports the inner write as a separate run with the name of a plain INSERT."""
    store(engine, recordings.events_of("nested_ctas"))

    with reader(engine) as connection:
        listed = [one["name"] for one in jobs_page(connection, Filter(), NOW, 100, None)["items"]]
        ran = [
            one["job"]["name"]
            for one in runs_page(connection, None, Filter(), NOW, 100, None)["items"]
        ]
        found = {word: [one["name"] for one in search_page(connection, word, 100, None, NOW)["items"] if one["type"] == "job"]
                 for word in ("wide.", "select", "WIDE.append_data.lake_bank_wide")}  # fmt: skip
        below = job_detail(connection, node_called(connection, "job:lakehouse:wide"), NOW)[
            "children"
        ]
        inner = node_called(connection, "wide.append_data.lake_bank_wide")
        asked = lineage_of(connection, Question(inner, View(NOW), Direction.UPSTREAM, 1))
        answers = [lineage_of(connection, Question(node_called(connection, table), View(NOW), Direction.UPSTREAM, 1))
                   for table in ("bank.wide", "bank.totals", "bank.orders")]  # fmt: skip
        node = node_called(connection, "bank.wide")
        columns = column_lineage_of(connection, Question(node, View(NOW), Direction.UPSTREAM, 1))[
            "edges"
        ]

    hidden = {f"wide.{one}" for one in ("append_data.lake_bank_wide", "append_data.lake_bank_totals",
                                        "overwrite_by_expression.lake_bank_totals")}  # fmt: skip
    created = ["wide.atomic_create_table_as_select.bank_wide"]
    assert hidden.isdisjoint(listed)
    assert hidden.isdisjoint(ran)
    assert sorted(set(ran)) == sorted(listed)
    assert "wide.append_data.lake_bank_orders" in listed  # an INSERT
    assert "wide.append_data.lake_bank_orders" in found["wide."]
    assert hidden.isdisjoint({*found["wide."], *found["select"]})
    assert created[0] in found["select"]
    assert found["WIDE.append_data.lake_bank_wide"] == [
        "wide.append_data.lake_bank_wide"
    ]  # as is asked for
    assert [one["runs"] for one in below["jobs"]] == [1] * (len(listed) - 1)
    assert [made_by(answer) for answer in answers] == [
        created,
        [f"wide.atomic_{verb}_table_as_select.bank_totals" for verb in ("create", "replace")],
        ["wide.append_data.lake_bank_orders", "wide.create_table.bank_orders"],
    ]
    assert {edge["job"] for edge in columns} == {f"job:lakehouse:{created[0]}"}
    assert (
        len([node for node in asked["nodes"] if node["type"] == "dataset"]) == 2
    )  # asked for by name it is there


def made_by(answer: dict[str, Any]) -> list[str]:
    """The jobs of an answer, by name."""
    return sorted(node["name"] for node in answer["nodes"] if node["type"] == "job")


def test_insert_after_a_create_table_as_is_separate(engine: Engine) -> None:
    """It has the name of the inner write but does not belong to the CREATE."""
    events = [json.loads(one) for one in recordings.events_of("nested_ctas")]
    inner = [one for one in events if one["job"]["name"] == "wide.append_data.lake_bank_wide"]
    for number, one in enumerate(inner):
        one["eventTime"] = f"2026-11-20T23:59:0{number}Z"
        one["run"]["runId"] = run_id(4711)
    store(engine, [*recordings.events_of("nested_ctas"), *inner])

    with reader(engine) as connection:
        question = Question(node_called(connection, "bank.wide"), View(NOW), Direction.UPSTREAM, 1)
        listed = [one["name"] for one in jobs_page(connection, Filter(), NOW, 100, None)["items"]]
        assert made_by(lineage_of(connection, question)) == [
            "wide.append_data.lake_bank_wide",
            "wide.atomic_create_table_as_select.bank_wide",
        ]
    assert "wide.append_data.lake_bank_wide" in listed


def test_failed_statement_makes_no_edge(engine: Engine) -> None:
    store(engine, recordings.events_of("failing"))

    assert sources(engine, "bank.bad") == []


@pytest.mark.parametrize(("name", "reason"), [("failing", "no such rate"), ("ledger", "no rate")])
def test_failed_statement_and_its_application_show_the_reason(
    engine: Engine, name: str, reason: str
) -> None:
    """The listener sends no errorMessage; the reason is in `spark.exception`."""
    store(engine, recordings.events_of(name))
    application = recordings.truth_of(name)["applications"][0]["name"]

    with reader(engine) as connection:
        failed = runs_page(connection, None, Filter(states=frozenset({"FAIL"})), NOW, 100, None)[
            "items"
        ]
        children = job_detail(
            connection, node_called(connection, f"job:lakehouse:{application}"), NOW
        )["latestRun"]
    assert (
        failed[0]["error"]
        == f"org.apache.spark.SparkRuntimeException: [USER_RAISED_EXCEPTION] {reason} SQLSTATE: P0001"
    )
    assert (children["state"], children["failedChildren"] > 0) == ("COMPLETE", True)


def sources(engine: Engine, table: str) -> list[str]:
    """Return the direct sources of a table."""
    with reader(engine) as connection:
        question = Question(node_called(connection, table), View(NOW), Direction.UPSTREAM, 1)
        nodes = lineage_of(connection, question)["nodes"]
    return sorted(
        node["name"].removeprefix("/data/").replace("lake/bank/", "bank.") for node in nodes if node["distance"] == 1
        and node["type"] == "dataset"
    )  # fmt: skip


def test_query_without_output_feeds_no_other_querys_sink(engine: Engine) -> None:
    """The listener omits a stream's Iceberg sink; its input must not feed another table."""
    store(engine, recordings.events_of("two_queries"))

    assert sources(engine, "bank.copied") == ["bank.orders"]
    with reader(engine) as connection:
        read = node_called(connection, "/data/landing/payments")
        answer = lineage_of(connection, Question(read, View(NOW), Direction.DOWNSTREAM))
    assert [node["name"] for node in answer["nodes"] if node["type"] == "dataset"] == [
        "/data/landing/payments"
    ]


@pytest.mark.parametrize("name", recordings.names())
def test_ended_application_has_no_running_children(engine: Engine, name: str) -> None:
    store(engine, recordings.events_of(name))

    ended = """SELECT count(*) FROM runs JOIN run_parents ON run_parents.run_id = runs.id
                 JOIN runs app ON app.id = run_parents.parent_run_id JOIN run_ends ON run_ends.run_id = runs.id
                WHERE app.ended_at IS NOT NULL AND run_ends.ended_at IS NULL"""
    assert rows(engine, ended) == [(0,)]
    assert live(engine).keys() <= ({"mirror_orders"} if name == "killed_stream" else set())


@pytest.mark.parametrize(
    "name", ["two_queries", "killed_stream", "available_now", "failing_stream", "fan_out"]
)
def test_query_is_found_by_name_with_its_micro_batches(engine: Engine, name: str) -> None:
    store(engine, recordings.events_of(name))

    for query in recordings.truth_of(name)["queries"]:
        found = detail(engine, query["name"] or "router.copied")["query"]
        assert (found["newestBatch"], found["batches"]) == (query["newest_batch"], query["batches"])
        assert found["queryId"] == query["id"]
    with reader(engine) as connection:
        listed = [one["name"] for one in jobs_page(connection, Filter(), NOW, 100, None)["items"]]
    assert [one for one in listed if one.startswith("streaming_query.")] == []


def detail(engine: Engine, name: str) -> dict[str, Any]:
    with reader(engine) as connection:
        return job_detail(connection, node_called(connection, name), NOW)
