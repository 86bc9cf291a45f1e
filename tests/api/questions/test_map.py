"""The map of all lineage and the steps around a node, over REST."""

import httpx
from sqlalchemy import Engine

from worlds.scenarios.plain import run
from worlds.scenarios.taking import fill


def test_map_is_answered_and_opened_over_rest(server: httpx.Client) -> None:
    first = server.get("/lineage/map").json()
    boxes = {node["id"] for node in first["nodes"]}
    assert sum(node["datasets"] for node in first["nodes"]) == first["totals"]["datasets"]
    assert {edge[end] for edge in first["edges"] for end in ("source", "target")} <= boxes

    opened = server.get("/lineage/map", params={"under": "namespace:db"}).json()
    assert "dataset:db:orders" in {node["id"] for node in opened["nodes"]}
    assert opened["totals"] == first["totals"]
    assert server.get("/lineage/map", params={"under": "namespace:none"}).status_code == 404
    assert server.get("/lineage/map", params={"format": "csv"}).text.startswith("source,target")


def test_steps_around_a_node_are_its_lineage_with_steps(server: httpx.Client) -> None:
    found = server.get("/lineage", params={"around": "rows"}).json()
    plain = server.get("/lineage", params={"node": "rows", "depth": 1}).json()

    assert {node["id"] for node in found["nodes"]} == {node["id"] for node in plain["nodes"]}
    steps = {node["id"]: node["step"] for node in found["nodes"]}
    assert steps["dataset:db:rows"] == 0
    assert (steps["job:ns:clean"], steps["dataset:db:orders"]) == (-1, -2)
    assert steps["job:ns:count"] == 1
    page = server.get("/lineage", params={"around": "rows", "step": 1, "limit": 1}).json()
    assert (page["items"][0]["step"], page["total"]) == (1, found["totals"]["1"])


def test_job_around_a_table_has_its_latest_run_and_other_inputs_are_not_downstream(
    own_server: httpx.Client, own_world: Engine
) -> None:
    fill(
        own_world,
        [
            run("COMPLETE", 6, "join", ["rows", "others"], ["joined"]),
            run("FAIL", 7, "count", ["rows"], [], run_id="2"),
        ],
    )

    nodes = own_server.get("/lineage", params={"around": "rows"}).json()["nodes"]
    by_id = {node["id"]: node for node in nodes}
    assert by_id["job:ns:count"]["latestRun"]["state"] == "FAIL"
    assert by_id["job:ns:count"]["state"] == "COMPLETE"
    assert by_id["job:ns:join"].get("latestRun") is None
    assert by_id["dataset:db:joined"]["step"] == 2
    assert "dataset:db:others" not in by_id


def test_question_for_steps_that_cannot_be_answered_says_why(server: httpx.Client) -> None:
    for asked, reason in (
        ({"around": "rows", "node": "rows"}, "parameter around replaces node: give one of them"),
        ({"node": "rows", "pin": "orders"}, "parameter pin needs around"),
        ({"node": "rows", "step": "0"}, "parameter step needs around"),
        ({"around": "rows", "granularity": "column"}, "around needs granularity=table"),
        ({}, "parameter node is missing"),
    ):
        refused = server.get("/lineage", params=asked)
        assert refused.status_code == 400
        assert reason in refused.json()["detail"]
