"""Counts of runs, jobs and datasets beside the lists of them."""

from sqlalchemy import Engine

from strandline.core.openlineage.times import micros_of
from strandline.store.catalog.filters import ALL, Filter
from strandline.store.catalog.gauges import run_counts
from strandline.store.catalog.lists import datasets_page, jobs_page, runs_page
from strandline.store.catalog.totals import count_datasets, count_jobs
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

        assert run_counts(connection, NOW).failed == len(listed) == 1


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
