"""Recorded dbt events: default answers match the project, in any event order."""

import pytest
from sqlalchemy import Engine

from store.recordings.conftest import RecordedEngine
from strandline.core.walk import Direction
from strandline.errors import NotFoundError
from strandline.store.catalog.filters import Filter
from strandline.store.catalog.lists import jobs_page
from strandline.store.lineage.lookup import node_called
from strandline.store.lineage.table_lineage import lineage_of
from worlds.recorded import NOW, ORDERS, columns_behind, question, tables, truth_of
from worlds.scenarios.taking import reader

TRUTH = truth_of("dbt")


@pytest.fixture(params=ORDERS)
def ran(recorded_engine: RecordedEngine, request: pytest.FixtureRequest) -> Engine:
    """Give a store that has taken the recording."""
    return recorded_engine("dbt", *request.param)


def test_each_model_is_made_from_what_it_selects_from(ran: Engine) -> None:
    with reader(ran) as connection:
        found = {
            model: tables(lineage_of(connection, question(connection, f"shop.main.{model}")))
            for model in TRUTH["sources"]
        }

    assert (
        found == TRUTH["sources"] | TRUTH["reported"]
    )  # dbt reports an ephemeral model as if it were a table


def test_failed_or_skipped_model_has_no_sources(ran: Engine) -> None:
    with reader(ran) as connection:
        assert tables(lineage_of(connection, question(connection, "shop.main.bad"))) == []
        assert "bad" not in tables(
            lineage_of(connection, question(connection, "shop.main.net", Direction.DOWNSTREAM))
        )
        with pytest.raises(NotFoundError):
            node_called(connection, "shop.main.skipped")


def test_columns_have_the_origins_in_the_sql(ran: Engine) -> None:
    with reader(ran) as connection:
        found = columns_behind(connection, {one: f"shop.main.{one}" for one in TRUTH["columns"]})

    assert found == TRUTH["columns"]


def test_failed_model_fails_its_command_run(ran: Engine) -> None:
    with reader(ran) as connection:
        jobs = jobs_page(connection, Filter(), NOW.at, 100, None)["items"]

    failed = sorted(one["name"] for one in jobs if one["latestRun"]["state"] == "FAIL")
    assert failed == sorted(["dbt-run-shop", *(f"shop.main.shop.{one}" for one in TRUTH["failed"])])
