"""A recording of Airflow's own provider: default answers are what its DAG really did, in any order of the events."""

import gzip
import json
import random
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import Connection, Engine

import recordings
from collector.builders import store
from scenarios.taking import reader
from strandline.core.openlineage.times import micros_of
from strandline.core.walk import Direction
from strandline.store.catalog.filters import Filter
from strandline.store.catalog.lists import jobs_page
from strandline.store.lineage.column_lineage import column_lineage_of
from strandline.store.lineage.lookup import node_called
from strandline.store.lineage.relations import View
from strandline.store.lineage.table_lineage import Question, lineage_of

HERE = recordings.FILES.parent / "others"
NOW = View(micros_of(datetime.now(UTC)))
TRUTH: dict[str, Any] = json.loads((HERE / "airflow.json").read_text())
DAG = "job:airflow:shop_daily"


@pytest.fixture(params=["sent", "shuffled"])
def ran(engine: Engine, request: pytest.FixtureRequest) -> Engine:
    """A store that has taken the recording."""
    events = gzip.decompress((HERE / "airflow.jsonl.gz").read_bytes()).splitlines()
    if request.param == "shuffled":
        random.Random(17).shuffle(events)
    store(engine, events, size=len(events) if request.param == "sent" else 4)
    return engine


def question(
    connection: Connection, name: str, way: Direction = Direction.UPSTREAM, view: View = NOW, depth: int = 1
) -> Question:
    """What a table or job is made from, or what is made from it."""
    return Question(node_called(connection, name), view, way, depth)


def tables(answer: dict[str, Any]) -> list[str]:
    """The other tables of an answer, by their last names."""
    return sorted(one["table"] for one in answer["nodes"] if one["type"] == "dataset" and one["distance"])


def test_each_table_is_made_from_what_its_task_selects_from(ran: Engine) -> None:
    with reader(ran) as connection:
        found = {
            table: tables(lineage_of(connection, question(connection, f"shop.shop.{table}")))
            for table in TRUTH["sources"]
        }

    assert found == TRUTH["sources"]


def test_nothing_runs_any_more(ran: Engine) -> None:
    with reader(ran) as connection:
        live = View(NOW.at, live=True)
        found = [
            tables(lineage_of(connection, question(connection, f"shop.shop.{table}", view=live)))
            for table in TRUTH["sources"]
        ]

    assert found == [[]] * len(TRUTH["sources"])


def test_the_dag_stands_for_its_tasks(ran: Engine) -> None:
    with reader(ran) as connection:
        answer = lineage_of(connection, question(connection, DAG))

    assert tables(answer) == TRUTH["reads"]


def test_columns_come_from_where_the_sql_takes_them(ran: Engine) -> None:
    found: dict[str, dict[str, list[str]]] = {}
    with reader(ran) as connection:
        for table in TRUTH["columns"]:
            answer = column_lineage_of(connection, question(connection, f"shop.shop.{table}"))
            names = {one["id"]: (one["table"], one["column"]) for one in answer["nodes"]}
            for edge in answer["edges"]:
                to, column = names[edge["target"]]
                found.setdefault(to, {}).setdefault(column, []).append(".".join(names[edge["source"]]))

    known = {table: columns.keys() - TRUTH["unreported"].get(table, {}) for table, columns in TRUTH["columns"].items()}
    assert found == {table: {one: TRUTH["columns"][table][one] for one in columns} for table, columns in known.items()}


def test_what_failed_is_failed_and_the_run_of_the_dag_too(ran: Engine) -> None:
    with reader(ran) as connection:
        jobs = jobs_page(connection, Filter(), NOW.at, 100, None)["items"]

    assert sorted(one["name"] for one in jobs if one["newestRun"]["state"] == "FAIL") == TRUTH["failed"]
