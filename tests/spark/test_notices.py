"""Notices of the queue say what Spark's and Iceberg's own events say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fixtures.spark_lake import needs
from fixtures.spark_lake.analysis import ended_execution, next_notice
from strandline_spark import completes
from strandline_spark.conf_keys import COMPLETES, JOB_NAME
from strandline_spark.jvm.client import class_name, fetched, known_answer
from strandline_spark.jvm.event_queue import EventQueue
from strandline_spark.jvm.iceberg_snapshot import Commit
from strandline_spark.jvm.notices import (
    ExecutionEnded,
    ExecutionStarted,
    Wake,
    completes_of,
    job_name_of,
)
from strandline_spark.plans.physical import statistics_of
from strandline_spark.plans.tree_source import number_of

pytestmark = pytest.mark.spark


def next_start(queue: EventQueue) -> ExecutionStarted:
    return next_notice(queue, ExecutionStarted)


def test_start_of_an_execution_is_as_spark_reports_it(lake: Any, queue: EventQueue) -> None:
    lake.range(3).collect()
    notice = next_start(queue)

    event = queue.probe.newest()

    assert (notice.id, notice.at) == (event.executionId(), event.time())
    assert notice.description == event.description()
    assert notice.root == int(event.rootExecutionId().get())


def test_statement_keeps_the_job_name_it_started_with(lake: Any, queue: EventQueue) -> None:
    session = lake.newSession()
    session.conf.set(JOB_NAME, "first")
    session.range(3).collect()
    session.conf.set(JOB_NAME, "second")

    assert job_name_of(next_start(queue), None) == "first"


def test_secret_looking_job_name_is_read_from_the_session(lake: Any, queue: EventQueue) -> None:
    session = lake.newSession()
    session.conf.set(JOB_NAME, "token of {output}")
    frame = session.range(3)
    frame.collect()

    assert job_name_of(next_start(queue), frame._jdf.queryExecution()) == "token of {output}"


def test_completeness_is_asserted_for_the_statements_of_a_block(
    lake: Any, queue: EventQueue
) -> None:
    session = lake.newSession()
    with completes(session):
        session.range(3).collect()
    inside = next_start(queue)
    session.range(3).collect()
    outside = next_start(queue)

    assert (completes_of(inside, None), completes_of(outside, None)) == (True, None)
    assert session.conf.get(COMPLETES, None) is None


def test_collecting_the_result_of_a_command_is_no_second_command(
    lake: Any, queue: EventQueue
) -> None:
    frame = lake.sql("SHOW DATABASES")
    command = next_start(queue)
    frame.collect()
    fetch = next_start(queue)

    assert [command.fetches_result, fetch.fetches_result] == [False, True]


@pytest.mark.parametrize("grouped", [False, True], ids=["plain", "after a shuffle"])
def test_end_of_a_write_has_its_statistics(
    lake: Any, queue: EventQueue, tmp_path: Path, grouped: bool
) -> None:
    rows = lake.range(9).selectExpr("id % 2 AS p")
    (rows.groupBy("p").count() if grouped else rows).write.parquet(str(tmp_path / "two"))

    notice = next_notice(queue, ExecutionEnded)
    execution = fetched(notice.execution)

    assert known_answer(notice.execution, "number") == number_of(execution)
    assert class_name(notice.execution) == class_name(execution)
    assert statistics_of(notice.execution) == statistics_of(execution)
    assert statistics_of(execution)["rowCount"] == (2 if grouped else 9)


def test_end_of_a_failed_statement_has_its_error(lake: Any, queue: EventQueue) -> None:
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
        lake.sql("SELECT 1 DIV (id - id) FROM range(1)").collect()

    notice = next_notice(queue, ExecutionEnded)

    assert "DIVIDE_BY_ZERO" in str(notice.error)
    failure: Any = notice.failure()
    assert "DIVIDE_BY_ZERO" in str(failure.toString())


@needs("iceberg")
def test_commit_is_as_iceberg_reports_it(lake: Any, queue: EventQueue) -> None:
    lake.sql("CREATE OR REPLACE TABLE lake.answered (id bigint) USING iceberg")
    lake.sql("INSERT INTO lake.answered VALUES (1), (2)")

    commit = next_notice(queue, Commit)
    event = queue.probe.newest()

    assert (commit.table, commit.operation) == (event.tableName(), event.operation())
    assert (commit.snapshot_id, commit.sequence_number) == (
        str(event.snapshotId()),
        event.sequenceNumber(),
    )
    assert commit.summary == dict(event.summary())
    assert commit.summary["added-records"] == "2"


def test_only_events_that_are_looked_at_and_wake_ups_enter_the_queue(lake: Any) -> None:
    queue = EventQueue(lake.sparkContext._gateway, 1)
    for _ in range(2):
        queue.probe.offer(lake._jvm.java.util.ArrayList())
    queue.wake()

    assert [queue.poll(0), queue.poll(0)] == [Wake(), None]
    assert queue.dropped() == 0


def test_execution_is_not_mistaken_for_the_next(lake: Any, queue: EventQueue) -> None:
    for _ in range(2):
        lake.range(3).collect()

    gone = next_notice(queue, ExecutionEnded)
    ended_execution(queue)

    with pytest.raises(LookupError, match="after the next had come"):
        gone.execution.analyzed()
