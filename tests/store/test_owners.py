"""Owners of jobs: their own, or those of the nearest job above that has some."""

import pytest
from sqlalchemy import Engine

from strandline.alerts.conditions import owners_of
from strandline.core.access.granted import Access
from strandline.core.openlineage.names import id_of
from strandline.core.openlineage.times import micros_of
from strandline.errors import NotFoundError
from strandline.store.catalog.details import dataset_detail
from strandline.store.catalog.filters import ALL, Filter
from strandline.store.catalog.lists import datasets_page, jobs_page
from strandline.store.catalog.owners import owners_of_jobs
from strandline.store.lineage.lookup import dataset_of, node_called
from strandline.store.lineage.run_state import View
from strandline.store.questions.lineage_answers import impact
from strandline.store.sql.engine import reading
from strandline.store.sql.narrowed import narrowed
from worlds.builders import NOON, Json, dataset, event, parent, store


def owned(*names: str) -> Json:
    return {"ownership": {"owners": [{"name": name, "type": "MAINTAINER"} for name in names]}}


def hierarchy() -> list[Json]:
    """A DAG with owners, a task, and an application below it that makes a table."""
    return [
        event("START", 1, "dag", 0, job_facets=owned("team-a", "team-b")),
        event("START", 2, "dag.task", 1, facets=parent(1, "dag")),
        event("COMPLETE", 3, "app", 2, [dataset("bank.a")], [dataset("bank.b")],
              facets=parent(2, "dag.task")),
        event("COMPLETE", 4, "owned_app", 3, facets=parent(2, "dag.task"), job_facets=owned("me")),
        event("COMPLETE", 5, "alone", 4),
    ]  # fmt: skip


def owners(engine: Engine) -> dict[str, list[str]]:
    names = {id_of("job", "tests", name): name for name in ("dag", "app", "owned_app", "alone")}
    with reading(engine).connect() as connection:
        return {names[job]: found or [] for job, found in owners_of_jobs(connection, names).items()}


def test_job_without_owners_has_those_of_its_nearest_parent(engine: Engine) -> None:
    store(engine, hierarchy(), NOON)

    assert owners(engine) == {
        "dag": ["team-a", "team-b"],
        "app": ["team-a", "team-b"],
        "owned_app": ["me"],
    }
    with engine.connect() as connection:
        assert owners_of(connection, ("tests", "app")) == ["team-a", "team-b"]
        view = View(micros_of(NOON) + 10**7)
        items = impact(connection, {"node": "bank.a"}, view)["items"]
        listed = jobs_page(connection, ALL, view.at, 10, None)["items"]
    assert {one["name"]: one["owners"] for one in listed} == {
        "dag": ["team-a", "team-b"],
        "dag.task": ["team-a", "team-b"],
        "app": ["team-a", "team-b"],
        "owned_app": ["me"],
        "alone": [],
    }
    assert {one["name"]: one["owners"] for one in items if one["type"] == "job"} == {
        "app": ["team-a", "team-b"]
    }


@pytest.mark.parametrize(
    ("tags", "of", "jobs", "tables"),
    [
        (("shop",), (), ["app", "dag.task"], ["bank.b"]),
        (("tier=g*", "none"), (), ["dag.task"], []),
        (("true",), (), [], []),
        ((), ("team-a",), ["app", "dag", "dag.task"], []),
        ((), ("m*",), ["owned_app"], ["bank.b"]),
        (("shop",), ("team-b",), ["app", "dag.task"], []),
        (("shop",), ("me",), [], ["bank.b"]),
    ],
)
@pytest.mark.parametrize("as_of", [None, micros_of(NOON) + 10**7])
def test_tags_and_owners_filter_lists(
    engine: Engine,
    tags: tuple[str, ...],
    of: tuple[str, ...],
    jobs: list[str],
    tables: list[str],
    as_of: int | None,
) -> None:
    events = hierarchy()
    shop = {"key": "shop", "value": "shop", "source": "AIRFLOW"}
    tier = {"key": "tier", "value": "gold"}
    events[1]["job"]["facets"] = {"tags": {"tags": [shop, tier]}}
    events[2]["job"]["facets"] = {"tags": {"tags": [shop]}}
    events[2]["outputs"] = [dataset("bank.b", tags={"tags": [shop]}, **owned("me"))]
    store(engine, events, NOON)

    asked, now = Filter(as_of=as_of, tags=tags, owners=of), micros_of(NOON) + 10**8
    with engine.connect() as connection:
        pages = [page(connection, asked, now, 10, None) for page in (jobs_page, datasets_page)]

    assert [[one["name"] for one in page["items"]] for page in pages] == [jobs, tables]


def test_owners_stand_in_lists_of_tables_and_jobs_now_and_at_a_past_moment(
    engine: Engine,
) -> None:
    """What a later event states again may have been otherwise before."""
    events = hierarchy()
    events[2]["outputs"] = [dataset("bank.b", **owned("table-team"))]
    again = event("COMPLETE", 6, "owned_app", 50, [], [dataset("bank.b", **owned("other-team"))],
                  job_facets=owned("you"))  # fmt: skip
    store(engine, [*events, again], NOON)

    def listed(seconds: int | None) -> dict[str, list[str] | None]:
        asked = Filter(as_of=None if seconds is None else micros_of(NOON) + seconds * 10**6)
        now = micros_of(NOON) + 10**8
        with engine.connect() as connection:
            pages = [page(connection, asked, now, 10, None) for page in (jobs_page, datasets_page)]
        return {one["name"]: one["owners"] for page in pages for one in page["items"]}

    team = ["team-a", "team-b"]
    of_dag = {"dag": team, "dag.task": team, "app": team, "alone": [], "bank.a": []}
    assert listed(None) == of_dag | {"owned_app": ["you"], "bank.b": ["other-team"]}
    assert listed(60) == listed(None)
    assert listed(40) == of_dag | {"owned_app": None, "bank.b": None}


def test_parent_that_a_key_does_not_see_lends_no_owners(engine: Engine) -> None:
    events = hierarchy()
    for one in events[:2]:
        one["job"]["namespace"] = "hidden"
    for one in events[1:]:
        for above in one["run"]["facets"].values():
            above["job"]["namespace"] = "hidden"
    store(engine, events, NOON)

    assert owners(engine)["app"] == ["team-a", "team-b"]
    limited = narrowed(engine, Access("key", frozenset(), ("tests", "hive://lake")))
    assert owners(limited) == {"owned_app": ["me"]}


def test_jobs_that_are_each_others_parents_have_no_owners(engine: Engine) -> None:
    store(
        engine,
        [
            event("START", 1, "dag", 0, facets=parent(2, "app")),
            event("START", 2, "app", 1, facets=parent(1, "dag")),
        ],
        NOON,
    )

    assert owners(engine) == {}


def test_dropped_table_says_so_in_its_detail(engine: Engine) -> None:
    drop = {"lifecycleStateChange": {"lifecycleStateChange": "DROP"}}
    store(
        engine,
        [
            event("COMPLETE", 1, "make", 1, [], [dataset("bank.t"), dataset("bank.kept")]),
            event("COMPLETE", 2, "drop", 60, [], [dataset("bank.t") | {"facets": drop}]),
        ],
        NOON,
    )

    with engine.connect() as connection:
        now = micros_of(NOON) + 10**9
        details = [
            dataset_detail(connection, dataset_of(connection, "hive://lake", name), now)
            for name in ("bank.t", "bank.kept")
        ]
    assert [detail.get("droppedAt") for detail in details] == ["2026-11-20T12:01:00Z", None]


def test_tables_are_suggested_before_jobs_and_the_nearest_first(engine: Engine) -> None:
    tables = [dataset("bank.balances_of_old"), dataset("bank.balances")]
    store(engine, [event("COMPLETE", 1, "bank.balancer", 1, [], tables)], NOON)

    with engine.connect() as connection, pytest.raises(NotFoundError) as unknown:
        node_called(connection, "bank.balance")
    assert unknown.value.candidates == (
        "bank.balances",
        "bank.balances_of_old",
        "bank.balancer",
    )
