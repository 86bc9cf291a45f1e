"""A recording of dbt's own integration: default answers are what its project really did, in any order of the events."""

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
from strandline.errors import NotFoundError
from strandline.store.catalog.filters import Filter
from strandline.store.catalog.lists import jobs_page
from strandline.store.lineage.column_lineage import column_lineage_of
from strandline.store.lineage.lookup import node_called
from strandline.store.lineage.relations import View
from strandline.store.lineage.table_lineage import Question, lineage_of

HERE = recordings.FILES.parent / "others"
NOW = View(micros_of(datetime.now(UTC)))
TRUTH: dict[str, Any] = json.loads((HERE / "dbt.json").read_text())


@pytest.fixture(params=["sent", "shuffled"])
def ran(engine: Engine, request: pytest.FixtureRequest) -> Engine:
    """A store that has taken the recording."""
    events = gzip.decompress((HERE / "dbt.jsonl.gz").read_bytes()).splitlines()
    if request.param == "shuffled":
        random.Random(17).shuffle(events)
    store(engine, events, size=len(events) if request.param == "sent" else 4)
    return engine


def question(connection: Connection, table: str, way: Direction = Direction.UPSTREAM) -> Question:
    """What a model is made from, or what is made from it, one step away."""
    return Question(node_called(connection, f"shop.main.{table}"), NOW, way, 1)


def tables(answer: dict[str, Any]) -> list[str]:
    """The other tables of an answer, by their last names."""
    return sorted(one["table"] for one in answer["nodes"] if one["type"] == "dataset" and one["distance"])


def test_each_model_is_made_from_what_it_selects_from(ran: Engine) -> None:
    with reader(ran) as connection:
        found = {model: tables(lineage_of(connection, question(connection, model))) for model in TRUTH["sources"]}

    assert found == TRUTH["sources"] | TRUTH["reported"]  # dbt reports an ephemeral model as if it were a table


def test_a_model_that_failed_or_was_skipped_is_made_from_nothing(ran: Engine) -> None:
    with reader(ran) as connection:
        assert tables(lineage_of(connection, question(connection, "bad"))) == []
        assert "bad" not in tables(lineage_of(connection, question(connection, "net", Direction.DOWNSTREAM)))
        with pytest.raises(NotFoundError):
            node_called(connection, "shop.main.skipped")


def test_columns_come_from_where_the_sql_takes_them(ran: Engine) -> None:
    found: dict[str, dict[str, list[str]]] = {}
    with reader(ran) as connection:
        for model in TRUTH["columns"]:
            answer = column_lineage_of(connection, question(connection, model))
            names = {one["id"]: (one["table"], one["column"]) for one in answer["nodes"]}
            for edge in answer["edges"]:
                table, column = names[edge["target"]]
                found.setdefault(table, {}).setdefault(column, []).append(".".join(names[edge["source"]]))

    assert {model: {to: sorted(of) for to, of in one.items()} for model, one in found.items()} == TRUTH["columns"]


def test_what_failed_is_failed_and_the_run_above_it_too(ran: Engine) -> None:
    with reader(ran) as connection:
        jobs = jobs_page(connection, Filter(), NOW.at, 100, None)["items"]

    failed = sorted(one["name"] for one in jobs if one["newestRun"]["state"] == "FAIL")
    assert failed == sorted(["dbt-run-shop", *(f"shop.main.shop.{one}" for one in TRUTH["failed"])])
