"""A streaming query is one run: START, RUNNING per micro-batch, and the right end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from fixtures.emitter.builders import conf, insert, snapshot, table
from fixtures.emitter.plans import QUERY, RUN, Answers, Handle, Plan
from fixtures.emitter.streams import CREDITS, TRANSFERS, StreamScript, written
from strandline_spark.extraction.aligned_outputs import (
    AlignedOutput,
    note_finished,
    note_running,
    starting,
)
from strandline_spark.jvm.iceberg_snapshot import Commit
from strandline_spark.model.statement import Statement
from strandline_spark.runs import streaming_queries as streaming
from strandline_spark.runs.micro_batches import MicroBatch, micro_batch_of


def test_a_query_is_one_run_with_a_barrier_per_micro_batch() -> None:
    assert StreamScript().start().batch(0).batch(1).end() == [
        "START bank.lake.bank.credits [transfers] -> [credits]",
        "RUNNING bank.lake.bank.credits [transfers] -> [credits@100] b1",
        "RUNNING bank.lake.bank.credits [transfers] -> [credits@101] b2",
        "ABORT bank.lake.bank.credits [] -> []",
    ]


def test_query_events_use_sparks_run_id_and_are_complete_snapshots() -> None:
    driver = StreamScript(settings=conf(group="bank")).start().batch(0)

    start, running = driver.sent.events
    assert {start["run"]["runId"], running["run"]["runId"]} == {RUN}
    pattern = running["job"]["facets"]["jobType"]
    assert (pattern["processingType"], pattern["emissionPattern"]["eventContentMode"]) == (
        "STREAMING",
        "COMPLETE_SNAPSHOT",
    )
    facet = running["run"]["facets"]["strandline_barrier"]
    assert {k: v for k, v in facet.items() if not k.startswith("_")} == {
        "barrierId": 1,
        "group": "bank",
        "engine": "spark",
        "queryId": QUERY,
        "batchId": 0,
        "phase": "committed",
        "checkpointLocation": "file:/checkpoints/credits",
        "startedAt": "1970-01-01T00:00:01.000Z",
        "committedAt": "1970-01-01T00:00:01.500Z",
        "sources": [{"description": "transfers", "endOffset": '{"position":1}'}],
    }


def test_named_query_keeps_its_name() -> None:
    assert StreamScript().start("ticks").batch(0).sent.lines()[0].split()[1] == "bank.ticks"


def test_barrier_of_a_snapshot_is_that_of_its_micro_batch() -> None:
    made = insert(table("bank.credits", snapshot("100", barrier_id=17)), TRANSFERS)

    assert (
        StreamScript()
        .start()
        .batch(0, Plan(insert(CREDITS), made))
        .sent.lines()[-1]
        .endswith(" b17")
    )


@pytest.mark.parametrize(
    ("ends_by_itself", "last_error", "error", "state"),
    [
        (True, None, None, "COMPLETE"),
        (True, "java.lang.InterruptedException", None, "ABORT"),
        (True, "[SPARK_JOB_CANCELLED] Job 3 cancelled part of cancelled job group", None, "ABORT"),
        (False, None, None, "ABORT"),
        (False, "boom", "boom", "FAIL"),
        (
            False,
            "boom",
            "org.apache.spark.SparkException: Job 3 cancelled because SparkContext was shut down",
            "ABORT",
        ),
        (True, "ValueError: InterruptedException", "ValueError: InterruptedException", "FAIL"),
    ],
    ids=[
        "availableNow is done",
        "availableNow was stopped",
        "availableNow was cancelled",
        "stopped",
        "failed",
        "shut down",
        "failed with such a word",
    ],
)
def test_query_ends_are_distinguished(
    ends_by_itself: bool, last_error: str | None, error: str | None, state: str
) -> None:
    driver = StreamScript(Handle(ends_by_itself)).start().batch(0)
    if last_error:
        driver.batch(1, error=last_error)

    assert driver.end(error)[-1].split()[0] == state


def test_finished_aligned_job_ends_complete() -> None:
    note_finished(QUERY)
    done = StreamScript(Handle(False)).start().batch(0).end(None)[-1]
    note_running(QUERY)  # it is started again
    stopped = StreamScript(Handle(False)).start().batch(0).end(None)[-1]

    assert [line.split()[0] for line in (done, stopped)] == ["COMPLETE", "ABORT"]


def test_failed_micro_batch_is_not_reported() -> None:
    lines = StreamScript().start().batch(0).batch(1, error="boom").end("boom")

    assert [line.split()[0] for line in lines] == ["START", "RUNNING", "FAIL"]


def test_micro_batch_that_fails_after_its_write_reports_what_it_wrote() -> None:
    made = insert(table("bank.credits", snapshot("100")), TRANSFERS)
    plan = Plan(insert(CREDITS, TRANSFERS), Statement("ForeachBatch", inputs=(TRANSFERS,)))
    driver = StreamScript().start().batch(0, plan, error="boom", parts=[made])

    running = driver.sent.events[-1]
    assert driver.batch(0).end("boom") == [
        "START bank.lake.bank.credits [transfers] -> [credits]",
        "RUNNING bank.lake.bank.credits [transfers] -> [credits@100]",
        "RUNNING bank.lake.bank.credits [transfers] -> [credits@100] b1",
        "FAIL bank.lake.bank.credits [] -> []",
    ]
    assert "strandline_barrier" not in running["run"]["facets"]


def test_micro_batch_that_writes_a_table_twice_reports_both_snapshots_and_one_barrier() -> None:
    parts = [insert(table("bank.credits", snapshot(made)), TRANSFERS) for made in ("100", "101")]
    plan = Plan(insert(CREDITS, TRANSFERS), Statement("ForeachBatch", inputs=(TRANSFERS,)))
    event = StreamScript().start().batch(0, plan, parts=parts).sent.events[-1]

    facet = event["outputs"][0]["outputFacets"]["strandline_snapshot"]
    assert (facet["snapshotId"], facet["barrierId"]) == ("101", 1)
    assert [(one["snapshotId"], one.get("barrierId")) for one in facet["others"]] == [("100", None)]


def test_micro_batch_stopped_after_its_commit_is_reported() -> None:
    driver = StreamScript().start().batch(0, error="InterruptedException", commits=[committed(0)])

    assert driver.end() == [
        "START bank.lake.bank.credits [transfers] -> [credits]",
        "RUNNING bank.lake.bank.credits [transfers] -> [credits@100] b1",
        "ABORT bank.lake.bank.credits [] -> []",
    ]


def test_a_commit_of_unknown_origin_does_not_make_a_failed_micro_batch_a_committed_one() -> None:
    other = Commit("lake.bank.credits", "append", "100", summary={"operation": "append"})

    assert [
        line.split()[0]
        for line in StreamScript().start().batch(0, error="boom", commits=[other]).end("boom")
    ] == [
        "START",
        "FAIL",
    ]


@pytest.fixture
def aligned() -> Iterator[str]:
    """The name of the query of an aligned job that writes bank.credits."""
    with starting("aligned_credits", AlignedOutput("lake.bank.credits", "append", frozenset())):
        yield "aligned_credits"


def test_killed_drivers_checkpoint_is_reported_by_the_replayed_micro_batch(aligned: str) -> None:
    made = insert(table("bank.credits", snapshot("104", barrier_id=17)), TRANSFERS)
    nothing = Plan(Statement("Tick"), checkpoints={4: made})

    lines = (
        StreamScript(Handle(name=aligned), told=3)
        .start(aligned)
        .batch(4, nothing)
        .batch(5, nothing)
        .sent.lines()
    )

    assert lines[-2:] == [
        "START bank.aligned_credits [] -> []",
        "RUNNING bank.aligned_credits [transfers] -> [credits@104] b17",
    ]  # what it made nothing in is no barrier


def test_unreported_checkpoints_are_reported_first(aligned: str) -> None:
    made = {
        n: insert(table("bank.credits", snapshot(str(100 + n), barrier_id=n + 10)), TRANSFERS)
        for n in (2, 3)
    }
    plan = Plan(Statement("Tick"), earlier={n: Statement("Tick") for n in made}, checkpoints=made)

    lines = StreamScript(Handle(name=aligned), told=1).start(aligned).batch(4, plan).sent.lines()

    assert [line.split("] ")[-1] for line in lines if "credits@" in line] == ["b12", "b13"]


@pytest.mark.parametrize("begun", [4, 3])
def test_a_commit_for_a_micro_batch_that_this_run_never_reached_is_reported_at_its_end(
    begun: int,
) -> None:
    handle = Handle(committed=3)
    handle.begun, handle.plan = (
        begun,
        written(0, {n: insert(table("bank.credits", snapshot(f"10{n}"))) for n in (3, 4)}),
    )

    lines = StreamScript(handle, told=3).start("credits").end()

    assert [line for line in lines if "credits@104" in line] == [
        "RUNNING bank.credits [] -> [credits@104] b5"
    ][: begun - 3]


@pytest.mark.parametrize(("recovered", "told"), [(0, []), (1, ["102"]), (10, ["101", "102"])])
def test_recovery_without_a_record_repeats_the_configured_checkpoints(
    aligned: str, recovered: int, told: list[str]
) -> None:
    made = {n: insert(table("bank.credits", snapshot(f"10{n}", barrier_id=n + 10))) for n in (1, 2)}
    driver = StreamScript(settings=replace(conf(), recover_batches=recovered)).start(aligned)

    lines = driver.batch(4, Plan(Statement("Tick"), checkpoints=made)).sent.lines()

    assert [line.partition("credits@")[2][:3] for line in lines if "credits@" in line] == told


@pytest.mark.parametrize("failures", [1, 10])
def test_checkpoints_that_a_busy_catalog_hides_are_reported_with_a_later_micro_batch(
    aligned: str, failures: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = Plan(
        Statement("Tick"),
        checkpoints={4: insert(table("bank.credits", snapshot("104", barrier_id=17)))},
    )
    monkeypatch.setattr(Answers, "checkpoints", failing(failures, Answers.checkpoints))
    driver = StreamScript(told=3).start(aligned)

    for number in range(4, 4 + failures + 1):
        driver.batch(number, plan)

    assert [line for line in driver.sent.lines() if "credits@" in line] == [
        "RUNNING bank.aligned_credits [] -> [credits@104] b17"
    ]


def test_failed_lookup_of_a_plain_query_is_retried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "_MOMENT_SECONDS", 0)
    monkeypatch.setattr(Answers, "earlier_batch", failing(2, Answers.earlier_batch))
    earlier = {3: insert(table("bank.credits", snapshot("103", barrier_id=4)))}

    lines = StreamScript(told=2).start().batch(4, written(4, earlier)).sent.lines()

    assert "RUNNING bank.lake.bank.credits [] -> [credits@103] b4" in lines


def failing(times: int, answer: Callable[..., Any]) -> Callable[..., Any]:
    """The same, but for the first few times."""
    left = [OSError("the catalog is busy")] * times

    def ask(*given: Any) -> Any:
        if left:
            raise left.pop()
        return answer(*given)

    return ask


def committed(number: int) -> Commit:
    """Return Iceberg's report of the commit of a micro-batch."""
    summary = {"spark.sql.streaming.queryId": QUERY, "spark.sql.streaming.epochId": str(number)}
    return Commit("lake.bank.credits", "append", str(100 + number), summary=summary)


def test_new_run_reports_a_replayed_micro_batch() -> None:
    assert StreamScript(told=3).start().batch(3).sent.lines()[-1].endswith("[credits@103] b4")


def test_unreported_micro_batches_of_a_killed_driver_come_first() -> None:
    earlier = {
        n: insert(table("bank.credits", snapshot(str(100 + n), barrier_id=n + 1))) for n in (2, 3)
    }

    assert StreamScript(told=1).start().batch(4, written(4, earlier)).sent.lines() == [
        "START bank.lake.bank.credits [transfers] -> [credits]",
        "RUNNING bank.lake.bank.credits [] -> [credits@102] b3",
        "RUNNING bank.lake.bank.credits [] -> [credits@103] b4",
        "RUNNING bank.lake.bank.credits [transfers] -> [credits@104] b5",
    ]


def test_newest_micro_batches_are_repeated_once_after_a_rollback() -> None:
    earlier = {n: insert(table("bank.credits", snapshot(str(100 + n)))) for n in range(7)}
    driver = StreamScript(settings=conf(recover_batches="2"), told=10).start()
    lines = driver.batch(5, written(5, earlier)).batch(6, written(6, earlier)).sent.lines()

    assert [line.rsplit(" ", 1)[1] for line in lines[1:]] == ["b4", "b5", "b6", "b7"]


def test_newest_micro_batches_are_repeated_without_a_delivery_record() -> None:
    earlier = {n: insert(table("bank.credits", snapshot(str(100 + n)))) for n in range(20)}
    lines = (
        StreamScript(settings=conf(recover_batches="2"))
        .start()
        .batch(20, written(20, earlier))
        .sent.lines()
    )

    assert [line.rsplit(" ", 1)[1] for line in lines[1:]] == ["b19", "b20", "b21"]


def test_next_micro_batch_reports_a_dropped_one() -> None:
    earlier = {1: insert(table("bank.credits", snapshot("101")))}
    lines = StreamScript().start().batch(0).batch(2, written(2, earlier)).sent.lines()

    assert [line.rsplit(" ", 1)[1] for line in lines[1:]] == ["b1", "b2", "b3"]


def test_idle_query_is_reported_from_its_plan_with_earlier_commits() -> None:
    handle = Handle(committed=1)
    handle.plan = Plan(
        insert(CREDITS, TRANSFERS),
        earlier={n: insert(table("bank.credits", snapshot(str(100 + n)))) for n in (0, 1)},
    )
    driver = StreamScript(handle).start()

    driver.streams.announce_idle(600)
    assert driver.sent.lines() == []

    driver.streams.announce_idle(2000)
    assert driver.sent.lines() == [
        "START bank.lake.bank.credits [transfers] -> [credits]",
        "RUNNING bank.lake.bank.credits [] -> [credits@100] b1",
        "RUNNING bank.lake.bank.credits [] -> [credits@101] b2",
    ]


def test_a_query_s_own_micro_batch_is_reported_at_its_end_though_the_log_has_it() -> None:
    """A busy emitter sees a commit log that is ahead of the events it has processed."""
    earlier = {n: insert(table("bank.credits", snapshot(str(100 + n)))) for n in (0, 1)}
    handle = Handle(committed=2, own=2)
    handle.plan = Plan(Statement("SerializeFromObject", inputs=(TRANSFERS,)), earlier=earlier)
    driver = StreamScript(handle).start("keep")
    driver.streams.announce_idle(2000)
    part = insert(table("bank.audit", snapshot("7")), TRANSFERS)

    assert driver.batch(2, handle.plan, parts=[part]).sent.lines() == [
        "START bank.keep [transfers] -> []",
        "RUNNING bank.keep [] -> [credits@100] b1",
        "RUNNING bank.keep [] -> [credits@101] b2",
        "RUNNING bank.keep [transfers] -> [audit@7] b3",
    ]


def test_writes_of_a_dropped_micro_batch_are_reported_by_the_next() -> None:
    rows = Statement(
        "SerializeFromObject", inputs=(TRANSFERS,)
    )  # says nothing of what a function does with them
    outer = Plan(rows, earlier={1: rows})
    driver = StreamScript(told=0).start()
    driver.begin(1, outer, parts=[insert(table("bank.audit", snapshot("8")), TRANSFERS)])
    driver.batch(2, outer, parts=[insert(table("bank.audit", snapshot("9")), TRANSFERS)])

    assert [line for line in driver.sent.lines() if line.startswith("RUNNING")] == [
        "RUNNING bank.lake.bank.audit [transfers] -> [audit@8] b2",
        "RUNNING bank.lake.bank.audit [transfers] -> [audit@9] b3",
    ]


def test_foreach_batch_writes_are_query_outputs_with_their_own_inputs() -> None:
    outer = Plan(Statement("SerializeFromObject", inputs=(TRANSFERS,)))
    parts = [
        insert(table("bank.credits", snapshot("1")), TRANSFERS),
        insert(table("bank.audit", snapshot("2")), TRANSFERS, table("bank.people")),
    ]
    driver = StreamScript().start().batch(0, outer, parts=parts)

    assert driver.sent.lines() == [
        "START bank.lake.bank.credits [transfers] -> [credits@1,audit@2]".replace(
            " [transfers]", " [transfers,people]"
        ),
        "RUNNING bank.lake.bank.credits [transfers,people] -> [credits@1,audit@2] b1",
    ]
    outputs = driver.sent.events[-1]["outputs"]
    assert [[i["name"] for i in output["facets"]["lineage"]["inputs"]] for output in outputs] == [
        ["/warehouse/bank/transfers"],
        ["/warehouse/bank/transfers", "/warehouse/bank/people"],
    ]


def test_query_that_ended_unseen_is_still_reported() -> None:
    assert StreamScript(Handle(ends_by_itself=True)).start("ticks").end() == [
        "START bank.ticks [] -> []",
        "COMPLETE bank.ticks [] -> []",
    ]


def test_query_missed_at_start_is_found_by_its_micro_batch() -> None:
    driver = StreamScript(Handle(found=False)).start()
    driver.handle = Handle(ends_by_itself=True)

    assert driver.batch(0).end()[-1].split()[0] == "COMPLETE"


def test_query_too_short_to_be_asked_ended_by_itself() -> None:
    unseen = Handle(found=False)

    assert StreamScript(unseen).start().batch(0).end()[-1].split()[0] == "COMPLETE"
    stopped = StreamScript(unseen).start().batch(0).batch(1, error="java.lang.InterruptedException")
    assert stopped.end()[-1].split()[0] == "ABORT"


@pytest.mark.parametrize("separator", ["<br/>", "\n"])
def test_job_description_names_the_micro_batch(separator: str) -> None:
    text = separator.join(["ticks", f"id = {QUERY}", f"runId = {RUN}", "batch = 12"])

    assert micro_batch_of(text) == MicroBatch(QUERY, RUN, 12)
    assert micro_batch_of("save at job.py:3") is None


def test_plan_of_an_idle_query_without_output_is_read_rarely() -> None:
    driver = StreamScript().start()
    read: list[str] = []

    def planned() -> Plan:
        read.append("plan")
        return Plan(Statement("Project", inputs=(TRANSFERS,)))

    driver.handle.as_query_execution = planned
    for moment in range(2_000, 102_000, 100):  # a thousand events of others, within 100 s
        driver.streams.announce_idle(moment)

    assert 3 < len(read) < 10
