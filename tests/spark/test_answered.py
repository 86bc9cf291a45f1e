"""Events fetched in one round trip equal events fetched call by call."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fixtures.spark_lake.analysis import PATIENCE, next_event
from strandline_spark import completes
from strandline_spark.conf_keys import COMPLETES, JOB_NAME
from strandline_spark.jvm.client import Jvm, class_name, kept
from strandline_spark.jvm.event_answers import (
    WAIT,
    Answers,
    completes_of,
    fetches_result,
    job_name_of,
)
from strandline_spark.jvm.event_queue import WAKE, EventQueue
from strandline_spark.jvm.iceberg_snapshot import Commit, Registry, commit_of
from strandline_spark.plans.physical import statistics_of
from strandline_spark.plans.tree_source import number_of

pytestmark = pytest.mark.spark


def answered(lake: Any, event: Any) -> Any:
    queue = lake._jvm.java.util.concurrent.LinkedBlockingQueue()
    queue.add(event)
    return Answers(Jvm(lake._jvm), queue, after=0).next(WAIT)


def test_start_event_is_unchanged_in_one_round_trip(lake: Any, queue: EventQueue) -> None:
    lake.range(3).collect()
    event = next_event(queue, "SQLExecutionStart")

    told = answered(lake, event)

    assert class_name(told) == "org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionStart"
    assert (told.executionId(), told.time()) == (event.executionId(), event.time())
    assert told.description() == event.description()
    assert int(told.rootExecutionId().get()) == int(event.rootExecutionId().get())
    assert told.details() == event.details()  # nobody asked for it together with the others


@pytest.mark.parametrize("at_once", [True, False], ids=["at once", "one by one"])
def test_statement_keeps_the_job_name_it_started_with(
    lake: Any, queue: EventQueue, at_once: bool
) -> None:
    session = lake.newSession()
    session.conf.set(JOB_NAME, "first")
    session.range(3).collect()
    session.conf.set(JOB_NAME, "second")
    event = next_event(queue, "SQLExecutionStart")

    told = answered(lake, event) if at_once else event

    assert job_name_of(told, None) == "first"
    assert (kept(told, JOB_NAME) is not None) or not at_once


def test_secret_looking_job_name_is_read_from_the_session(lake: Any, queue: EventQueue) -> None:
    session = lake.newSession()
    session.conf.set(JOB_NAME, "token of {output}")
    frame = session.range(3)
    frame.collect()

    told = answered(lake, next_event(queue, "SQLExecutionStart"))

    assert job_name_of(told, frame._jdf.queryExecution()) == "token of {output}"


def test_completeness_is_asserted_for_the_statements_of_a_block(
    lake: Any, queue: EventQueue
) -> None:
    session = lake.newSession()
    with completes(session):
        session.range(3).collect()
    inside = answered(lake, next_event(queue, "SQLExecutionStart"))
    session.range(3).collect()
    outside = answered(lake, next_event(queue, "SQLExecutionStart"))

    assert (completes_of(inside, None), completes_of(outside, None)) == (True, None)
    assert session.conf.get(COMPLETES, None) is None


@pytest.mark.parametrize("at_once", [True, False], ids=["at once", "one by one"])
def test_collecting_the_result_of_a_command_is_no_second_command(
    lake: Any, queue: EventQueue, at_once: bool
) -> None:
    frame = lake.sql("SHOW DATABASES")
    command = next_event(queue, "SQLExecutionStart")
    frame.collect()
    fetch = next_event(queue, "SQLExecutionStart")

    events = [answered(lake, event) if at_once else event for event in (command, fetch)]
    assert [fetches_result(event) for event in events] == [False, True]


def test_end_of_a_write_after_a_shuffle_has_its_statistics(
    lake: Any, queue: EventQueue, tmp_path: Path
) -> None:
    lake.range(9).selectExpr("id % 2 AS p").groupBy("p").count().write.parquet(
        str(tmp_path / "two")
    )
    event = next_event(queue, "SQLExecutionEnd")

    told = answered(lake, event)

    assert statistics_of(told.qe())["rowCount"] == 2
    assert statistics_of(told.qe()) == statistics_of(event.qe())


def test_end_of_a_write_has_its_statistics(lake: Any, queue: EventQueue, tmp_path: Path) -> None:
    lake.range(7).write.parquet(str(tmp_path / "seven"))
    event = next_event(queue, "SQLExecutionEnd")

    told = answered(lake, event)

    assert kept(told.qe(), "number") == number_of(event.qe())
    assert kept(told.qe(), "metrics") is not None
    assert statistics_of(told.qe()) == statistics_of(event.qe())
    assert statistics_of(told.qe())["rowCount"] == 7


def test_dull_events_do_not_come_again(lake: Any, queue: EventQueue) -> None:
    lake.range(3).collect()
    queue.is_dull(next_event(queue, "SQLExecutionStart"))
    next_event(queue, "SQLExecutionEnd")
    lake.range(3).collect()

    while not class_name(came := queue.poll(PATIENCE)).endswith("SQLExecutionEnd"):
        assert not class_name(came).endswith("SQLExecutionStart")

    assert queue.dropped() == 0


def test_end_of_a_failed_statement_has_its_error(lake: Any, queue: EventQueue) -> None:
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
        lake.sql("SELECT 1 / (id - id) FROM range(1)").collect()
    event = next_event(queue, "SQLExecutionEnd")

    told = answered(lake, event)

    assert (told.executionId(), told.time()) == (event.executionId(), event.time())
    assert told.errorMessage().isDefined()
    assert told.errorMessage().get() == event.errorMessage().get()
    assert told.qe().id() == event.qe().id()


def test_commit_event_is_unchanged_in_one_round_trip(lake: Any, queue: EventQueue) -> None:
    if not Registry(lake._jvm, queue.queue, "offer").register():
        pytest.skip("Iceberg has no runtime for this Spark")
    lake.sql("CREATE OR REPLACE TABLE lake.answered (id bigint) USING iceberg")
    lake.sql("INSERT INTO lake.answered VALUES (1), (2)")
    event = next_event(queue, "CreateSnapshotEvent")

    told = commit_of(answered(lake, event))

    assert told == commit_of(event)
    assert isinstance(told, Commit)
    assert told.summary["added-records"] == "2"


def test_unknown_event_is_passed_through(lake: Any) -> None:
    told = answered(lake, lake._jvm.java.util.ArrayList())

    assert class_name(told) == "java.util.ArrayList"
    assert told.size() == 0


def test_wake_up_marker_is_passed_through(lake: Any) -> None:
    assert answered(lake, WAKE) == WAKE


def test_released_event_is_not_mistaken_for_the_next(lake: Any) -> None:
    queue = lake._jvm.java.util.concurrent.LinkedBlockingQueue()
    answers = Answers(Jvm(lake._jvm), queue, after=0)
    for _ in range(2):
        queue.add(lake._jvm.java.util.ArrayList())

    gone, newest = answers.next(WAIT), answers.next(WAIT)

    assert newest.size() == 0
    with pytest.raises(LookupError, match="after the next had come"):
        gone.size()
