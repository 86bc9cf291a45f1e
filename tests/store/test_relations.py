"""Edges start and end independently of event order."""

from datetime import UTC, datetime, timedelta
from itertools import permutations

import pytest
from sqlalchemy import Engine

from strandline.store.catalog.filters import ALL
from strandline.store.catalog.lists import datasets_page
from strandline.store.sql.shared_settings import agree
from worlds.builders import (
    LONG_AGO,
    NOON,
    batch,
    dataset,
    event,
    history,
    job_event,
    live,
    rows,
    run_id,
    store,
    symlink,
)

A, B = dataset("bank.a"), dataset("bank.b")


def test_edge_is_running_from_start_until_the_end(engine: Engine) -> None:
    store(engine, [event("START", inputs=[A], outputs=[B])])

    assert live(engine) == {"etl": ["< bank.a", "> bank.b"]}

    store(engine, [event("COMPLETE", seconds=5)])

    assert live(engine) == {}
    assert history(engine) == [
        ("etl", "<", "a", "COMPLETE", 0, 5),
        ("etl", ">", "b", "COMPLETE", 0, 5),
    ]


@pytest.mark.parametrize("kind", [None, "OTHER"])
def test_events_without_a_state_start_no_edge(engine: Engine, kind: str | None) -> None:
    store(engine, [event(kind, inputs=[A])])

    assert live(engine) == {}


def test_late_and_repeated_events_bring_no_edge_back(engine: Engine) -> None:
    store(engine, [event("COMPLETE", seconds=9, outputs=[B])])
    store(
        engine,
        [
            event("START", inputs=[A]),
            event("RUNNING", seconds=20, inputs=[A]),
            event("START", inputs=[A]),
        ],
    )

    assert live(engine) == {}
    assert history(engine) == [
        ("etl", "<", "a", "COMPLETE", 0, 9),
        ("etl", ">", "b", "COMPLETE", 0, 9),
    ]


def test_fail_beats_a_later_complete(engine: Engine) -> None:
    store(
        engine,
        [event("START", outputs=[B]), event("FAIL", seconds=3), event("COMPLETE", seconds=3.02)],
    )

    assert history(engine) == [("etl", ">", "b", "FAIL", 0, 3)]


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_run_that_ended_before_its_first_running_began_at_its_end(
    engine: Engine, order: tuple[int, ...]
) -> None:
    events = [
        event("COMPLETE", seconds=5, inputs=[A]),
        event("RUNNING", seconds=9, inputs=[A]),
        event("RUNNING", seconds=12, outputs=[B]),
    ]
    for place in order:
        store(engine, [events[place]])

    assert history(engine) == [
        ("etl", "<", "a", "COMPLETE", 5, 5),
        ("etl", ">", "b", "COMPLETE", 5, 5),
    ]


def test_run_lost_before_its_start_began_when_it_was_lost(engine: Engine) -> None:
    ahead = (
        LONG_AGO - NOON + timedelta(hours=1)
    ).total_seconds()  # the sender's clock is an hour fast
    store(engine, [batch(1, seconds=ahead, inputs=[A])], received_at=LONG_AGO)

    lost_at = (LONG_AGO - NOON + timedelta(seconds=60)).total_seconds()
    assert history(engine) == [("stream", "<", "a", "LOST", lost_at, lost_at)]


def test_a_new_run_of_the_same_job_starts_fresh(engine: Engine) -> None:
    store(
        engine,
        [
            event("START", 1, inputs=[A]),
            event("COMPLETE", 1, seconds=1),
            event("START", 2, seconds=2, inputs=[B]),
        ],
    )

    assert live(engine) == {"etl": ["< bank.b"]}


def test_a_silent_run_is_lost_and_a_later_event_revives_it(engine: Engine) -> None:
    sent = (LONG_AGO - NOON).total_seconds()
    store(engine, [batch(1, seconds=sent, inputs=[A])], received_at=LONG_AGO)

    assert live(engine) == {}
    assert history(engine) == [("stream", "<", "a", "LOST", sent, sent + 60)]

    store(engine, [batch(2)])

    assert live(engine) == {"stream": ["< bank.a"]}
    assert history(engine) == []


def test_run_without_a_heartbeat_timeout_may_be_silent_for_a_day(engine: Engine) -> None:
    store(engine, [event("START", inputs=[A])], received_at=datetime.now(UTC) - timedelta(hours=23))

    assert live(engine) == {"etl": ["< bank.a"]}


def test_job_without_runs_is_never_running(engine: Engine) -> None:
    store(engine, [job_event(inputs=[A], outputs=[B])])

    assert live(engine) == {}
    assert history(engine) == []


def test_failed_create_table_as_leaves_neither_table_nor_edge(engine: Engine) -> None:
    made = dataset("bank.report", lifecycleStateChange={"lifecycleStateChange": "CREATE"})
    store(engine, [event("START", inputs=[A], outputs=[made])])

    assert live(engine) == {"etl": ["< bank.a", "> bank.report"]}

    store(engine, [event("FAIL", seconds=1)])

    assert history(engine) == [("etl", "<", "a", "FAIL", 0, 1)]


@pytest.mark.parametrize(
    "named", [("db.ct", "s3a://w", "/wh/ct", "LOCATION"), ("/wh/ct", "hive://m", "db.ct", "TABLE")]
)
def test_table_of_a_failed_create_is_not_listed_under_any_name(
    engine: Engine, named: tuple[str, str, str, str]
) -> None:
    name, namespace, other, type_ = named
    own_namespace = "s3a://w" if type_ == "TABLE" else "hive://m"
    created = {"lifecycleStateChange": "CREATE"}
    made = dataset(
        name, own_namespace, symlinks=symlink(other, namespace, type_), lifecycleStateChange=created
    )
    store(engine, [event("START", inputs=[A], outputs=[made]), event("FAIL", seconds=1)])

    with engine.connect() as connection:
        listed = datasets_page(connection, ALL, 0, 10, None)

    assert [one["name"] for one in listed["items"]] == ["bank.a"]


def test_the_table_of_a_streaming_job_stays_when_the_job_fails(engine: Engine) -> None:
    made = dataset("bank.report", lifecycleStateChange={"lifecycleStateChange": "CREATE"})
    store(engine, [batch(1, outputs=[made]), event("FAIL", job="stream", seconds=5)])

    assert history(engine) == [("stream", ">", "report", "FAIL", 1, 5)]


def test_non_uuid_run_id_belongs_to_its_job(engine: Engine) -> None:
    store(
        engine, [event("START", "run", "one", inputs=[A]), event("START", "run", "two", inputs=[A])]
    )
    store(engine, [event("COMPLETE", "run", "one", seconds=1)])

    assert live(engine) == {"two": ["< bank.a"]}


def test_a_uuid_is_one_run_in_any_spelling_and_under_any_job_name(engine: Engine) -> None:
    store(engine, [event("START", run_id(1), "load", inputs=[A])])
    store(engine, [event("COMPLETE", run_id(1).upper(), "load.with_target", seconds=1)])

    assert history(engine) == [("load.with_target", "<", "a", "COMPLETE", 0, 1)]


@pytest.mark.parametrize("size", [1, 10])
@pytest.mark.parametrize("first", [0, 1])
def test_uuid_is_shown_in_lower_case(engine: Engine, first: int, size: int) -> None:
    uuid = "abcdefab-0000-4000-8000-000000000001"
    parent = {
        "parent": {"run": {"runId": uuid.upper()}, "job": {"namespace": "tests", "name": "load"}}
    }
    said = [
        event("START", uuid, "load"),
        event("COMPLETE", uuid.upper(), "load"),
        event(run="x", facets=parent),
    ]
    store(engine, said[first:] + said[:first], size=size)

    assert rows(engine, "SELECT run_id FROM runs") == [(uuid,), ("x",)]


def test_non_uuid_parent_run_is_found_despite_a_redacted_namespace(engine: Engine) -> None:
    namespace = "https://ann:hunter2@airflow"
    named = {"namespace": namespace, "name": "dag"}
    parent = {"parent": {"run": {"runId": "daily"}, "job": named}}
    store(
        engine, [event("START", "daily") | {"job": named}, event("START", "task-1", facets=parent)]
    )

    assert rows(engine, "SELECT run_id, state FROM runs") == [("daily", 1), ("task-1", 1)]


def test_hidden_catalogs_are_omitted(engine: Engine) -> None:
    store(
        engine,
        [
            event(
                "START",
                inputs=[dataset("x.a", catalog={"name": "one", "framework": "f", "type": "t"}), B],
            )
        ],
    )
    with engine.begin() as connection:
        connection.exec_driver_sql(
            "INSERT INTO catalog_options VALUES ('table-lineage', 'false', '', 'one', '')"
        )

    assert live(engine) == {"etl": ["< bank.b"]}


def test_allowed_silence_is_a_setting_of_the_store(engine: Engine) -> None:
    store(engine, [event("START", inputs=[A])], received_at=datetime.now(UTC) - timedelta(hours=2))
    with engine.begin() as connection:
        agree(connection, "silent_seconds", "7000")

    assert live(engine) == {}
    assert [(job, state) for job, _, _, state, _, _ in history(engine)] == [("etl", "LOST")]

    with engine.begin() as connection:
        agree(connection, "silent_seconds", "86400")

    assert live(engine) == {"etl": ["< bank.a"]}
