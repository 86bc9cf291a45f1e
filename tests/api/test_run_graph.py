"""Lineage of runs: the runs that a run depends on."""

from typing import Any

import httpx
from sqlalchemy import Engine

from worlds.scenarios.bank import FACET, bank, run_id
from worlds.scenarios.plain import dataset, run
from worlds.scenarios.taking import fill


def graph(client: httpx.Client, run_id: str, **given: Any) -> dict[str, Any]:
    found: dict[str, Any] = client.get("/runs/lineage", params={"runId": run_id} | given).json()
    return found


def test_run_depends_on_the_last_writer_that_ended_before_it_started(
    client: httpx.Client, engine: Engine
) -> None:
    """Later writes and the outputs of failed runs are not its sources."""
    fill(
        engine,
        [
            run("COMPLETE", 1, "load", [], ["a"], run_id="1"),
            run("COMPLETE", 2, "load", [], ["a"], run_id="2"),
            run("FAIL", 3, "load", [], ["a"], run_id="3"),
            run("START", 4, "clean", ["a", "unknown"], ["b"]),
            run("COMPLETE", 5, "load", [], ["a"], run_id="4"),
            run("COMPLETE", 6, "clean", ["a", "unknown"], ["b"]),
            run("START", 7, "report", ["b"], ["c"]),
        ],
    )

    whole, near = graph(client, "report-1"), graph(client, "report-1", depth=0)

    assert [node["id"] for node in whole["nodes"]] == ["run:report-1", "run:clean-1", "run:load-2"]
    assert [
        (edge["source"], edge["target"], edge["dataset"], edge["rule"]) for edge in whole["edges"]
    ] == [
        ("run:load-2", "run:clean-1", "dataset:db:a", "lastWriter"),
        ("run:clean-1", "run:report-1", "dataset:db:b", "lastWriter"),
    ]
    assert whole["nodes"][1]["inputsOfUnknownRuns"] == ["dataset:db:unknown"]
    assert (whole["complete"], near["complete"], near["hidden"]) == (True, False, {"nodes": 1})
    assert client.get(
        "/runs/lineage", params={"runId": "report-1", "format": "dot"}
    ).text.startswith("digraph")
    assert client.get("/runs/lineage", params={"runId": "nobody"}).status_code == 404


def test_newest_snapshot_that_a_streaming_query_read_counts(
    client: httpx.Client, engine: Engine
) -> None:
    """The ids are not compared as text; at an earlier moment, the one read by then counts."""
    fill(engine, bank(barriers=10))
    for barrier, snapshot in ((1, "9"), (2, "10")):
        read = {"strandline_snapshot": FACET | {"snapshotId": snapshot}}
        ends = {"strandline_barrier": FACET | {"barrierId": barrier, "engine": "spark"}}
        made = run(
            "COMPLETE",
            barrier,
            "load",
            [],
            [dataset("a") | {"outputFacets": read}],
            run_id=snapshot,
        )
        read_it = run(
            "RUNNING",
            barrier + 2,
            "copy",
            [dataset("a") | {"inputFacets": read}],
            ["b"],
            of_run=ends,
        )
        fill(engine, [made, read_it])

    whole = graph(client, run_id("balance"))
    before = graph(client, run_id("balance"), asOf="2026-11-20T12:00:08.5Z")

    assert [edge["source"] for edge in graph(client, "copy-1")["edges"]] == ["run:load-10"]
    assert {edge["snapshotId"] for edge in whole["edges"]} == {"110", "210", "310"}
    assert {edge["snapshotId"] for edge in before["edges"]} == {"104", "204", "304"}
    assert {node["state"] for node in whole["nodes"]} == {"COMPLETE"}
    assert {node["state"] for node in before["nodes"]} == {"RUNNING"}
    assert before["asOf"] == "2026-11-20T12:00:08.500000Z"
    early = client.get(
        "/runs/lineage", params={"runId": run_id("report"), "asOf": "2026-11-20T12:00:08.5Z"}
    )
    assert early.status_code == 404
    assert (
        "did not exist yet at 2026-11-20T12:00:08.500000Z: its first event is of "
        in early.json()["detail"]
    )


def test_stopped_streaming_query_still_counts_as_a_source(
    client: httpx.Client, engine: Engine
) -> None:
    streaming = {"jobType": FACET | {"processingType": "STREAMING", "integration": "SPARK"}}
    fill(
        engine,
        [
            run("START", 1, "stream", [], ["a"], of_job=streaming),
            run("START", 1.5, "batch", [], ["b"]),
            run("ABORT", 2, "stream", [], ["a"], of_job=streaming),
            run("ABORT", 2.5, "batch", [], ["b"]),
            run("COMPLETE", 3, "report", [dataset("a"), dataset("b")], ["c"]),
        ],
    )

    found = graph(client, "report-1")

    assert [(edge["source"], edge["dataset"]) for edge in found["edges"]] == [
        ("run:stream-1", "dataset:db:a")
    ]
    assert found["nodes"][0]["inputsOfUnknownRuns"] == ["dataset:db:b"]
