"""Lineage from the store, on SQLite and PostgreSQL: what is known, what runs, what was."""

import random
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import Engine

from strandline.core.walk import Direction
from strandline.store.lineage.lookup import node_called
from strandline.store.lineage.relations import View
from strandline.store.lineage.table_lineage import Question, lineage_of
from worlds.builders import dataset, event, store
from worlds.scenarios import plain
from worlds.scenarios.bank import FACET, bank, time
from worlds.scenarios.corpus import corpus
from worlds.scenarios.plain import columns, creates, parent, run
from worlds.scenarios.taking import arrows, fill, ids, reader, view

STREAMING = {"jobType": FACET | {"processingType": "STREAMING", "integration": "SPARK"}}
UP, DOWN = Direction.UPSTREAM, Direction.DOWNSTREAM
NOW = view("2026-11-20T13:00:00Z")


def asked(engine: Engine, node: str, seen: View = NOW, **how: Any) -> dict[str, Any]:
    with reader(engine) as connection:
        return lineage_of(connection, Question(node_called(connection, node), seen, **how))


def test_a_table_goes_back_through_its_jobs_to_the_roots(engine: Engine) -> None:
    fill(engine, bank())

    answer = asked(engine, "bank.balance", direction=UP)

    assert ids(answer) == [
        "dataset:file:/lake/bank/balance",
        "dataset:file:/lake/bank/credits",
        "dataset:file:/lake/bank/debits",
        "job:bank:bank_balance",
        "dataset:file:/lake/bank/transfers",
        "job:bank:bank_credits",
        "job:bank:bank_debits",
        "job:bank:bank_ingest",
    ]
    assert arrows(answer) == [
        "job:bank:bank_balance -> dataset:file:/lake/bank/balance",
        "job:bank:bank_credits -> dataset:file:/lake/bank/credits",
        "job:bank:bank_debits -> dataset:file:/lake/bank/debits",
        "job:bank:bank_ingest -> dataset:file:/lake/bank/transfers",
        "dataset:file:/lake/bank/credits -> job:bank:bank_balance",
        "dataset:file:/lake/bank/debits -> job:bank:bank_balance",
        "dataset:file:/lake/bank/transfers -> job:bank:bank_credits",
        "dataset:file:/lake/bank/transfers -> job:bank:bank_debits",
    ]
    assert (answer["complete"], answer["truncatedBy"], answer["asOf"]) == (True, None, "2026-11-20T13:00:00Z")


def test_an_edge_says_by_which_rule_it_is_known_and_what_became_of_its_run(engine: Engine) -> None:
    fill(engine, bank())

    answer = asked(engine, "bank.credits", direction=UP, depth=1)

    assert answer["edges"][0] == {
        "source": "job:bank:bank_credits",
        "target": "dataset:file:/lake/bank/credits",
        "origins": ["dataset:file:/lake/bank/transfers"],
        "rule": "columnLineage",
        "runId": "00000000-0000-4000-8000-000000000002",
        "state": "COMPLETE",
        "running": False,
        "since": "2026-11-20T12:00:00Z",
        "until": "2026-11-20T12:00:21Z",
        "lastSeen": "2026-11-20T12:00:20Z",
        "runs": 1,
        "ofRuns": 1,
        "inLatest": True,
    }
    assert answer["truncatedBy"] == "depth"


def test_only_running_jobs_are_live(engine: Engine) -> None:
    fill(engine, bank(ended=False))
    during, silent = time(30), time(81)

    running = asked(engine, "bank.balance", view(during, live=True), direction=UP)
    lost = asked(engine, "bank.balance", view(silent, live=True), direction=UP)

    assert len(running["edges"]) == 8
    assert {edge["state"] for edge in running["edges"]} == {"RUNNING"}
    assert ids(lost) == ["dataset:file:/lake/bank/balance"]


def test_a_job_that_is_silent_for_longer_than_its_lease_is_known_as_lost(engine: Engine) -> None:
    fill(engine, bank(ended=False))

    answer = asked(engine, "bank.balance", view(time(81)), direction=UP, depth=1)

    assert {edge["state"] for edge in answer["edges"]} == {"LOST"}
    assert {edge["until"] for edge in answer["edges"]} == {"2026-11-20T12:01:20Z"}


def test_the_past_is_answered_as_it_was(engine: Engine) -> None:
    fill(engine, bank())

    then = asked(engine, "bank.balance", view(time(10), live=True, past=True))
    known = asked(engine, "bank.balance", view(time(10), past=True), direction=DOWN)

    assert "job:bank:bank_report" not in ids(then)
    assert {edge["state"] for edge in then["edges"]} == {"RUNNING"}
    assert ids(known) == ["dataset:file:/lake/bank/balance"]


def test_a_run_that_ended_by_a_clock_ahead_of_this_one_runs_no_more(engine: Engine) -> None:
    fill(engine, [run("START", 0, "j", ["a"], ["t"]), run("COMPLETE", 600, "j")])

    (edge, _) = asked(engine, "t", view(time(10)), direction=UP)["edges"]

    assert (edge["state"], edge["running"], edge["until"]) == ("COMPLETE", False, "2026-11-20T12:10:00Z")
    assert arrows(asked(engine, "t", view(time(10), live=True))) == []
    assert len(arrows(asked(engine, "t", view(time(10), live=True, past=True)))) == 2


def test_a_run_that_began_by_a_clock_ahead_of_this_one_runs(engine: Engine) -> None:
    fill(engine, [run("START", 600, "j", ["a"], ["t"])])

    assert len(arrows(asked(engine, "t", view(time(10), live=True)))) == 2
    assert arrows(asked(engine, "t", view(time(10), live=True, past=True))) == []


@pytest.mark.parametrize("seen", [NOW, view("2026-11-20T13:00:00Z", past=True)])
@pytest.mark.parametrize("kind", ["START", "FAIL"])
def test_a_new_run_that_has_named_no_sink_yet_leaves_the_sink_of_the_run_before_with_its_sources(
    engine: Engine, seen: View, kind: str
) -> None:
    """Nobody said that the table was made from what the new run reads."""
    fill(engine, [run("COMPLETE", 1, "j", ["a"], ["t"]), run(kind, 2, "j", ["b"], run_id="2")])

    assert ids(asked(engine, "t", seen, direction=UP)) == ["dataset:db:t", "dataset:db:a", "job:ns:j"]
    assert ids(asked(engine, "a", seen, direction=DOWN)) == ["dataset:db:a", "dataset:db:t", "job:ns:j"]
    assert ids(asked(engine, "b", seen, direction=DOWN)) == ["dataset:db:b", "job:ns:j"]
    assert arrows(asked(engine, "job:ns:j", seen)) == [
        "job:ns:j -> dataset:db:t",
        "dataset:db:a -> job:ns:j",
        "dataset:db:b -> job:ns:j",
    ]


def test_two_runs_of_a_job_at_once_do_not_mix_their_sources(engine: Engine) -> None:
    fill(engine, [run("START", 1, "j", ["a"], ["t"]), run("START", 2, "j", ["b"], ["u"], run_id="2")])

    answer = asked(engine, "t", view(time(10), live=True), direction=UP)

    assert ids(answer) == ["dataset:db:t", "dataset:db:a", "job:ns:j"]


def test_a_table_that_a_failed_ctas_would_have_made_has_no_lineage(engine: Engine) -> None:
    fill(engine, [run("START", 1, "j", ["a"], [creates("t")]), run("FAIL", 2, "j")])

    answer = asked(engine, "a")

    assert ids(answer) == ["dataset:db:a", "job:ns:j"]


@pytest.mark.parametrize("seen", [NOW, view("2026-11-20T13:00:00Z", past=True)])
def test_a_table_that_a_later_run_failed_to_create_keeps_the_lineage_of_the_run_that_did(
    engine: Engine, seen: View
) -> None:
    fill(engine, [run("COMPLETE", 0, "j", ["z"], ["s"], run_id="0")])
    fill(engine, [run("START", 1, "j", ["a"], [creates("t")]), run("COMPLETE", 2, "j", ["a"], [creates("t")])])
    for again in ("2", "3"):
        fill(engine, [run("START", 10, "j", ["b"], [creates("t")], run_id=again), run("FAIL", 11, "j", run_id=again)])

    assert ids(asked(engine, "t", seen, direction=UP)) == ["dataset:db:t", "dataset:db:a", "job:ns:j"]
    assert ids(asked(engine, "s", seen)) == ["dataset:db:s", "dataset:db:z", "job:ns:j"]
    newest = replace(seen, newest=True)
    assert ids(asked(engine, "s", newest)) == ["dataset:db:s"]


@pytest.mark.parametrize("seen", [NOW, view("2026-11-20T13:00:00Z", past=True)])
def test_a_run_whose_job_was_renamed_on_the_way_leads_from_its_first_events_to_its_last(
    engine: Engine, seen: View
) -> None:
    a, b = event("START", 1, "ctas", inputs=[dataset("a")]), event("COMPLETE", 1, "ctas.b", 5, outputs=[dataset("b")])
    store(engine, [a, b])

    for node, way in (("a", DOWN), ("b", UP), ("job:tests:ctas.b", Direction.BOTH)):
        assert arrows(asked(engine, node, seen, direction=way)) == [
            "job:tests:ctas.b -> dataset:hive://lake:b",
            "dataset:hive://lake:a -> job:tests:ctas.b",
        ]


@pytest.mark.parametrize("seen", [NOW, view("2026-11-20T13:00:00Z", past=True)])
def test_a_run_that_another_overlaps_is_known_whole(engine: Engine, seen: View) -> None:
    fill(engine, [run("START", 0, "j", ["a"], ["t"])])
    fill(engine, [run("START", 1, "j", ["a"], ["t"], run_id="2"), run("COMPLETE", 2, "j", ["c"], ["t"], run_id="2")])
    fill(engine, [run("COMPLETE", 3, "j", ["b"], ["t"])])

    newest = asked(engine, "t", replace(seen, newest=True), direction=UP)

    assert ids(newest) == ["dataset:db:t", "dataset:db:a", "dataset:db:b", "job:ns:j"]
    assert "dataset:db:c" in ids(asked(engine, "t", seen, direction=UP))


def test_a_job_with_two_separate_flows_does_not_mix_them(engine: Engine) -> None:
    sinks = [columns("c", x=("a", "x")), columns("d", y=("b", "y"))]
    fill(engine, [run("COMPLETE", 1, "j", ["a", "b"], sinks)])

    assert ids(asked(engine, "a", direction=DOWN)) == ["dataset:db:a", "dataset:db:c", "job:ns:j"]
    assert ids(asked(engine, "d", direction=UP)) == ["dataset:db:d", "dataset:db:b", "job:ns:j"]


def test_a_source_that_only_an_edge_names_leads_to_its_sink(engine: Engine) -> None:
    fill(engine, [run("COMPLETE", 1, "j", ["a"], [columns("t", x=("hidden", "x"))])])

    assert ids(asked(engine, "hidden", direction=DOWN)) == ["dataset:db:hidden", "dataset:db:t", "job:ns:j"]
    assert ids(asked(engine, "t", direction=UP)) == ["dataset:db:t", "dataset:db:a", "dataset:db:hidden", "job:ns:j"]


@pytest.mark.parametrize("key", ["columnLineage", "lineage"])
@pytest.mark.parametrize("order", [1, -1])
def test_a_facet_that_is_deleted_states_no_edges_any_more(engine: Engine, key: str, order: int) -> None:
    """It says nothing then, not that there is no source: all that the job reads counts again."""
    one = {"namespace": "db", "name": "a", "field": "x"}
    told: Any = {"columnLineage": {"fields": {"x": {"inputFields": [one]}}}, "lineage": {"inputs": [one]}}[key]
    said, gone = (plain.dataset("t", **{key: {**FACET, **facet}}) for facet in (told, {"_deleted": True}))
    events = [run("START", 1, "j", ["a", "b"], [said]), run("COMPLETE", 2, "j", [], [gone])]
    fill(engine, events[::order])

    assert ids(asked(engine, "t", direction=UP)) == ["dataset:db:t", "dataset:db:a", "dataset:db:b", "job:ns:j"]


def test_a_dataset_is_found_under_any_of_its_names(engine: Engine) -> None:
    fill(engine, bank())

    by_symlink = asked(engine, "dataset:file:/lake:bank.balance", direction=UP)

    assert by_symlink == asked(engine, "dataset:file:/lake/bank/balance", direction=UP)


def test_tasks_are_shown_as_their_parent_if_asked(engine: Engine) -> None:
    fill(
        engine,
        [
            run("COMPLETE", 1, "dag.extract", ["a"], ["b"], of_run=parent("dag")),
            run("COMPLETE", 2, "dag.load", ["b"], ["c"], of_run=parent("dag")),
        ],
    )

    answer = asked(engine, "c", direction=UP, collapse="parent")

    assert ids(answer) == ["dataset:db:c", "dataset:db:b", "job:ns:dag", "dataset:db:a"]
    assert arrows(answer) == [
        "job:ns:dag -> dataset:db:b",
        "job:ns:dag -> dataset:db:c",
        "dataset:db:a -> job:ns:dag",
        "dataset:db:b -> job:ns:dag",
    ]


def test_a_hub_is_cut_and_says_so(engine: Engine) -> None:
    fill(engine, [run("COMPLETE", number, f"j{number}", ["hub"], [f"t{number}"]) for number in range(50)])

    answer = asked(engine, "hub", direction=DOWN, most=21)

    assert len(answer["nodes"]) == 21
    assert (answer["complete"], answer["truncatedBy"]) == (False, "nodes")


def test_the_order_and_repetition_of_events_do_not_matter(engine: Engine) -> None:
    events = bank()
    shuffled = random.Random(7).sample(events, len(events))

    fill(engine, shuffled[: len(shuffled) // 2])
    fill(engine, shuffled[len(shuffled) // 3 :])
    fill(engine, shuffled)

    answer = asked(engine, "bank.balance")
    assert len(answer["nodes"]) == 10
    assert arrows(answer)[:2] == [
        "job:bank:bank_balance -> dataset:file:/lake/bank/balance",
        "job:bank:bank_credits -> dataset:file:/lake/bank/credits",
    ]
    assert {edge["state"] for edge in answer["edges"]} == {"COMPLETE"}


def test_what_real_spark_and_dbt_said_is_a_graph(engine: Engine) -> None:
    fill(engine, corpus())

    dbt = asked(engine, "DEMO_DB.public.customers", direction=UP)
    spark = asked(engine, "default.t2", direction=UP)

    assert [node for node in ids(dbt) if node.startswith("dataset")] == [
        "dataset:snowflake://ASDF1234.eu-central-1.aws:DEMO_DB.public.customers",
        "dataset:snowflake://ASDF1234.eu-central-1.aws:DEMO_DB.public.stg_customers",
        "dataset:snowflake://ASDF1234.eu-central-1.aws:DEMO_DB.public.stg_orders",
        "dataset:snowflake://ASDF1234.eu-central-1.aws:DEMO_DB.public.stg_payments",
    ]
    assert [node for node in ids(spark) if node.startswith("dataset")] == [
        "dataset:hdfs://dataproc-producer-test-m:/user/hive/warehouse/t2",
        "dataset:hdfs://dataproc-producer-test-m:/user/hive/warehouse/t1",
    ]


@pytest.mark.parametrize(
    ("at", "runs"), [("12:00:00.9", False), ("12:00:01", True), ("12:00:08.9", True), ("12:00:09", False)]
)
def test_a_run_is_live_from_its_start_until_just_before_its_end(engine: Engine, at: str, runs: bool) -> None:
    """The next run may start at the moment of its end, and of two that follow each other one is live."""
    fill(engine, [run("START", 1, "j", ["a"], ["t"]), run("COMPLETE", 9, "j")])

    found = ids(asked(engine, "t", view(f"2026-11-20T{at}Z", live=True, past=True), direction=UP))

    assert ("job:ns:j" in found) == runs
