"""One run per user action: nested executions are folded in, ends distinguished, names stable."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from fixtures.emitter.builders import (
    APPLICATION,
    Sent,
    announcer,
    conf,
    insert,
    line_of,
    snapshot,
    table,
)
from fixtures.emitter.plans import Answers, Plan, ended, started
from fixtures.emitter.schemas import faults_of
from strandline_spark.conf import Conf
from strandline_spark.extraction.unreported_statements import RefusedWrite
from strandline_spark.model.flip314 import LineageDataset, LineageEdge, LineageVertex
from strandline_spark.model.statement import Operation, Origin, Output, Statement, Symlink
from strandline_spark.openlineage.datasets import outputs_of
from strandline_spark.runs.batch_queries import Actions, Arrivals, Execution, informed, state_of

CREDITS, TRANSFERS = table("bank.credits"), table("bank.transfers")
MADE = table("bank.credits", snapshot("12"))


def actions(settings: Conf | None = None) -> tuple[Actions, Sent]:
    """The application's actions, and what they send."""
    sent = Sent()
    settings = settings or conf()
    return Actions(settings, APPLICATION, Answers(), announcer(sent, settings)), sent


def run(plan: Plan, error: str | None = None, settings: Conf | None = None) -> list[str]:
    """One action from its start to its end."""
    made, sent = actions(settings)
    execution = Execution(started(1, plan), 0)
    made.begin(execution)
    made.end(execution, ended(1, plan, error), [])
    return sent.lines()


def start_of(statement: Statement) -> dict[str, Any]:
    """Return the event of a statement that begins."""
    made, sent = actions()
    made.begin(Execution(started(1, Plan(statement)), 0))
    (event,) = sent.events
    return event


def test_write_reports_its_plan_at_start_and_its_snapshot_at_the_end() -> None:
    plan = Plan(insert(CREDITS, TRANSFERS), insert(MADE, table("bank.transfers", snapshot("9"))))

    assert run(plan) == [
        "START bank.lake.bank.credits [transfers] -> [credits]",
        "COMPLETE bank.lake.bank.credits [transfers@9] -> [credits@12]",
    ]


def test_view_says_that_it_is_one() -> None:
    view = replace(TRANSFERS, format="view")
    started_event = start_of(insert(CREDITS, view))

    assert started_event["inputs"][0]["facets"]["datasetType"]["datasetType"] == "VIEW"
    assert "datasetType" not in started_event["outputs"][0]["facets"]
    assert start_of(insert(view))["outputs"][0]["facets"]["datasetType"]["datasetType"] == "VIEW"


@pytest.mark.parametrize(("error", "change"), [(None, "RENAME"), ("it is there", "ALTER")])
def test_rename_is_told_once_it_is_done(error: str | None, change: str) -> None:
    before = replace(CREDITS, table="lake.bank.old", symlinks=(Symlink("w", "bank.old", "TABLE"),))
    output = Output(CREDITS, "rename", before=before, renamed={"id": "number"})
    renamed = Statement("RenameTable", outputs=(output,))
    plan = Plan(insert(CREDITS), renamed)
    made, sent = actions()
    execution = Execution(started(1, plan), 0)
    made.begin(execution)
    made.end(execution, ended(1, plan, error), [])

    facet = sent.events[-1]["outputs"][0]["facets"]["lifecycleStateChange"]
    assert facet["lifecycleStateChange"] == change
    assert ("previousIdentifier" in facet) == (error is None)
    links = sent.events[-1]["outputs"][0]["facets"].get("symlinks", {}).get("identifiers", [])
    assert [link["name"] for link in links] == ["bank.old" if error else "bank.credits"]
    told = sent.events[-1]["outputs"][0].get("outputFacets", {}).get("strandline_snapshot")
    assert told == (None if error else {**told, "renamedColumns": {"id": "number"}})
    assert faults_of(sent.events[-1]) == []


@pytest.mark.parametrize(
    ("error", "state"),
    [
        ("[DIVIDE_BY_ZERO] Division by zero", "FAIL"),
        ("java.lang.RuntimeException: boom", "FAIL"),
        ("org.apache.spark.SparkException: [SPARK_JOB_CANCELLED] Job 3 cancelled by user", "ABORT"),
        ("java.lang.InterruptedException", "ABORT"),
        ("java.lang.InterruptedException: sleep interrupted\n\tat java.lang.Thread.sleep", "ABORT"),
        (
            "[SPARK_JOB_CANCELLED] Job 2 cancelled part of cancelled job group g1 SQLSTATE: XXKDA",
            "ABORT",
        ),
        (
            "org.apache.spark.SparkException: Job 6 cancelled because SparkContext was shut down",
            "ABORT",
        ),
        ("java.lang.IllegalStateException: SparkContext has been shutdown\n\tat x", "ABORT"),
        (
            "org.apache.spark.SparkException: Job aborted.\n\tat x\nCaused by: java.lang.InterruptedException",
            "ABORT",
        ),
        ("[USER_RAISED_EXCEPTION] java.lang.InterruptedException in text SQLSTATE: P0001", "FAIL"),
        (
            "org.apache.spark.SparkException: Job aborted due to stage failure: ValueError: Job 3 cancelled",
            "FAIL",
        ),
        ("Traceback\n  File 'x'\nValueError: [SPARK_JOB_CANCELLED] Job 3 cancelled", "FAIL"),
        ("[DUPLICATE_KEY] Found duplicate key 'InterruptedException'", "FAIL"),
    ],
)
def test_error_ends_a_run_with_fail_unless_it_was_canceled(error: str, state: str) -> None:
    assert state_of(error) == state
    assert run(Plan(insert(CREDITS)), error)[-1].split()[0] == state


def test_write_that_spark_refused_is_one_failed_run_of_its_targets_job() -> None:
    made, sent = actions()
    error = SimpleNamespace(getMessage=lambda: "[TABLE_OR_VIEW_NOT_FOUND] no such table")
    write = RefusedWrite(
        number=1,
        session=None,
        current=("lake", ("bank",)),
        at=5.0,
        until=6.0,
        error=error,
        writer=insert(CREDITS),
        method="append",
        target=None,
    )
    new = Statement("AppendData", absent="lake.bank.new")
    made.unreported(write, ())
    made.unreported(replace(write, number=2, writer=new), ())
    made.unreported(replace(write, number=3, writer=ValueError("no table has such a name")), ())

    assert sent.lines() == [
        "START bank.lake.bank.credits [] -> [credits]",
        "FAIL bank.lake.bank.credits [] -> [credits]",
        "START bank.lake.bank.new [] -> []",
        "FAIL bank.lake.bank.new [] -> []",
    ]
    assert len({event["run"]["runId"] for event in sent.events}) == 2
    assert "no such table" in sent.events[1]["run"]["facets"]["errorMessage"]["message"]


def test_read_only_plan_is_reported_only_if_configured() -> None:
    plan = Plan(Statement("Project", inputs=(TRANSFERS,)))

    assert run(plan) == []
    assert run(plan, settings=conf(reads="true")) == [
        "START bank.read.lake.bank.transfers [transfers] -> []",
        "COMPLETE bank.read.lake.bank.transfers [transfers] -> []",
    ]


def test_plan_unreadable_at_start_is_reported_at_the_end() -> None:
    plan = Plan(ValueError("analysis failed"), insert(MADE))

    assert run(plan) == [
        "START bank.lake.bank.credits [] -> [credits@12]",
        "COMPLETE bank.lake.bank.credits [] -> [credits@12]",
    ]


def test_write_with_an_unreadable_output_is_reported_with_the_reason() -> None:
    part = Statement(
        "MergeIntoTable",
        inputs=(TRANSFERS,),
        unread=("an output of MergeIntoTable: LookupError: gone",),
    )
    made, sent = actions()
    execution = Execution(started(1, plan := Plan(part)), 0)
    made.begin(execution)
    made.end(execution, ended(1, plan), [])

    assert sent.lines() == [
        "START bank.unread.MergeIntoTable [transfers] -> []",
        "COMPLETE bank.unread.MergeIntoTable [transfers] -> []",
    ]
    (fault,) = sent.events[1]["run"]["facets"]["extractionError"]["errors"]
    assert fault["errorMessage"] == "not readable: an output of MergeIntoTable: LookupError: gone"


def test_plan_unreadable_at_the_end_is_reported_as_at_start_with_the_reason() -> None:
    plan = Plan(insert(CREDITS, TRANSFERS), ValueError("scan is gone"))
    made, sent = actions()
    execution = Execution(started(1, plan), 0)

    made.begin(execution)
    made.end(execution, ended(1, plan), [])

    assert sent.lines()[-1] == "COMPLETE bank.lake.bank.credits [transfers] -> [credits]"
    facet = sent.events[-1]["run"]["facets"]["extractionError"]
    assert facet["errors"] == [{"errorMessage": "ValueError: scan is gone"}]


def test_opaque_step_is_named_in_the_event() -> None:
    event = start_of(replace(insert(CREDITS, TRANSFERS), opaque=("MapInPandas",)))

    facet = event["run"]["facets"]["extractionError"]
    assert (facet["totalTasks"], facet["failedTasks"]) == (3, 1)
    assert facet["errors"] == [
        {
            "errorMessage": "MapInPandas: what its rows are made of is not known",
            "task": "MapInPandas",
        }
    ]


def test_statement_text_is_sent_without_literals() -> None:
    text = "INSERT INTO credits SELECT * FROM transfers WHERE name = 'ann'"

    facet = start_of(replace(insert(CREDITS, TRANSFERS), sql=text))["job"]["facets"]["sql"]

    shown = "INSERT INTO credits SELECT * FROM transfers WHERE name = '***'"
    assert (facet["query"], facet["dialect"]) == (shown, "spark")


def test_unreadable_part_of_a_plan_is_named_in_the_event() -> None:
    event = start_of(
        replace(
            insert(CREDITS, TRANSFERS), unread=("LogicalRelation: AttributeError: no such method",)
        )
    )

    assert line_of(event) == "START bank.lake.bank.credits [transfers] -> [credits]"
    facet = event["run"]["facets"]["extractionError"]
    assert [(one["task"], one["errorMessage"]) for one in facet["errors"]] == [
        ("LogicalRelation", "not readable: LogicalRelation: AttributeError: no such method")
    ]


def test_columns_that_decide_the_deleted_rows_are_reported() -> None:
    condition = Origin((TRANSFERS.namespace, TRANSFERS.name), "id", "INDIRECT", "FILTER")
    deletion = replace(insert(CREDITS, TRANSFERS), columns=(), indirect=(condition,))

    facet = start_of(deletion)["outputs"][0]["facets"]["columnLineage"]

    assert facet["fields"] == {}
    assert [
        (one["name"], one["field"], one["transformations"][0]["subtype"])
        for one in facet["dataset"]
    ] == [(TRANSFERS.name, "id", "FILTER")]


def test_row_filter_does_not_remove_column_lineage() -> None:
    condition = Origin((TRANSFERS.namespace, TRANSFERS.name), "id", "INDIRECT", "FILTER")
    filled = insert(CREDITS, TRANSFERS)
    deletion = replace(filled, columns=(), indirect=(condition,))
    made, sent = actions()
    root = Execution(started(1, Plan(filled)), 0)
    made.begin(root)
    made.part(root, ended(2, Plan(replace(filled, indirect=(condition,)))), [])
    made.end(root, ended(1, root.started.qe), [])

    facets = [event["outputs"][0]["facets"]["columnLineage"]["fields"] for event in sent.events]
    assert facets[0] == facets[1] != {}
    together: dict[str, Any] = dict(outputs_of([filled, deletion])[0].facets or {})
    assert list(together["columnLineage"]["fields"]) == list(facets[0])


def test_several_statements_in_one_run_have_no_text() -> None:
    made, sent = actions()
    root = Execution(started(1, Plan(replace(insert(CREDITS), sql="INSERT INTO a SELECT 1"))), 0)
    made.begin(root)
    made.part(root, ended(2, Plan(replace(insert(MADE), sql="INSERT INTO b SELECT 2"))), [])
    made.end(root, ended(1, root.started.qe), [])

    assert "sql" in sent.events[0]["job"]["facets"]
    assert "sql" not in sent.events[-1]["job"]["facets"]


def test_ctas_takes_its_snapshot_from_the_nested_append_only() -> None:
    outer = Plan(replace(insert(CREDITS, TRANSFERS, kind="CreateTableAsSelect")))
    made, sent = actions()
    root = Execution(started(1, outer), 0)
    made.begin(root)

    made.part(root, ended(2, Plan(insert(MADE, TRANSFERS))), [])
    made.part(root, ended(3, Plan(insert(table("bank.housekeeping")))), [])
    made.part(root, ended(4, Plan(ValueError("unreadable"))), [])
    made.end(root, ended(1, outer), [])

    assert sent.lines() == [
        "START bank.lake.bank.credits [transfers] -> [credits]",
        "COMPLETE bank.lake.bank.credits [transfers] -> [credits@12]",
    ]


def test_nested_write_unreadable_at_the_end_is_reported_as_at_start() -> None:
    made, sent = actions()
    root = Execution(started(1, Plan(Statement("Command"))), 0)
    made.part(
        root, ended(2, Plan(insert(CREDITS, TRANSFERS), RuntimeError("the catalog is busy"))), []
    )
    made.part(
        root,
        ended(3, Plan(Statement("Collect", inputs=(TRANSFERS,)), RuntimeError("the log is gone"))),
        [],
    )
    made.end(root, ended(1, root.started.qe), [])

    assert sent.lines()[-1] == "COMPLETE bank.lake.bank.credits [transfers] -> [credits]"


def test_creating_an_empty_table_is_another_job_than_filling_it() -> None:
    plan = Plan(Statement("CreateTable", outputs=insert(CREDITS).outputs))

    assert run(plan)[0] == "START bank.lake.bank.credits.append [] -> [credits]"


def test_conf_can_set_the_job_name() -> None:
    assert (
        run(Plan(insert(CREDITS)), settings=conf(job_name="nightly-{output}"))[0].split()[1]
        == "nightly-lake.bank.credits"
    )


def test_session_job_name_applies_to_statements_started_after_it() -> None:
    made, sent = actions()
    execution = Execution(replace(started(1, Plan(insert(CREDITS))), job_name="of {output}"), 0)

    made.begin(execution)

    assert sent.events[0]["job"]["name"] == "of lake.bank.credits"


@pytest.mark.parametrize(
    ("application", "session", "completes"),
    [
        ("false", None, None),
        ("true", None, True),
        ("false", True, True),
        ("true", False, None),
    ],
)
def test_session_asserts_completeness_before_the_application_does(
    application: str, session: bool | None, completes: bool | None
) -> None:
    made, sent = actions(conf(completes=application))
    plan = Plan(insert(CREDITS), insert(MADE))
    execution = Execution(replace(started(1, plan), completes=session), 0)

    made.begin(execution)
    made.end(execution, ended(1, plan), [])

    facet = sent.events[-1]["outputs"][0]["outputFacets"]["strandline_snapshot"]
    assert facet.get("completes") is completes


def test_create_table_as_replaces_its_table_though_the_append_inside_it_does_not() -> None:
    whole = insert(table("bank.credits", snapshot("12", replaces_table=True)))
    inside = insert(table("bank.credits", snapshot("12", replaces_table=False)))

    (output,) = outputs_of([whole, inside])

    facet: Any = (output.outputFacets or {})["strandline_snapshot"]
    assert (facet.snapshotId, facet.replacesTable, facet.others) == ("12", True, None)


def test_run_that_writes_a_table_twice_reports_both_snapshots() -> None:
    first = insert(table("bank.credits", snapshot("12", replaces_table=True)))
    second = insert(table("bank.credits", snapshot("13", replaces_table=False)))

    (output,) = outputs_of([first, second])

    facet: Any = (output.outputFacets or {})["strandline_snapshot"]
    assert (facet.snapshotId, facet.replacesTable) == ("13", False)
    assert [(other.snapshotId, other.replacesTable) for other in facet.others] == [("12", True)]


@pytest.mark.parametrize(("parts", "lines"), [(0, 0), (1, 2)])
def test_table_that_may_have_been_there_was_made_if_a_nested_execution_filled_it(
    parts: int, lines: int
) -> None:
    nothing = Statement("CreateDataSourceTableAsSelectCommand")
    plan = Plan(nothing, replace(insert(CREDITS), kind=nothing.kind, if_filled=True))
    made, sent = actions()
    root = Execution(started(1, plan), 0)
    made.begin(root)
    for number in range(parts):
        made.part(root, ended(number + 2, Plan(insert(CREDITS))), [])
    made.end(root, ended(1, plan), [])

    assert len(sent.lines()) == lines


def test_run_that_writes_a_table_twice_has_the_columns_and_the_rows_of_both_writes() -> None:
    first = insert(table("bank.credits", snapshot("12")), TRANSFERS)
    second = insert(table("bank.credits", snapshot("13")), table("bank.people"))

    (output,) = outputs_of([first, second])

    facets: Any = output.facets
    assert [one["name"] for one in facets["columnLineage"]["fields"]["id"]["inputFields"]] == [
        "/warehouse/bank/transfers",
        "/warehouse/bank/people",
    ]
    counted: Any = output.outputFacets
    assert counted["outputStatistics"].rowCount == 6


def test_append_inside_a_create_table_as_counts_its_rows_once() -> None:
    (output,) = outputs_of([insert(MADE, TRANSFERS), replace(insert(MADE), columns=())])

    facets: Any = output.facets
    assert list(facets["columnLineage"]["fields"]) == ["id"]
    counted: Any = output.outputFacets
    assert counted["outputStatistics"].rowCount == 3


def test_dates_are_cut_from_paths() -> None:
    settings = replace(conf(), remove_path=r".*(?P<remove>/date=[0-9-]+)")
    path = replace(CREDITS, name="/out/report/date=2026-11-21", table=None, symlinks=())

    assert run(Plan(insert(path)), settings=settings)[0] == "START bank./out/report [] -> [report]"


def test_events_of_a_run_share_one_id_that_no_other_run_has() -> None:
    made, sent = actions()
    for number in (1, 2):
        execution = Execution(started(number, Plan(insert(CREDITS))), 0)
        made.begin(execution)
        made.end(execution, ended(number, Plan(insert(CREDITS))), [])

    ids = [event["run"]["runId"] for event in sent.events]
    assert ids[0] == ids[1] != ids[2] == ids[3]
    parent = sent.events[0]["run"]["facets"]["parent"]
    assert (parent["run"]["runId"], parent["root"]["job"]["name"]) == (APPLICATION.run_id, "bank")


def test_commits_are_kept_while_an_open_execution_may_own_them() -> None:
    arrivals = Arrivals(at_least=0)
    for item in "abc":
        arrivals.add(item)

    arrivals.forget_before(1)
    arrivals.add("d")

    assert (arrivals.since(0), arrivals.since(2), arrivals.next) == (["b", "c", "d"], ["c", "d"], 4)
    arrivals.forget_before(4)
    assert arrivals.since(0) == []


def test_endless_execution_keeps_a_bounded_number_of_commits() -> None:
    arrivals = Arrivals(at_least=0, most=2)
    for item in "abcd":
        arrivals.add(item)

    assert (arrivals.since(0), arrivals.since(3), arrivals.next) == (["c", "d"], ["d"], 4)


def test_commit_seen_before_its_execution_is_matched_by_time() -> None:
    arrivals = Arrivals(at_least=2)
    for at, item in enumerate("abc"):
        arrivals.add(item, at * 1000.0)
    arrivals.forget_before(3)

    assert arrivals.since(arrivals.taken_since(1500)) == ["c"]
    assert arrivals.since(arrivals.taken_since(0)) == ["b", "c"]
    assert arrivals.since(arrivals.taken_since(2001)) == []


def test_user_edges_replace_detected_edges() -> None:
    made, sent = actions()
    other = LineageDataset("topic 3", "kafka://broker")
    edge = LineageEdge(
        LineageVertex((other,)), LineageVertex((LineageDataset(CREDITS.name, CREDITS.namespace),))
    )
    execution = Execution(
        started(1, Plan(insert(CREDITS, TRANSFERS), insert(MADE, TRANSFERS))), 0, edges=(edge,)
    )

    made.end(execution, ended(1, execution.started.qe), [])

    assert sent.lines()[-1] == "COMPLETE bank.lake.bank.credits [topic 3] -> [credits@12]"


def test_table_created_by_a_query_is_reported_as_created() -> None:
    def made(operation: Operation) -> Statement:
        statement = insert(CREDITS, TRANSFERS)
        return replace(statement, outputs=(replace(statement.outputs[0], operation=operation),))

    facets: dict[str, Any] = dict(outputs_of([made("create"), made("overwrite")])[0].facets or {})

    assert facets["lifecycleStateChange"].lifecycleStateChange.value == "CREATE"


def test_merge_target_snapshot_is_reported_only_if_all_parts_agree() -> None:
    merge = insert(CREDITS, table("bank.credits"))
    reading = [
        Statement("Collect", inputs=(table("bank.credits", snapshot(one)),))
        for one in ("7", "7", "8")
    ]

    (agreed,), (doubtful,) = informed([*reading[:2], merge]), informed([*reading, merge])

    assert [one.snapshot_id for one in agreed.inputs[0].snapshots] == ["7"]
    assert doubtful.inputs[0].snapshots == ()
