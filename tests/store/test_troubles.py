"""Failed and lost jobs among many runs."""

from datetime import timedelta

import pytest
from sqlalchemy import Engine

from strandline.alerts import conditions
from strandline.alerts.conditions import Trouble, store_troubles
from strandline.store.sql.engine import reading
from worlds.builders import NOON, Json, event, parent, store

LEASE = {"strandline_heartbeat": {"timeoutSeconds": 60}}
NOW = NOON.timestamp() + 3600


def troubles(engine: Engine) -> list[Trouble]:
    """Return what is wrong an hour after noon."""
    with reading(engine).connect() as connection:
        return store_troubles(connection, [], NOW)


def lost_run(run: int, job: str, seconds: float) -> Json:
    """Return the start of a run that says no more."""
    return event("START", run, job, seconds, facets=LEASE)


def test_run_that_began_before_the_lost_one_does_not_make_its_job_well(engine: Engine) -> None:
    overlapping = [event("START", 1), lost_run(2, "etl", 100), event("COMPLETE", 1, seconds=200)]
    store(engine, overlapping, NOON)

    assert [(one.rule, one.count) for one in troubles(engine)] == [("lost", 1)]

    later = [event("START", 3, seconds=150), event("COMPLETE", 3, seconds=250)]
    store(engine, later, NOON)

    assert troubles(engine) == []


def test_run_still_reporting_after_a_later_one_completed_is_lost(engine: Engine) -> None:
    later = [event("START", 3, seconds=150), event("COMPLETE", 3, seconds=250)]
    heard = event("RUNNING", 2, "etl", 300, facets=LEASE)
    store(engine, [lost_run(2, "etl", 100), *later, heard], NOON)

    assert [(one.rule, one.count) for one in troubles(engine)] == [("lost", 1)]


def test_many_lost_runs_of_a_job_are_counted_and_hide_no_other_job(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conditions, "MOST", 3)
    store(engine, [lost_run(9, "other", 0)], NOON)
    store(
        engine,
        [lost_run(run, "busy", run) for run in range(10, 15)],
        NOON + timedelta(seconds=1),
    )

    found = {one.about: one.count for one in troubles(engine)}

    assert found == {"tests:busy": 5, "tests:other": 1}


def test_failures_below_a_completed_task_of_a_failed_dag_are_the_dags(engine: Engine) -> None:
    failures = [
        event("FAIL", 1, "dag", 3),
        event("COMPLETE", 2, "dag.task", 2, facets=parent(1, "dag")),
        event("FAIL", 3, "app", 1, facets=parent(2, "dag.task")),
    ]
    store(engine, failures, NOON)

    with reading(engine).connect() as connection:
        found = store_troubles(connection, [], NOW)
        topmost = conditions.topmost_failures(connection, found)

    assert ([one.about for one in found], [one.about for one in topmost]) == (
        ["tests:dag", "tests:app"],
        ["tests:dag"],
    )


def test_failures_above_and_below_others_are_told_apart(engine: Engine) -> None:
    failures = [
        event("FAIL", 1, "etl.load", 10),
        event("FAIL", 2, "etl.load", 20),
        event("FAIL", 3, "etl.load", 30, facets=parent(4, "app")),
        event("FAIL", 4, "app", 31),
        event("FAIL", 5, "app.query", 40, facets=parent(6, "app")),
        event("FAIL", 6, "app", 41),
        event("FAIL", 7, "app.query", 50, facets=parent(8, "app")),
        event("FAIL", 8, "app", 51),
    ]
    store(engine, failures, NOON)

    with reading(engine).connect() as connection:
        found = store_troubles(connection, [], NOW)
        topmost = conditions.topmost_failures(connection, found)

    assert {one.about: one.count for one in found} == {
        "tests:app": 3,
        "tests:app.query": 2,
        "tests:etl.load": 3,
    }
    assert [(one.about, one.text) for one in topmost] == [
        ("tests:app", "job app failed 3 times (run 00000000-0000-4000-8000-000000000008)"),
        (
            "tests:etl.load",
            "job etl.load failed 2 times (run 00000000-0000-4000-8000-000000000002)",
        ),
    ]
