"""Recent, running and past lineage from the store, on both databases."""

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


def test_upstream_lineage_reaches_the_base_tables(engine: Engine) -> None:
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
    assert (answer["complete"], answer["truncatedBy"], answer["asOf"]) == (
        True,
        None,
        "2026-11-20T13:00:00Z",
    )


def test_edge_names_its_rule_and_the_state_of_its_run(engine: Engine) -> None:
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


def test_running_lineage_shows_running_jobs_only(engine: Engine) -> None:
    fill(engine, bank(ended=False))
    during, silent = time(30), time(81)

    running = asked(engine, "bank.balance", view(during, live=True), direction=UP)
    lost = asked(engine, "bank.balance", view(silent, live=True), direction=UP)

    assert len(running["edges"]) == 8
    assert {edge["state"] for edge in running["edges"]} == {"RUNNING"}
    assert ids(lost) == ["dataset:file:/lake/bank/balance"]


def test_job_silent_past_its_heartbeat_timeout_is_lost(engine: Engine) -> None:
    fill(engine, bank(ended=False))

    answer = asked(engine, "bank.balance", view(time(81)), direction=UP, depth=1)

    assert {edge["state"] for edge in answer["edges"]} == {"LOST"}
    assert {edge["until"] for edge in answer["edges"]} == {"2026-11-20T12:01:20Z"}


def test_as_of_shows_lineage_of_that_moment(engine: Engine) -> None:
    fill(engine, bank())

    then = asked(engine, "bank.balance", view(time(10), live=True, past=True))
    known = asked(engine, "bank.balance", view(time(10), past=True), direction=DOWN)

    assert "job:bank:bank_report" not in ids(then)
    assert {edge["state"] for edge in then["edges"]} == {"RUNNING"}
    assert ids(known) == ["dataset:file:/lake/bank/balance"]


def test_run_that_ended_by_a_fast_clock_is_not_running(engine: Engine) -> None:
    fill(engine, [run("START", 0, "j", ["a"], ["t"]), run("COMPLETE", 600, "j")])

    (edge, _) = asked(engine, "t", view(time(10)), direction=UP)["edges"]

    assert (edge["state"], edge["running"], edge["until"]) == (
        "COMPLETE",
        False,
        "2026-11-20T12:10:00Z",
    )
    assert arrows(asked(engine, "t", view(time(10), live=True))) == []
    assert len(arrows(asked(engine, "t", view(time(10), live=True, past=True)))) == 2


def test_run_that_began_by_a_fast_clock_is_running(engine: Engine) -> None:
    fill(engine, [run("START", 600, "j", ["a"], ["t"])])

    assert len(arrows(asked(engine, "t", view(time(10), live=True)))) == 2
    assert arrows(asked(engine, "t", view(time(10), live=True, past=True))) == []


@pytest.mark.parametrize("seen", [NOW, view("2026-11-20T13:00:00Z", past=True)])
@pytest.mark.parametrize("kind", ["START", "FAIL"])
def test_new_run_without_a_sink_keeps_the_previous_sources(
    engine: Engine, seen: View, kind: str
) -> None:
    """No event says that the table was made from the new run's inputs."""
    fill(engine, [run("COMPLETE", 1, "j", ["a"], ["t"]), run(kind, 2, "j", ["b"], run_id="2")])

    assert ids(asked(engine, "t", seen, direction=UP)) == [
        "dataset:db:t",
        "dataset:db:a",
        "job:ns:j",
    ]
    assert ids(asked(engine, "a", seen, direction=DOWN)) == [
        "dataset:db:a",
        "dataset:db:t",
        "job:ns:j",
    ]
    assert ids(asked(engine, "b", seen, direction=DOWN)) == ["dataset:db:b", "job:ns:j"]
    assert arrows(asked(engine, "job:ns:j", seen)) == [
        "job:ns:j -> dataset:db:t",
        "dataset:db:a -> job:ns:j",
        "dataset:db:b -> job:ns:j",
    ]


def test_concurrent_runs_of_a_job_do_not_mix_their_sources(engine: Engine) -> None:
    fill(
        engine, [run("START", 1, "j", ["a"], ["t"]), run("START", 2, "j", ["b"], ["u"], run_id="2")]
    )

    answer = asked(engine, "t", view(time(10), live=True), direction=UP)

    assert ids(answer) == ["dataset:db:t", "dataset:db:a", "job:ns:j"]


def test_table_of_a_failed_ctas_has_no_lineage(engine: Engine) -> None:
    fill(engine, [run("START", 1, "j", ["a"], [creates("t")]), run("FAIL", 2, "j")])

    answer = asked(engine, "a")

    assert ids(answer) == ["dataset:db:a", "job:ns:j"]


@pytest.mark.parametrize("seen", [NOW, view("2026-11-20T13:00:00Z", past=True)])
def test_failed_recreation_keeps_the_lineage_of_the_table(engine: Engine, seen: View) -> None:
    fill(engine, [run("COMPLETE", 0, "j", ["z"], ["s"], run_id="0")])
    fill(
        engine,
        [
            run("START", 1, "j", ["a"], [creates("t")]),
            run("COMPLETE", 2, "j", ["a"], [creates("t")]),
        ],
    )
    for again in ("2", "3"):
        fill(
            engine,
            [
                run("START", 10, "j", ["b"], [creates("t")], run_id=again),
                run("FAIL", 11, "j", run_id=again),
            ],
        )

    assert ids(asked(engine, "t", seen, direction=UP)) == [
        "dataset:db:t",
        "dataset:db:a",
        "job:ns:j",
    ]
    assert ids(asked(engine, "s", seen)) == ["dataset:db:s", "dataset:db:z", "job:ns:j"]
    newest = replace(seen, newest=True)
    assert ids(asked(engine, "s", newest)) == ["dataset:db:s"]


@pytest.mark.parametrize("seen", [NOW, view("2026-11-20T13:00:00Z", past=True)])
def test_renamed_run_connects_its_first_and_last_events(engine: Engine, seen: View) -> None:
    a, b = (
        event("START", 1, "ctas", inputs=[dataset("a")]),
        event("COMPLETE", 1, "ctas.b", 5, outputs=[dataset("b")]),
    )
    store(engine, [a, b])

    for node, way in (("a", DOWN), ("b", UP), ("job:tests:ctas.b", Direction.BOTH)):
        assert arrows(asked(engine, node, seen, direction=way)) == [
            "job:tests:ctas.b -> dataset:hive://lake:b",
            "dataset:hive://lake:a -> job:tests:ctas.b",
        ]


@pytest.mark.parametrize("seen", [NOW, view("2026-11-20T13:00:00Z", past=True)])
def test_overlapped_run_keeps_all_its_edges(engine: Engine, seen: View) -> None:
    fill(engine, [run("START", 0, "j", ["a"], ["t"])])
    fill(
        engine,
        [
            run("START", 1, "j", ["a"], ["t"], run_id="2"),
            run("COMPLETE", 2, "j", ["c"], ["t"], run_id="2"),
        ],
    )
    fill(engine, [run("COMPLETE", 3, "j", ["b"], ["t"])])

    newest = asked(engine, "t", replace(seen, newest=True), direction=UP)

    assert ids(newest) == ["dataset:db:t", "dataset:db:a", "dataset:db:b", "job:ns:j"]
    assert "dataset:db:c" in ids(asked(engine, "t", seen, direction=UP))


def test_separate_flows_of_a_job_are_not_mixed(engine: Engine) -> None:
    sinks = [columns("c", x=("a", "x")), columns("d", y=("b", "y"))]
    fill(engine, [run("COMPLETE", 1, "j", ["a", "b"], sinks)])

    assert ids(asked(engine, "a", direction=DOWN)) == ["dataset:db:a", "dataset:db:c", "job:ns:j"]
    assert ids(asked(engine, "d", direction=UP)) == ["dataset:db:d", "dataset:db:b", "job:ns:j"]


def test_source_named_only_by_an_edge_leads_to_its_sink(engine: Engine) -> None:
    fill(engine, [run("COMPLETE", 1, "j", ["a"], [columns("t", x=("hidden", "x"))])])

    assert ids(asked(engine, "hidden", direction=DOWN)) == [
        "dataset:db:hidden",
        "dataset:db:t",
        "job:ns:j",
    ]
    assert ids(asked(engine, "t", direction=UP)) == [
        "dataset:db:t",
        "dataset:db:a",
        "dataset:db:hidden",
        "job:ns:j",
    ]


@pytest.mark.parametrize("key", ["columnLineage", "lineage"])
@pytest.mark.parametrize("order", [1, -1])
def test_deleted_facet_states_no_edges(engine: Engine, key: str, order: int) -> None:
    """A deleted facet does not mean "no source": all inputs count again."""
    one = {"namespace": "db", "name": "a", "field": "x"}
    told: Any = {
        "columnLineage": {"fields": {"x": {"inputFields": [one]}}},
        "lineage": {"inputs": [one]},
    }[key]
    said, gone = (
        plain.dataset("t", **{key: {**FACET, **facet}}) for facet in (told, {"_deleted": True})
    )
    events = [run("START", 1, "j", ["a", "b"], [said]), run("COMPLETE", 2, "j", [], [gone])]
    fill(engine, events[::order])

    assert ids(asked(engine, "t", direction=UP)) == [
        "dataset:db:t",
        "dataset:db:a",
        "dataset:db:b",
        "job:ns:j",
    ]


def test_dataset_is_found_by_any_of_its_names(engine: Engine) -> None:
    fill(engine, bank())

    by_symlink = asked(engine, "dataset:file:/lake:bank.balance", direction=UP)

    assert by_symlink == asked(engine, "dataset:file:/lake/bank/balance", direction=UP)


def test_tasks_collapse_into_their_parent_on_request(engine: Engine) -> None:
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


def test_cut_hub_is_reported_as_incomplete(engine: Engine) -> None:
    fill(
        engine,
        [run("COMPLETE", number, f"j{number}", ["hub"], [f"t{number}"]) for number in range(50)],
    )

    answer = asked(engine, "hub", direction=DOWN, most=21)

    assert len(answer["nodes"]) == 21
    assert (answer["complete"], answer["truncatedBy"]) == (False, "nodes")


def test_event_order_and_repetition_do_not_matter(engine: Engine) -> None:
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


def test_real_spark_and_dbt_events_form_a_graph(engine: Engine) -> None:
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
    ("at", "runs"),
    [("12:00:00.9", False), ("12:00:01", True), ("12:00:08.9", True), ("12:00:09", False)],
)
def test_run_is_running_from_its_start_until_just_before_its_end(
    engine: Engine, at: str, runs: bool
) -> None:
    """The next run may start exactly at its end; of two consecutive runs only one is running."""
    fill(engine, [run("START", 1, "j", ["a"], ["t"]), run("COMPLETE", 9, "j")])

    found = ids(asked(engine, "t", view(f"2026-11-20T{at}Z", live=True, past=True), direction=UP))

    assert ("job:ns:j" in found) == runs
