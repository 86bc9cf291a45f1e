"""Lists by state and time, and reasons of failures."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, delete
from sqlalchemy.event import listen

from strandline.core.access.granted import Access
from strandline.core.openlineage.moments import moment
from strandline.core.openlineage.times import micros_of
from strandline.errors import NotFoundError
from strandline.store.catalog.details import dataset_detail
from strandline.store.catalog.filters import ALL, Filter, states_called
from strandline.store.catalog.lists import datasets_page, jobs_page
from strandline.store.catalog.runs import runs_page
from strandline.store.lineage.lookup import node_called
from strandline.store.lineage.run_state import View
from strandline.store.marquez.names import namespaces_page
from strandline.store.questions.namespaces import namespace_overview
from strandline.store.schema.run_tables import runs
from strandline.store.sql.engine import reading
from strandline.store.sql.narrowed import narrowed
from strandline.store.sql.pages import decode_cursor
from worlds.builders import (
    NOON,
    Json,
    at,
    batch,
    dataset,
    event,
    parent,
    run_id,
    snapshot,
    store,
    symlink,
)

NOW = micros_of(NOON + timedelta(hours=1))
HOUR = 3600
FAILED = Filter(states=frozenset({"FAIL"}))


def failed(message: str) -> Json:
    """Facets of a failed run."""
    return {"errorMessage": {"message": message, "programmingLanguage": "JAVA"}}


def night() -> list[Json]:
    """Three jobs: one fails at 13:00, one goes on, one is done; times are seconds after noon."""
    return [
        event("START", 1, "load", -HOUR, outputs=[dataset("bank.load")]),
        event(
            "FAIL",
            1,
            "load",
            0,
            outputs=[dataset("bank.load")],
            facets=failed("Division by zero\nat line 3"),
        ),
        event(
            "COMPLETE",
            2,
            "daily",
            -2 * HOUR,
            inputs=[dataset("bank.load")],
            outputs=[dataset("bank.daily")],
        ),
        event("START", 3, "stream", -3 * HOUR, outputs=[dataset("bank.stream")]),
    ]


def names(page: Json) -> list[str]:
    return [one["name"] if "name" in one else one["job"]["name"] for one in page["items"]]


def listed(
    engine: Engine, asked: Filter, limit: int = 10
) -> tuple[list[str], list[str], list[str]]:
    """(jobs, datasets, runs) of a filter, page by page."""
    with engine.connect() as connection:
        jobs = jobs_page(connection, asked, NOW, limit, None)
        datasets = datasets_page(connection, asked, NOW, limit, None)
        runs = runs_page(connection, None, asked, NOW, limit, None)
    return names(jobs), names(datasets), names(runs)


def span(since: float | None = None, until: float | None = None, *states: str) -> Filter:
    """A filter of seconds after noon."""
    first, last = (
        None if one is None else micros_of(NOON + timedelta(seconds=one)) for one in (since, until)
    )
    return Filter(None, frozenset(states), first, last)


def test_runs_can_be_listed_by_the_run_above_them(engine: Engine) -> None:
    below = [event("COMPLETE", run, "app.query", run, facets=parent(9, "app")) for run in (1, 2)]
    deeper = event("COMPLETE", 3, "app.query.part", facets=parent(1, "app.query"))
    store(engine, [*below, deeper, event("FAIL", 9, "app")], NOON)

    def children(of: int) -> list[str]:
        with engine.connect() as connection:
            page = runs_page(connection, None, ALL, NOW, 10, None, parent=run_id(of))
        return [one["runId"] for one in page["items"]]

    assert children(9) == [run_id(2), run_id(1)]
    assert (children(1), children(3)) == ([run_id(3)], [])
    with pytest.raises(NotFoundError, match="unknown run"):
        children(4)


def test_key_lists_no_runs_below_a_run_that_it_does_not_see(engine: Engine) -> None:
    hidden = event("START", 9, "app")
    hidden["job"]["namespace"] = "hidden"
    store(engine, [event("COMPLETE", 1, facets=parent(9, "app")), hidden], NOON)
    seen = narrowed(engine, Access("test", frozenset(), ("tests",)))

    with reading(seen).connect() as connection, pytest.raises(NotFoundError):
        runs_page(connection, None, ALL, NOW, 10, None, parent=run_id(9))


def test_lists_can_be_filtered_by_state(engine: Engine) -> None:
    store(engine, night(), NOON)

    assert listed(engine, FAILED) == (["load"], ["bank.load"], ["load"])
    assert listed(engine, Filter(states=states_called(["running"]))) == (
        ["stream"],
        ["bank.stream"],
        ["stream"],
    )
    assert listed(engine, Filter(states=frozenset({"LOST"}))) == ([], [], [])


def test_a_silent_run_is_listed_as_lost(engine: Engine) -> None:
    lease = {"strandline_heartbeat": {"timeoutSeconds": 60}}
    store(engine, [event("START", 1, "stream", 0, facets=lease)], NOON)

    assert listed(engine, Filter(states=frozenset({"LOST"})))[2] == ["stream"]
    assert listed(engine, span(30, 90, "LOST"))[2] == ["stream"]  # since 60 s after noon
    assert listed(engine, span(90, 120, "LOST"))[2] == []


def test_failed_runs_are_filtered_by_their_end(engine: Engine) -> None:
    store(engine, night(), NOON)

    assert listed(engine, span(-60, 60, "FAIL"))[2] == ["load"]
    assert listed(engine, span(-HOUR, -60, "FAIL"))[2] == []  # it ran then, and failed later
    assert listed(engine, span(60, None, "FAIL")) == ([], [], [])


def test_run_is_listed_in_every_period_in_which_it_ran(engine: Engine) -> None:
    store(engine, night(), NOON)

    assert listed(engine, span(-1800, -1700))[2] == ["load", "stream"]
    assert listed(engine, span(None, -2.5 * HOUR)) == (["stream"], ["bank.stream"], ["stream"])
    assert listed(engine, span(60, None)) == (["stream"], ["bank.stream"], ["stream"])


def test_filtered_lists_are_complete_at_any_page_size(engine: Engine) -> None:
    store(
        engine,
        [
            event("FAIL" if run % 3 == 0 else "COMPLETE", run, f"job{run:03}", run)
            for run in range(450)
        ],
        NOON,
    )

    found: list[str] = []
    after: Any = None
    with engine.connect() as connection:
        while True:
            page = runs_page(connection, None, FAILED, NOW, 20, after)
            found += names(page)
            if page["nextCursor"] is None:
                break
            after = decode_cursor(page["nextCursor"], (int, int))

    assert found == [f"job{run:03}" for run in range(447, -1, -3)]


def test_failed_run_has_its_reason(engine: Engine) -> None:
    store(engine, night(), NOON)

    with engine.connect() as connection:
        (run,) = runs_page(connection, None, FAILED, NOW, 10, None)["items"]
        (job,) = jobs_page(connection, FAILED, NOW, 10, None)["items"]
        done = jobs_page(connection, ALL, NOW, 10, None)["items"][0]

    assert run["error"] == job["latestRun"]["error"] == "Division by zero"
    assert done["latestRun"]["error"] is None


def test_failed_application_shows_its_first_childs_reason(engine: Engine) -> None:
    above = parent(9, "app")
    store(
        engine,
        [
            event("FAIL", 1, "app.second", 2, facets=above | failed("no such table t1")),
            event("FAIL", 2, "app.first", 1, facets=above | failed("disk full")),
            event("COMPLETE", 3, "app.third", 0, facets=above),
            event("FAIL", 9, "app", 3),
        ],
        NOON,
    )

    with engine.connect() as connection:
        runs = runs_page(connection, None, FAILED, NOW, 10, None)["items"]

    assert {one["job"]["name"]: one["error"] for one in runs} == {
        "app": "disk full",
        "app.first": "disk full",
        "app.second": "no such table t1",
    }


def test_a_dataset_is_listed_with_its_newest_write(engine: Engine) -> None:
    store(
        engine, [*night(), event("COMPLETE", 4, "repair", 60, outputs=[dataset("bank.load")])], NOON
    )

    with engine.connect() as connection:
        items = datasets_page(connection, ALL, NOW, 10, None)["items"]

    written = {
        one["name"]: one["latestWrite"] and one["latestWrite"]["job"]["name"] for one in items
    }
    assert written == {"bank.daily": "daily", "bank.load": "repair", "bank.stream": "stream"}


def test_a_dataset_is_listed_with_the_newest_snapshot_of_its_main_branch(engine: Engine) -> None:
    def wrote(run: int, seconds: float, **facet: Any) -> Json:
        facet = {"committedAt": at(seconds), **facet}
        made = snapshot(f"s{run}", **facet)
        return event("COMPLETE", run, "load", seconds, outputs=[dataset("bank.load", own=made)])

    commits = [
        wrote(1, 10, numberOfRows=3),
        wrote(2, 20, numberOfRows=5),
        wrote(3, 30, branch="audit"),
    ]
    store(engine, [*reversed(commits), event("COMPLETE", 4, "other", outputs=[dataset("x")])], NOON)

    with engine.connect() as connection:
        items = datasets_page(connection, ALL, NOW, 10, None)["items"]
        detail = dataset_detail(connection, node_called(connection, "bank.load"), NOW)

    assert detail["newestSnapshot"]["snapshotId"] == "s2"
    assert {one["name"]: one["latestSnapshot"] for one in items} == {
        "bank.load": {
            "snapshotId": "s2",
            "barrierId": None,
            "committedAt": "2026-11-20T12:00:20Z",
            "numberOfRows": 5,
        },
        "x": None,
    }


MADE = {"committedAt": at(10), "parentSnapshotId": "s1"}
NEWER = {
    "a read of one that was not known": (snapshot("s2", **MADE), snapshot("s1"), "read"),
    "a read of one of unknown time": (snapshot("s2"), snapshot("s1"), "read"),
    "a write that states no time": (
        snapshot("s1", committedAt=at(10)),
        snapshot("s2"),
        "write",
    ),
    "a child by a clock that is late": (
        snapshot("s1", committedAt=at(20)),
        snapshot("s2", **MADE),
        "write",
    ),
}


@pytest.mark.parametrize(("first", "then", "use"), NEWER.values(), ids=NEWER)
def test_newest_snapshot_is_the_last_commit_rather_than_the_last_seen(
    engine: Engine, first: Json, then: Json, use: str
) -> None:
    used = [dataset("bank.load", own=then)]
    ends: dict[str, Any] = {"inputs": used} if use == "read" else {"outputs": used}
    store(
        engine,
        [
            event("COMPLETE", 1, "load", 12, outputs=[dataset("bank.load", own=first)]),
            event("COMPLETE", 2, "other", 50, **ends),
        ],
        NOON,
    )

    with engine.connect() as connection:
        (item,) = datasets_page(connection, ALL, NOW, 10, None)["items"]
        detail = dataset_detail(connection, node_called(connection, "bank.load"), NOW)

    assert item["latestSnapshot"]["snapshotId"] == "s2"
    assert detail["newestSnapshot"]["snapshotId"] == "s2"


@pytest.mark.parametrize("as_of", [None, NOW - 1])
def test_a_job_is_listed_with_the_job_above_it(engine: Engine, as_of: int | None) -> None:
    store(
        engine,
        [
            event("COMPLETE", 1, "dbt", 0),
            event("COMPLETE", 2, "dbt.model", 1, facets=parent(1, "dbt")),
            event("COMPLETE", 3, "dbt.model.test", 2, facets=parent(1, "dbt")),
        ],
        NOON,
    )

    with engine.connect() as connection:
        items = jobs_page(connection, Filter(as_of=as_of), NOW, 10, None)["items"]

    above = {"namespace": "tests", "name": "dbt"}
    assert {one["name"]: one["parent"] for one in items} == {
        "dbt": None,
        "dbt.model": above,
        "dbt.model.test": above,
    }


def streams() -> list[Json]:
    """Six streaming queries of one application, each from a topic into a table of its own."""
    above = {"run": {"runId": run_id(1)}, "job": {"namespace": "tests", "name": "app"}}
    found = [event("START", 1, "app", 0)]
    for number in range(2, 8):
        ends = {
            "inputs": [dataset("clicks", "kafka://broker")],
            "outputs": [dataset(f"bank.t{number}")],
        }
        found.append(batch(1, number, f"app.q{number}", seconds=number, **ends))
        found[-1]["run"]["facets"]["parent"] = above
    return found


def test_newest_write_names_the_query_rather_than_its_application(engine: Engine) -> None:
    store(engine, streams(), NOON)

    with engine.connect() as connection:
        items = datasets_page(connection, ALL, NOW, 10, None)["items"]

    written = {
        one["name"]: one["latestWrite"] and one["latestWrite"]["job"]["name"] for one in items
    }
    assert written == {"clicks": None} | {
        f"bank.t{number}": f"app.q{number}" for number in range(2, 8)
    }


@pytest.mark.parametrize("past", [False, True])
def test_query_and_its_application_count_as_one_job_between_namespaces(
    engine: Engine, past: bool
) -> None:
    store(engine, streams(), NOON)

    with engine.connect() as connection:
        found = namespace_overview(connection, View(NOW, past=past), 10)

    assert found["edges"] == [
        {"source": "namespace:kafka://broker", "target": "namespace:hive://lake", "jobs": 6}
    ]


@pytest.mark.parametrize("past", [False, True])
def test_namespace_counts_the_listed_jobs(engine: Engine, past: bool) -> None:
    log = dataset("/warehouse/t/_delta_log/00000000000000000003.json", "file")
    store(engine, [*night(), event("COMPLETE", 9, "app.delta_3", inputs=[log])], NOON)

    with engine.connect() as connection:
        found = namespace_overview(connection, View(NOW, past=past), 10)
        shown = jobs_page(connection, ALL, NOW, 10, None)["items"]

    assert sum(one["jobs"] for one in found["nodes"]) == len(shown) == 3


@pytest.mark.parametrize("past", [False, True])
def test_namespace_of_symlinks_alone_is_not_listed_and_counts_equal_lists(
    engine: Engine, past: bool
) -> None:
    """The folder is the dataset; only a symlink names it, and an application is only a parent."""
    links = {"symlinks": symlink("/lake/t", "file", "LOCATION")}
    table = dataset("bank.t", "hive://lake", **links)
    store(engine, [event("COMPLETE", 1, "load", 1, outputs=[table], facets=parent(9, "app"))], NOON)
    asked = Filter(as_of=NOW if past else None)

    with engine.connect() as connection:
        found = namespace_overview(connection, View(NOW, past=past), 10)["nodes"]
        known = [name for _, name in namespaces_page(connection, 10, 0)]
        pages = [page(connection, asked, NOW, 10, None) for page in (datasets_page, jobs_page)]

    tables, jobs = (Counter(one["namespace"] for one in page["items"]) for page in pages)
    assert {one["name"]: (one["datasets"], one["jobs"]) for one in found} == {
        name: (tables[name], jobs[name]) for name in {*tables, *jobs}
    }
    assert sorted({*tables, *jobs, "default"}) == known
    assert sum(tables.values()) == 1


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("12h", "2026-11-20 00:00"),
        ("90m ago", "2026-11-20 10:30"),
        ("3d", "2026-11-17 12:00"),
        ("yesterday", "2026-11-19 00:00"),
        ("Today", "2026-11-20 00:00"),
        ("18:00", "2026-11-19 18:00"),
        ("2026-11-20", "2026-11-20 00:00"),
        ("2026-11-20T13:00:00+02:00", "2026-11-20 11:00"),
        ("now", "2026-11-20 12:00"),
    ],
)
def test_human_time_formats_are_accepted(text: str, meant: str) -> None:
    assert f"{moment(text, NOON):%Y-%m-%d %H:%M}" == meant
    assert moment(text, NOON).tzinfo == UTC


@pytest.mark.parametrize("text", ["", "tomorrow", "25:00", "12", "h", "2026-13-01", "1x", "٣h"])
def test_invalid_time_is_rejected(text: str) -> None:
    with pytest.raises(
        ValueError,
        match="is not a time like 2026-11-20T12:00:00Z, 18:00, 12h, 3d, friday, today or yesterday",
    ):
        moment(text, datetime.fromisoformat(at(0)))


@pytest.mark.postgres
def test_run_that_expires_during_listing_is_omitted(postgres_engine: Engine) -> None:
    """A page takes two statements, and on PostgreSQL each has its own snapshot of the data."""
    store(postgres_engine, night(), NOON)

    def expire(_: Connection, __: Any, statement: str, *___: Any) -> None:
        if "run_ends" in statement:
            with postgres_engine.begin() as other:
                other.execute(delete(runs).where(runs.c.run_id == run_id(2)))

    with postgres_engine.connect() as connection:
        listen(connection, "before_cursor_execute", expire)
        page = runs_page(connection, None, ALL, NOW, 10, None)

    assert names(page) == ["load", "stream"]
