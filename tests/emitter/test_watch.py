"""Spark events in unusual order: each micro-batch is reported once, by its own execution."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest

from fixtures.emitter.builders import APPLICATION, Sent, announcer, conf, insert, snapshot, table
from fixtures.emitter.plans import QUERY, RUN, Answers, Handle, Plan, ended, started
from strandline_spark.jvm.client import Known
from strandline_spark.jvm.notices import ExecutionEnded, ExecutionStarted
from strandline_spark.model.statement import Statement
from strandline_spark.runs.batch_queries import Actions
from strandline_spark.runs.dispatch import Watch
from strandline_spark.runs.streaming_queries import Streams

MADE = insert(table("bank.credits", snapshot("100")), table("bank.transfers"))
LOG = Statement("Project", inputs=(table("bank.transfers"),))  # a format's look at its own log


def query(statement: Statement, kind: str) -> Any:
    """A QueryExecution of which the class is known."""
    plan = Plan(statement)
    answers = {"class": f"org.apache.spark.sql.execution.{kind}", "begun": None}
    return Known(lambda: plan, answers)


BATCH, INNER = query(MADE, "IncrementalExecution"), query(LOG, "QueryExecution")


class Bus:
    """Gives a Watch the starts and ends of executions."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sent, self._plans = Sent(), dict[int, Any]()
        self.announcer = sayer = announcer(self.sent, conf())
        actions = Actions(conf(), APPLICATION, Answers(), sayer)
        handle: Any = Handle()
        streams = Streams(
            conf(), Answers(), sayer, lambda qe, query_id: handle, lambda query_id: None
        )
        execution = SimpleNamespace(getQueryExecution=self._plans.get)
        sql = SimpleNamespace(execution=SimpleNamespace(SQLExecution=execution))
        spark = SimpleNamespace(apache=SimpleNamespace(spark=SimpleNamespace(sql=sql)))
        self.forgotten: list[object] = []
        queue: Any = SimpleNamespace(gateway=SimpleNamespace(jvm=SimpleNamespace(org=spark)))
        self.watch = Watch(
            queue, APPLICATION, actions, streams, sayer, forget=self.forgotten.append
        )
        streams.query_started(QUERY, RUN, None, 500)

    def start(self, number: int, plan: Any, root: int | None = None, batch: int | None = 0) -> None:
        """An execution under the description of a micro-batch begins; no plan.

        It is over already.
        """
        self._plans[number] = plan
        told = started(number, plan, root, batch)
        self.watch.take(ExecutionStarted(number, told.root_id, told.at, told.description))

    def is_over(self, number: int) -> None:
        """An execution ends, and its end is lost."""
        self._plans[number] = None

    def end(self, number: int, plan: Any) -> None:
        """It ends well."""
        told = ended(number, plan)
        self.watch.take(ExecutionEnded(number, told.at, None, plan))


@pytest.fixture
def bus(monkeypatch: pytest.MonkeyPatch) -> Bus:
    return Bus(monkeypatch)


TOLD = [
    "START bank.lake.bank.credits [transfers] -> [credits@100]",
    "RUNNING bank.lake.bank.credits [transfers] -> [credits@100] b1",
]


def test_a_nested_statement_may_end_before_its_micro_batch_is_said_to_begin(bus: Bus) -> None:
    bus.start(8, INNER, root=7)
    bus.end(8, INNER)
    bus.start(7, BATCH)
    bus.end(7, BATCH)

    assert bus.sent.lines() == TOLD


def test_short_log_query_is_not_taken_for_the_micro_batch(bus: Bus) -> None:
    bus.start(6, None)
    bus.end(6, INNER)
    bus.start(7, BATCH)
    bus.end(7, BATCH)

    assert bus.sent.lines() == TOLD


def test_run_with_a_lost_end_event_stops_sending_heartbeats(bus: Bus) -> None:
    bus.start(0, query(MADE, "QueryExecution"), batch=None)
    for number in range(1, 10_001):
        bus.start(number, None, batch=None)
    bus.watch.idle(0)
    bus.announcer.beat(time.monotonic() + 1000)

    assert bus.sent.lines() == ["START bank.lake.bank.credits [transfers] -> [credits@100]"]
    assert bus.announcer.missed == 1


def test_execution_unknown_to_spark_is_released_at_the_second_check(bus: Bus) -> None:
    over, runs = query(MADE, "QueryExecution"), query(MADE, "QueryExecution")
    bus.start(0, over, batch=None)
    bus.start(1, runs, batch=None)
    bus.is_over(0)
    now = time.time() * 1000

    bus.watch.idle(now + 60_000)
    assert bus.forgotten == []
    bus.watch.idle(now + 120_000)

    assert bus.forgotten == [over]
    assert list(bus.watch._open) == [1]
    assert bus.announcer.missed == 1
