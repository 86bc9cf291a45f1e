"""Recent, running and past lineage from the store, on both databases."""

from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import Engine

from strandline.core.walk import Direction
from strandline.store.lineage.run_state import View
from worlds.scenarios import plain
from worlds.scenarios.bank import FACET, bank, time
from worlds.scenarios.plain import columns, creates, run
from worlds.scenarios.taking import NOW, arrows, fill, ids, lineage, view

STREAMING = {"jobType": FACET | {"processingType": "STREAMING", "integration": "SPARK"}}
UP, DOWN = Direction.UPSTREAM, Direction.DOWNSTREAM


def test_upstream_lineage_reaches_the_base_tables(engine: Engine) -> None:
    fill(engine, bank())

    answer = lineage(engine, "bank.balance", direction=UP)

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

    answer = lineage(engine, "bank.credits", direction=UP, depth=1)

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

    running = lineage(engine, "bank.balance", view(during, live=True), direction=UP)
    lost = lineage(engine, "bank.balance", view(silent, live=True), direction=UP)

    assert len(running["edges"]) == 8
    assert {edge["state"] for edge in running["edges"]} == {"RUNNING"}
    assert ids(lost) == ["dataset:file:/lake/bank/balance"]


def test_job_silent_past_its_heartbeat_timeout_is_lost(engine: Engine) -> None:
    fill(engine, bank(ended=False))

    answer = lineage(engine, "bank.balance", view(time(81)), direction=UP, depth=1)

    assert {edge["state"] for edge in answer["edges"]} == {"LOST"}
    assert {edge["until"] for edge in answer["edges"]} == {"2026-11-20T12:01:20Z"}


def test_as_of_shows_lineage_of_that_moment(engine: Engine) -> None:
    fill(engine, bank())

    then = lineage(engine, "bank.balance", view(time(10), live=True, past=True))
    known = lineage(engine, "bank.balance", view(time(10), past=True), direction=DOWN)

    assert "job:bank:bank_report" not in ids(then)
    assert {edge["state"] for edge in then["edges"]} == {"RUNNING"}
    assert ids(known) == ["dataset:file:/lake/bank/balance"]


def test_run_that_ended_by_a_fast_clock_is_not_running(engine: Engine) -> None:
    fill(engine, [run("START", 0, "j", ["a"], ["t"]), run("COMPLETE", 600, "j")])

    (edge, _) = lineage(engine, "t", view(time(10)), direction=UP)["edges"]

    assert (edge["state"], edge["running"], edge["until"]) == (
        "COMPLETE",
        False,
        "2026-11-20T12:10:00Z",
    )
    assert arrows(lineage(engine, "t", view(time(10), live=True))) == []
    assert len(arrows(lineage(engine, "t", view(time(10), live=True, past=True)))) == 2


def test_run_that_began_by_a_fast_clock_is_running(engine: Engine) -> None:
    fill(engine, [run("START", 600, "j", ["a"], ["t"])])

    assert len(arrows(lineage(engine, "t", view(time(10), live=True)))) == 2
    assert arrows(lineage(engine, "t", view(time(10), live=True, past=True))) == []


@pytest.mark.parametrize("seen", [NOW, view("2026-11-20T13:00:00Z", past=True)])
@pytest.mark.parametrize("kind", ["START", "FAIL"])
def test_new_run_without_a_sink_keeps_the_previous_sources(
    engine: Engine, seen: View, kind: str
) -> None:
    """No event says that the table was made from the new run's inputs."""
    fill(engine, [run("COMPLETE", 1, "j", ["a"], ["t"]), run(kind, 2, "j", ["b"], run_id="2")])

    assert ids(lineage(engine, "t", seen, direction=UP)) == [
        "dataset:db:t",
        "dataset:db:a",
        "job:ns:j",
    ]
    assert ids(lineage(engine, "a", seen, direction=DOWN)) == [
        "dataset:db:a",
        "dataset:db:t",
        "job:ns:j",
    ]
    assert ids(lineage(engine, "b", seen, direction=DOWN)) == ["dataset:db:b", "job:ns:j"]
    assert arrows(lineage(engine, "job:ns:j", seen)) == [
        "job:ns:j -> dataset:db:t",
        "dataset:db:a -> job:ns:j",
        "dataset:db:b -> job:ns:j",
    ]


def test_concurrent_runs_of_a_job_do_not_mix_their_sources(engine: Engine) -> None:
    fill(
        engine, [run("START", 1, "j", ["a"], ["t"]), run("START", 2, "j", ["b"], ["u"], run_id="2")]
    )

    answer = lineage(engine, "t", view(time(10), live=True), direction=UP)

    assert ids(answer) == ["dataset:db:t", "dataset:db:a", "job:ns:j"]


def test_table_of_a_failed_ctas_has_no_lineage(engine: Engine) -> None:
    fill(engine, [run("START", 1, "j", ["a"], [creates("t")]), run("FAIL", 2, "j")])

    answer = lineage(engine, "a")

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

    assert ids(lineage(engine, "t", seen, direction=UP)) == [
        "dataset:db:t",
        "dataset:db:a",
        "job:ns:j",
    ]
    assert ids(lineage(engine, "s", seen)) == ["dataset:db:s", "dataset:db:z", "job:ns:j"]
    newest = replace(seen, newest=True)
    assert ids(lineage(engine, "s", newest)) == ["dataset:db:s"]


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

    newest = lineage(engine, "t", replace(seen, newest=True), direction=UP)

    assert ids(newest) == ["dataset:db:t", "dataset:db:a", "dataset:db:b", "job:ns:j"]
    assert "dataset:db:c" in ids(lineage(engine, "t", seen, direction=UP))


def test_separate_flows_of_a_job_are_not_mixed(engine: Engine) -> None:
    sinks = [columns("c", x=("a", "x")), columns("d", y=("b", "y"))]
    fill(engine, [run("COMPLETE", 1, "j", ["a", "b"], sinks)])

    assert ids(lineage(engine, "a", direction=DOWN)) == ["dataset:db:a", "dataset:db:c", "job:ns:j"]
    assert ids(lineage(engine, "d", direction=UP)) == ["dataset:db:d", "dataset:db:b", "job:ns:j"]


def test_source_named_only_by_an_edge_leads_to_its_sink(engine: Engine) -> None:
    fill(engine, [run("COMPLETE", 1, "j", ["a"], [columns("t", x=("hidden", "x"))])])

    assert ids(lineage(engine, "hidden", direction=DOWN)) == [
        "dataset:db:hidden",
        "dataset:db:t",
        "job:ns:j",
    ]
    assert ids(lineage(engine, "t", direction=UP)) == [
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

    assert ids(lineage(engine, "t", direction=UP)) == [
        "dataset:db:t",
        "dataset:db:a",
        "dataset:db:b",
        "job:ns:j",
    ]


def test_dataset_is_found_by_any_of_its_names(engine: Engine) -> None:
    fill(engine, bank())

    by_symlink = lineage(engine, "dataset:file:/lake:bank.balance", direction=UP)

    assert by_symlink == lineage(engine, "dataset:file:/lake/bank/balance", direction=UP)


def test_cut_hub_is_reported_as_incomplete(engine: Engine) -> None:
    fill(
        engine,
        [run("COMPLETE", number, f"j{number}", ["hub"], [f"t{number}"]) for number in range(50)],
    )

    answer = lineage(engine, "hub", direction=DOWN, most=21)

    assert len(answer["nodes"]) == 21
    assert (answer["complete"], answer["truncatedBy"]) == (False, "nodes")


@pytest.mark.parametrize(
    ("at", "runs"),
    [("12:00:00.9", False), ("12:00:01", True), ("12:00:08.9", True), ("12:00:09", False)],
)
def test_run_is_running_from_its_start_until_just_before_its_end(
    engine: Engine, at: str, runs: bool
) -> None:
    """The next run may start exactly at its end; of two consecutive runs only one is running."""
    fill(engine, [run("START", 1, "j", ["a"], ["t"]), run("COMPLETE", 9, "j")])

    found = ids(lineage(engine, "t", view(f"2026-11-20T{at}Z", live=True, past=True), direction=UP))

    assert ("job:ns:j" in found) == runs
