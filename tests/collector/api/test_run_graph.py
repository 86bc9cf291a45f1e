"""The runs that a run stands on, run by run."""

from typing import Any

import httpx
from sqlalchemy import Engine

from scenarios.plain import run
from scenarios.taking import fill


def graph(client: httpx.Client, run_id: str, **given: Any) -> dict[str, Any]:
    found: dict[str, Any] = client.get("/runs/lineage", params={"runId": run_id} | given).json()
    return found


def test_a_run_stands_on_the_last_run_that_had_written_before_it_began(client: httpx.Client, engine: Engine) -> None:
    """What was written later, and what a failed run would have written, is none of its sources."""
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
    assert [(edge["source"], edge["target"], edge["dataset"], edge["rule"]) for edge in whole["edges"]] == [
        ("run:load-2", "run:clean-1", "dataset:db:a", "lastWriter"),
        ("run:clean-1", "run:report-1", "dataset:db:b", "lastWriter"),
    ]
    assert whole["nodes"][1]["inputsOfUnknownRuns"] == ["dataset:db:unknown"]
    assert (whole["complete"], near["complete"], near["hidden"]) == (True, False, {"nodes": 1})
    assert client.get("/runs/lineage", params={"runId": "report-1", "format": "dot"}).text.startswith("digraph")
    assert client.get("/runs/lineage", params={"runId": "nobody"}).status_code == 404
