"""Lineage over HTTP from memory equals that from the database and follows every write."""

from dataclasses import replace
from typing import Any

import orjson
from sqlalchemy import Engine

from fixtures.servers import SETTINGS, client_of, serving
from strandline.store.ingest.following import follow_graph
from worlds.scenarios.bank import bank
from worlds.scenarios.taking import fill

QUESTIONS: tuple[dict[str, Any], ...] = (
    {},
    {"direction": "upstream", "depth": 1},
    {"kind": "dataset"},
    {"format": "csv"},
    {"state": "running"},
    {"granularity": "column"},
)
OF_NODES: tuple[dict[str, Any], ...] = (
    {},
    {"direction": "downstream", "depth": 1},
    {"kind": "dataset"},
    {"state": "running"},
)


def test_answers_are_the_same_with_and_without_the_graph_in_memory(engine: Engine) -> None:
    fill(engine, bank())
    with engine.begin() as connection:
        follow_graph(connection)
    found = []
    for kept_bytes, from_memory in ((SETTINGS.graph_bytes, "12.0"), (0, None)):
        settings = replace(SETTINGS, graph_bytes=kept_bytes)
        with serving(engine, settings) as address, client_of(address, "") as client:
            named = [
                one["id"]
                for one in client.get("/api/v2/graph").json()["nodes"]
                if one["type"] == "dataset"
            ]
            asked = [
                client.get("/api/v2/lineage", params={"node": named[0]} | more)
                for more in QUESTIONS * 2
            ]
            asked += [
                client.get("/api/v2/lineage/nodes", params={"node": named[0]} | more)
                for more in OF_NODES * 2
            ]
            found.append(
                [
                    (one.status_code, one.headers["content-type"], timeless(one.content))
                    for one in asked
                ]
            )
            metrics = client.get("/metrics").text
        lines = dict(
            line.rsplit(" ", 1)
            for line in metrics.splitlines()
            if line.startswith("strandline_graph")
        )
        assert lines.get('strandline_graph_answers_total{source="memory"}') == from_memory
        assert (float(lines["strandline_graph_bytes"]) > 0) == bool(kept_bytes)

    assert found[0] == found[1]
    assert {status for status, *_ in found[0]} == {200}


def timeless(content: bytes) -> object:
    """An answer without the moment that it was given at."""
    if not content.startswith(b"{"):
        return content
    return {name: value for name, value in orjson.loads(content).items() if name != "asOf"}


def test_stored_event_is_in_the_next_answer(engine: Engine) -> None:
    with engine.begin() as connection:
        follow_graph(connection)
    event = orjson.loads(bank()[0].value)
    with serving(engine) as address, client_of(address, "") as client:
        for number in range(5):
            more = event | {
                "eventType": "COMPLETE",
                "run": {"runId": f"00000000-0000-4000-8000-{number:012d}"},
                "inputs": [{"namespace": "db", "name": "first"}],
                "outputs": [{"namespace": "db", "name": f"made_{number}"}],
            }
            assert client.post("/api/v1/lineage", json=more).status_code < 300
            found = client.get(
                "/api/v2/lineage", params={"node": "dataset:db:first", "direction": "downstream"}
            ).json()
            assert f"dataset:db:made_{number}" in {one["id"] for one in found["nodes"]}
        assert 'strandline_graph_answers_total{source="memory"} 5.0' in client.get("/metrics").text
