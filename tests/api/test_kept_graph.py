"""Lineage over HTTP follows every write."""

import orjson
from sqlalchemy import Engine

from fixtures.servers import client_of, serving
from strandline.store.ingest.following import follow_graph
from worlds.scenarios.bank import bank


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
        assert "strandline_graph_jobs_total" in client.get("/metrics").text
