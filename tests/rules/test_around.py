"""The steps around a node: few boxes, nothing uncounted, and pages that show the rest."""

from typing import Any

from strandline.core.around import MOST_OF_STEP, graph_around, nodes_of_step

Json = dict[str, Any]


def job(number: int, distance: int = 1, **more: Any) -> Json:
    return {"id": f"job:ns:{number:03}", "type": "job", "distance": distance, **more}


def hub(readers: int) -> Json:
    """A table that one job writes and many read, each into a table of its own."""
    table = {"id": "t", "type": "dataset", "distance": 0}
    writer = {"id": "job:ns:writer", "type": "job", "distance": 1, "state": "COMPLETE"}
    nodes: list[Json] = [table, writer]
    edges: list[Json] = [{"source": "job:ns:writer", "target": "t", "rule": "lineage"}]
    for number in range(readers):
        state = {7: "FAIL", 8: "RUNNING"}.get(number, "COMPLETE")
        reader = job(
            number, state=state, startedAt=f"2026-11-20T12:{number // 60:02}:{number % 60:02}Z"
        )
        made = {"id": f"made:{number:03}", "type": "dataset", "distance": 1}
        nodes += [reader, made]
        edges += [
            {
                "source": "t",
                "target": reader["id"],
                "rule": "lineage",
                "lastSeen": reader["startedAt"],
            },
            {"source": reader["id"], "target": made["id"], "rule": "lineage"},
        ]
    return {"nodes": nodes, "edges": edges, "complete": True}


def ids_of(answer: Json, step: int) -> list[str]:
    return [node["id"] for node in answer["nodes"] if node["step"] == step]


def test_hub_is_shown_by_few_boxes_and_the_number_of_the_rest() -> None:
    found = graph_around(hub(400), "t")

    readers = ids_of(found, 1)
    assert len(readers) == MOST_OF_STEP
    assert readers[:3] == ["job:ns:007", "job:ns:008", "job:ns:399"]
    rest = next(node for node in found["nodes"] if node["id"] == "rest:1")
    assert (rest["name"], rest["nodes"], rest["types"]) == ("389 more", 389, {"job": 389})
    assert rest["states"] == {"COMPLETE": 389}
    assert found["totals"] == {"-1": 1, "0": 1, "1": 400, "2": 400}
    assert ids_of(found, -1) == ["job:ns:writer"]


def test_rest_counts_jobs_by_their_latest_runs() -> None:
    """The last run failed, and what the job read is known from the run before it."""
    whole = hub(400)
    late_failures = {f"job:ns:{number:03}" for number in range(20, 40)}
    for edge in whole["edges"]:
        if edge["target"] in late_failures:
            edge["latestRun"] = {"runId": "r", "state": "FAIL", "endedAt": None}

    found = graph_around(whole, "t")
    rest = next(node for node in found["nodes"] if node["id"] == "rest:1")
    assert rest["states"] == {"FAIL": 10, "RUNNING": 1, "COMPLETE": 378}
    page = nodes_of_step(whole, "t", 1, 11, 3)["items"]
    assert [node["latestRun"]["state"] for node in page] == ["FAIL"] * 3


def test_other_input_of_a_reading_job_is_not_downstream() -> None:
    whole = hub(1)
    whole["nodes"].append({"id": "other", "type": "dataset", "distance": 2})
    whole["edges"].append({"source": "other", "target": "job:ns:000", "rule": "lineage"})

    steps = {node["id"]: node["step"] for node in graph_around(whole, "t")["nodes"]}
    assert (steps["t"], steps["job:ns:000"], steps["made:000"]) == (0, 1, 2)
    assert steps["other"] == 0


def test_boxes_of_the_next_step_lie_beside_those_that_are_shown() -> None:
    found = graph_around(hub(400), "t")

    shown = {id_.removeprefix("job:ns:") for id_ in ids_of(found, 1)} - {"rest:1"}
    assert {id_.removeprefix("made:") for id_ in ids_of(found, 2)} - {"rest:2"} == shown


def test_what_a_shown_job_writes_is_shown_before_what_else_it_reads() -> None:
    answer = hub(30)
    for number in range(30):  # what another job makes of the hub
        other = f"made:{(number + 10) % 30:03}"
        answer["edges"].append({"source": other, "target": f"job:ns:{number:03}"})

    found = graph_around(answer, "t")

    shown = {id_.removeprefix("job:ns:") for id_ in ids_of(found, 1)} - {"rest:1"}
    assert {id_.removeprefix("made:") for id_ in ids_of(found, 2)} - {"rest:2"} == shown


def test_edges_to_a_rest_are_joined_and_counted() -> None:
    found = graph_around(hub(400), "t")

    ends = {(edge["source"], edge["target"]): edge for edge in found["edges"]}
    assert ends["t", "rest:1"] == {
        "source": "t", "target": "rest:1", "edges": 389, "rule": "lineage", "lastSeen": "2026-11-20T12:06:30Z"
    }  # fmt: skip
    assert ends["rest:1", "rest:2"]["edges"] == 389
    assert "edges" not in ends["t", "job:ns:007"]
    assert sum(edge.get("edges", 1) for edge in found["edges"]) == 801


def test_pages_of_a_step_have_each_of_its_nodes_once() -> None:
    whole = hub(400)
    rest = next(node for node in graph_around(whole, "t")["nodes"] if node["id"] == "rest:1")
    found = ids_of(graph_around(whole, "t"), 1)[:-1]
    cursor = rest["nextCursor"]
    while cursor is not None:
        page = nodes_of_step(whole, "t", 1, int(cursor), 50)
        found += [node["id"] for node in page["items"]]
        assert page["total"] == 400
        cursor = page["nextCursor"]
    assert sorted(found) == [f"job:ns:{number:03}" for number in range(400)]


def test_pinned_nodes_are_shown_in_any_case() -> None:
    pinned = {f"job:ns:{number:03}" for number in range(20)}
    found = graph_around(hub(400), "t", pinned)

    assert set(ids_of(found, 1)) == pinned | {"rest:1"}


def test_small_graph_is_shown_whole() -> None:
    whole = hub(MOST_OF_STEP)

    assert sorted(node["id"] for node in graph_around(whole, "t")["nodes"]) == sorted(
        node["id"] for node in whole["nodes"]
    )


def test_table_that_a_job_reads_and_writes_is_shown_upstream() -> None:
    answer = {
        "nodes": [{"id": "t", "type": "dataset", "distance": 0}, job(1)],
        "edges": [
            {"source": "t", "target": "job:ns:001"},
            {"source": "job:ns:001", "target": "t"},
        ],
    }
    found = graph_around(answer, "t")

    assert [(node["id"], node["step"]) for node in found["nodes"]] == [("job:ns:001", -1), ("t", 0)]
    assert len(found["edges"]) == 2
