"""Counts of runs, jobs and datasets beside the lists of them."""

from datetime import timedelta

from sqlalchemy import Engine

from strandline.core.access.granted import Access
from strandline.core.openlineage.times import micros_of
from strandline.store.catalog.filters import ALL, Filter
from strandline.store.catalog.gauges import DAY, run_counts
from strandline.store.catalog.lists import count_datasets, count_jobs, datasets_page, jobs_page
from strandline.store.catalog.runs import runs_page
from strandline.store.sql.engine import reading
from strandline.store.sql.narrowed import narrowed
from worlds.builders import NOON, Json, dataset, event, job_event, parent, store

NOW = micros_of(NOON) + 3_600_000_000
OUTER, INNER = "app.atomic_create_table_as_select.db_t", "app.append_data.lake_db_t"


def command(kind: str, run: int, name: str, seconds: float) -> Json:
    """Return an event of a command of run 9 of `app`, as the stock Spark listener reports it."""
    of_job = {"jobType": {"processingType": "BATCH", "integration": "SPARK", "jobType": "SQL_JOB"}}
    return event(
        kind,
        run,
        name,
        seconds,
        facets=parent(9, "app"),
        job_facets=of_job,
        outputs=[dataset("db.t")],
    )


def create_table(end: str, application_end: str) -> list[Json]:
    """Return an application with one CREATE TABLE AS SELECT, which is reported as two runs."""
    return [
        event("START", 9, "app", -1),
        command("START", 1, OUTER, 0),
        command("START", 2, INNER, 10),
        command(end, 2, INNER, 20),
        command(end, 1, OUTER, 30),
        event(application_end, 9, "app", 40),
    ]


def test_application_and_the_query_that_failed_it_are_one_failure(engine: Engine) -> None:
    store(engine, [*create_table("FAIL", "FAIL"), event("FAIL", 5, "other", 50)], NOON)

    with engine.connect() as connection:
        assert run_counts(connection, NOW).failed == 2


def test_command_that_failed_in_two_runs_is_one_failure(engine: Engine) -> None:
    store(engine, create_table("FAIL", "COMPLETE"), NOON)

    with engine.connect() as connection:
        asked = Filter(states=frozenset({"FAIL"}))
        listed = runs_page(connection, None, asked, NOW, 10, None)["items"]

        whole = runs_page(connection, None, Filter(), NOW, 10, None)["items"]
        assert run_counts(connection, NOW).failed == len(listed) == 1
    below = {one["job"]["name"]: one["failedChildren"] for one in whole}
    assert below == {"app": 1, OUTER: 0}


def test_query_counts_with_its_application_only_while_both_are_running(engine: Engine) -> None:
    store(
        engine,
        [event("START", 9, "app", 0), event("START", 1, "app.query", 1, facets=parent(9, "app"))],
        NOON,
    )
    with engine.connect() as connection:
        assert run_counts(connection, NOW).running == 1

    store(engine, [event("FAIL", 1, "app.query", 2, facets=parent(9, "app"))], NOON)

    with engine.connect() as connection:
        counts = run_counts(connection, NOW)
        assert (counts.running, counts.failed) == (1, 1)


def test_failure_on_three_levels_counts_once_if_the_middle_completed(engine: Engine) -> None:
    store(
        engine,
        [
            event("FAIL", 1, "dag", 3),
            event("COMPLETE", 2, "dag.task", 2, facets=parent(1, "dag")),
            event("FAIL", 3, "app", 1, facets=parent(2, "dag.task")),
        ],
        NOON,
    )

    with engine.connect() as connection:
        assert run_counts(connection, NOW).failed == 1


def test_lost_runs_are_counted_by_the_moment_of_silence_as_in_their_list(engine: Engine) -> None:
    lease = {"strandline_heartbeat": {"timeoutSeconds": 60}}
    store(engine, [event("START", 1, "long.ago", -7 * 86_400, facets=lease)], NOON)
    store(engine, [event("START", 2, "old", 0, facets=lease)], NOON - timedelta(days=2))
    store(engine, [event("START", 3, "without.lease", 0)], NOON - timedelta(days=1.5))
    asked = Filter(states=frozenset({"LOST"}), since=NOW - DAY)

    with engine.connect() as connection:
        listed = runs_page(connection, None, asked, NOW, 10, None)["items"]
        counted = run_counts(connection, NOW).lost

    assert {one["job"]["name"] for one in listed} == {"long.ago", "without.lease"}
    assert counted == 2


def test_key_that_sees_a_part_gets_the_numbers_of_its_lists(engine: Engine) -> None:
    def elsewhere(one: Json) -> Json:
        one["job"]["namespace"] = "hidden"
        return one

    store(
        engine,
        [
            *create_table("FAIL", "FAIL"),
            elsewhere(event("FAIL", 11, "other", outputs=[dataset("x", "secret")])),
            elsewhere(event("FAIL", 12, "app", 9)),
            event("FAIL", 13, "app.below", 8, facets=parent(12, "app")),
            event("COMPLETE", 14, "load", 9, [dataset("a")], [dataset("b")]),
        ],
        NOON,
    )
    access = Access("test", frozenset(), ("tests", "hive*"))

    with reading(narrowed(engine, access)).connect() as connection:
        tables = datasets_page(connection, ALL, NOW, 10, None)["items"]
        jobs = jobs_page(connection, ALL, NOW, 10, None)["items"]
        failed = run_counts(connection, NOW).failed

        assert sorted(one["name"] for one in tables) == ["a", "b", "db.t"]
        assert sorted(one["name"] for one in jobs) == ["app", OUTER, "app.below", "load"]
        assert (count_datasets(connection, None), count_jobs(connection, None)) == (3, 4)
        assert (count_datasets(connection, "secret"), count_jobs(connection, "hidden")) == (0, 0)
        assert failed == 2


def test_counts_equal_the_lists(engine: Engine) -> None:
    log = dataset("/warehouse/t/_delta_log/00000000000000000003.json", "file")
    failed_create = dataset("never.made", lifecycleStateChange={"lifecycleStateChange": "CREATE"})
    store(
        engine,
        [
            *create_table("COMPLETE", "COMPLETE"),
            event("COMPLETE", 6, "app.delta_3", 9, inputs=[log]),
            event("FAIL", 7, "create", 10, inputs=[dataset("source")], outputs=[failed_create]),
            job_event("planned", 11),
        ],
        NOON,
    )

    with engine.connect() as connection:
        tables = [one["name"] for one in datasets_page(connection, ALL, NOW, 10, None)["items"]]
        jobs = [one["name"] for one in jobs_page(connection, ALL, NOW, 10, None)["items"]]

        assert (len(tables), tables.count("never.made")) == (count_datasets(connection, None), 0)
        assert (len(jobs), jobs.count(INNER)) == (count_jobs(connection, None), 0)
        assert (count_datasets(connection, "none"), count_jobs(connection, "none")) == (0, 0)
