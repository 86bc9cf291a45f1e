"""Listeners get job events in order on their own threads; a hanging one affects nobody."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from fixtures.emitter import factories
from fixtures.emitter.builders import insert, table
from fixtures.emitter.factories import HangingFactory, IoFactory, Noting, SlowFactory
from fixtures.waiting import wait_until
from strandline_spark.listeners.io_executor import IoExecutor
from strandline_spark.listeners.notifier import Notices
from strandline_spark.model.flip314 import (
    Boundedness,
    ExecutionMode,
    JobCreatedEvent,
    JobExecutionStatusEvent,
    JobStatus,
    ModifyType,
    TableLineageEdge,
    TableSinkLineageVertex,
    TableSourceLineageVertex,
)
from strandline_spark.openlineage.events import EventContent, RunOf

CREDITS, TRANSFERS = table("bank.credits"), table("bank.transfers")
APPLICATION = RunOf("0", "bank", "APPLICATION")
STREAM, BATCH = RunOf("1", "bank.credits", "STREAMING"), RunOf("2", "bank.report", "BATCH")
NOTING = "fixtures.emitter.factories.NotingFactory"


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    """No listener of an earlier test; the hanging ones are let go."""
    factories.made.clear()
    IoFactory.go.clear()
    IoFactory.done.clear()
    HangingFactory.over.clear()
    SlowFactory.go.clear()
    yield
    IoFactory.go.set()
    SlowFactory.go.set()
    HangingFactory.over.set()


def told(*events: tuple[str, RunOf, EventContent], among: tuple[str, ...] = (NOTING,)) -> Noting:
    """The noting listener after these events."""
    notices = Notices(among, {"spark.app.name": "bank"})
    for event in events:
        notices.announced(*event)
    notices.close(30)
    return factories.made[0]


def test_a_job_is_created_with_its_graph_and_then_runs_and_ends() -> None:
    statement = insert(CREDITS, TRANSFERS)
    listener = told(
        ("START", STREAM, EventContent([statement])),
        ("RUNNING", STREAM, EventContent()),
        ("COMPLETE", STREAM, EventContent()),
    )

    created, *changes = listener.events
    assert isinstance(created, JobCreatedEvent)
    assert (created.job_id, created.job_name, created.execution_mode) == (
        "1",
        "bank.credits",
        ExecutionMode.STREAMING,
    )
    assert changes == [
        JobExecutionStatusEvent(JobStatus.CREATED, JobStatus.RUNNING, None, "1", "bank.credits"),
        JobExecutionStatusEvent(JobStatus.RUNNING, JobStatus.FINISHED, None, "1", "bank.credits"),
    ]
    assert listener.context.configuration == {"spark.app.name": "bank"}


def test_lineage_graph_has_boundedness_modification_edges_and_columns() -> None:
    listener = told(("START", STREAM, EventContent([insert(CREDITS, TRANSFERS)])))

    created = listener.events[0]
    assert isinstance(created, JobCreatedEvent)
    (source,), (sink,), (edge,) = (
        created.lineage_graph.sources,
        created.lineage_graph.sinks,
        created.lineage_graph.relations,
    )
    assert isinstance(source, TableSourceLineageVertex)
    assert isinstance(sink, TableSinkLineageVertex)
    assert isinstance(edge, TableLineageEdge)
    assert (source.boundedness, sink.modify_type) == (
        Boundedness.CONTINUOUS_UNBOUNDED,
        ModifyType.INSERT,
    )
    assert (edge.source, edge.sink) == (source, sink)
    assert [(c.source.name, c.source_columns, c.sink_column) for c in edge.column_edges] == [
        ("/warehouse/bank/transfers", ("id",), "id")
    ]
    assert source.datasets[0].facets["schema"].fields == {
        "id": "bigint",
        "who": "struct<name:string>",
    }


@pytest.mark.parametrize(
    ("state", "error", "status", "hooked"),
    [
        ("COMPLETE", None, JobStatus.FINISHED, ("finished", "2")),
        ("FAIL", "boom", JobStatus.FAILED, ("failed", "2", "boom")),
        ("ABORT", None, JobStatus.CANCELED, ("canceled", "2")),
    ],
)
def test_each_end_state_calls_its_hook(
    state: str, error: str | None, status: JobStatus, hooked: tuple[str, ...]
) -> None:
    listener = told(("START", BATCH, EventContent()), (state, BATCH, EventContent(error=error)))

    last = listener.events[-1]
    assert isinstance(last, JobExecutionStatusEvent)
    assert (last.new_status, last.new_status.is_terminal, last.exception) == (status, True, error)
    assert listener.hooked == [("created", "2"), hooked]


def test_application_itself_is_not_announced_as_a_job() -> None:
    assert (
        told(
            ("START", APPLICATION, EventContent()), ("COMPLETE", APPLICATION, EventContent())
        ).events
        == []
    )


def test_commits_are_sent_to_listeners_that_want_them() -> None:
    notices = Notices((NOTING, "fixtures.emitter.factories.IoFactory"), {})

    notices.committed("lake.bank.credits", "9007199254740993", "append")
    notices.close(30)

    assert factories.made[0].commits == [("lake.bank.credits", "9007199254740993", "append")]


def test_submitted_io_finishes_before_the_end() -> None:
    notices = Notices(("fixtures.emitter.factories.IoFactory",), {})
    notices.announced("START", BATCH, EventContent())
    IoFactory.go.set()
    notices.close(30)

    assert IoFactory.done == ["2", "2"]
    with pytest.raises(RuntimeError, match="the application has ended: no new IO"):
        IoFactory.executor.submit(print)


def test_hanging_listener_does_not_affect_others_and_its_queue_is_bounded() -> None:
    notices = Notices(("fixtures.emitter.factories.HangingFactory", NOTING), {})

    for number in range(1, 401):
        notices.announced("START", BATCH, EventContent())
        notices.announced("COMPLETE", BATCH, EventContent())
        wait_until(lambda: bool(factories.made) and len(factories.made[0].events) == 3 * number)  # noqa: B023 - called at once
    notices.close(0.2)

    assert len(factories.made[0].hooked) == 800


def test_slow_factory_blocks_nobody_and_its_listener_gets_missed_events() -> None:
    notices = Notices(("fixtures.emitter.factories.SlowFactory",), {})
    notices.announced("START", BATCH, EventContent())
    notices.announced("COMPLETE", BATCH, EventContent())
    SlowFactory.go.set()
    notices.close(30)

    assert [type(event) for event in factories.made[0].events] == [JobCreatedEvent] + [
        JobExecutionStatusEvent
    ] * 2
    assert factories.made[0].hooked == [("created", "2"), ("finished", "2")]


def test_failing_factory_is_logged_and_the_others_are_notified(
    caplog: pytest.LogCaptureFixture,
) -> None:
    listener = told(("START", BATCH, EventContent()), among=("nowhere.Factory", NOTING))

    assert listener.hooked == [("created", "2")]
    assert caplog.messages == ["strandline: listener factory nowhere.Factory could not be used"]


def test_listener_with_a_full_queue_still_ends() -> None:
    name = "fixtures.emitter.factories.HangingFactory"
    notices = Notices((name,), {})
    for _ in range(600):
        notices.announced("START", BATCH, EventContent())
    notices.close(0)
    HangingFactory.over.set()

    wait_until(
        lambda: (
            f"strandline-listener-{name}" not in [thread.name for thread in threading.enumerate()]
        )
    )


def test_io_queue_is_bounded_and_accepted_tasks_are_done(caplog: pytest.LogCaptureFixture) -> None:
    executor, begun, go, done = (
        IoExecutor(threads=1),
        threading.Event(),
        threading.Event(),
        list[int](),
    )

    def hang() -> None:
        begun.set()
        go.wait(30)

    executor.submit(hang)
    assert begun.wait(30)
    futures = [executor.submit(done.append, number) for number in range(1500)]
    go.set()
    executor.finish(30)

    assert done == list(range(1000))
    assert [future.cancelled() for future in futures] == [False] * 1000 + [True] * 500
    assert caplog.messages == [
        "strandline: 1000 tasks of a listener's IO wait: more are dropped, the first is list.append"
    ]
