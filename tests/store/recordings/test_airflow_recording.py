"""Recorded Airflow events: default answers match the DAG, in any event order."""

import pytest
from sqlalchemy import Engine

from store.recordings.conftest import RecordedEngine
from strandline.store.catalog.filters import Filter
from strandline.store.catalog.lists import jobs_page
from strandline.store.lineage.run_state import View
from strandline.store.lineage.table_lineage import lineage_of
from worlds.recorded import NOW, ORDERS, columns_behind, question, tables, truth_of
from worlds.scenarios.taking import reader

TRUTH = truth_of("airflow")
DAG = "job:airflow:shop_daily"


@pytest.fixture(params=ORDERS)
def ran(recorded_engine: RecordedEngine, request: pytest.FixtureRequest) -> Engine:
    """Give a store that has taken the recording."""
    return recorded_engine("airflow", *request.param)


def test_each_table_is_made_from_what_its_task_selects_from(ran: Engine) -> None:
    with reader(ran) as connection:
        found = {
            table: tables(lineage_of(connection, question(connection, f"shop.shop.{table}")))
            for table in TRUTH["sources"]
        }

    assert found == TRUTH["sources"]


def test_nothing_is_running_afterwards(ran: Engine) -> None:
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


def test_columns_have_the_origins_in_the_sql(ran: Engine) -> None:
    with reader(ran) as connection:
        found = columns_behind(connection, {one: f"shop.shop.{one}" for one in TRUTH["columns"]})

    unreported = TRUTH["unreported"]
    # The provider calls the sum `_0`. Every column that a facet states is shown.
    assert found["totals"].pop("_0") == ["clean_orders.amount"]
    assert found == {
        table: {
            column: of for column, of in columns.items() if column not in unreported.get(table, ())
        }
        for table, columns in TRUTH["columns"].items()
    }


def test_failed_task_fails_its_dag_run(ran: Engine) -> None:
    with reader(ran) as connection:
        jobs = jobs_page(connection, Filter(), NOW.at, 100, None)["items"]

    assert (
        sorted(one["name"] for one in jobs if one["latestRun"]["state"] == "FAIL")
        == TRUTH["failed"]
    )


@pytest.mark.parametrize("asked", [Filter(tags=("shop",)), Filter(owners=("airflow",))])
def test_tags_and_owners_of_the_dag_and_its_tasks_filter_jobs(ran: Engine, asked: Filter) -> None:
    with reader(ran) as connection:
        names = {one["name"] for one in jobs_page(connection, asked, NOW.at, 100, None)["items"]}

    tasks = {f"shop_daily.{task}" for task in TRUTH["tasks"]}
    assert {name for name in names if ".query." not in name} == {"shop_daily", *tasks}
