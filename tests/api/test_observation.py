"""Metrics, request ids, the access log and the line logged at shutdown."""

import json
import re
import time
from dataclasses import replace
from datetime import UTC, datetime
from io import StringIO

from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy import Engine
from starlette.testclient import TestClient

from fixtures.servers import SETTINGS
from fixtures.versions_server.events import LAKE, committed, started
from fixtures.versions_server.server import running
from strandline import __version__
from strandline.api.app import create_app
from strandline.core.versions.facts import GroupDeclared
from strandline.logs import make_log
from strandline.metrics import Metrics
from strandline.runtime.follower import Follower
from strandline.runtime.sampling import sample
from strandline.store.ingest.set_aside import keep_dead
from strandline.store.ingest.take import Record
from strandline.store.versions.fact_log import append, lock_head
from worlds.builders import event, store
from worlds.sample_events import run_event

Labels = dict[str, str]
EXPECTED_RUNS = (("running", 1), ("lost", 0), ("failed", 0))
HEX = re.compile(r"[0-9a-f]{16}")


def values(text: str, name: str) -> list[tuple[Labels, float]]:
    """Every sample of one name."""
    families = text_string_to_metric_families(text)
    return [
        (one.labels, one.value) for family in families for one in family.samples if one.name == name
    ]


def sampled(engine: Engine, follower: Follower | None = None) -> str:
    """The exposition of a server that has just looked at this store."""
    metrics = Metrics()
    sample(engine, follower or Follower(engine), metrics.store, time.time())
    return metrics.exposition().decode()


def test_answers_are_timed_by_their_declared_route(engine: Engine) -> None:
    with running(engine) as server:
        server.post(run_event())
        for name in ("a", "b"):
            server.client.get(f"/api/v1/namespaces/{name}")
        server.client.get("/api/v2/runs")
        server.client.get("/nothing/here")
        text = server.client.get("/metrics").text

    counts = {
        labels["route"]: number for labels, number in values(text, "strandline_http_seconds_count")
    }
    assert counts["/api/v1/lineage"] == 1
    assert counts["/api/v2/runs"] == 1
    assert counts["none"] >= 1
    assert not any("nothing" in route for route in counts)  # what is asked for makes no label


def test_rejected_events_are_counted_by_reason(engine: Engine) -> None:
    with running(engine) as server:
        server.client.post("/api/v1/lineage", content=b"{")
        server.client.post("/api/v1/lineage", json={})
        server.client.post("/api/v1/lineage/batch", json=[{}, run_event(), {}])
        text = server.client.get("/metrics").text

    refused = {
        labels["reason"]: number
        for labels, number in values(text, "strandline_rejected_events_total")
    }
    assert sum(refused.values()) == 4
    assert refused["invalid_event"] >= 3


def test_answers_carry_the_senders_request_id_or_a_new_one(engine: Engine) -> None:
    with running(engine) as server:
        given, odd, none = (
            server.client.get("/healthz", headers=headers).headers["x-request-id"]
            for headers in ({"X-Request-ID": "airflow-1/2"}, {"X-Request-ID": "two words"}, {})
        )

    assert given == "airflow-1/2"
    assert HEX.fullmatch(odd)
    assert HEX.fullmatch(none)
    assert odd != none


def logged(engine: Engine, access_log: str) -> list[tuple[str, int]]:
    """Path and status of each line of the access log of the same five requests."""
    lines = StringIO()
    app = create_app(
        engine, replace(SETTINGS, access_log=access_log), log=make_log("json", stream=lines)
    )
    with TestClient(app, base_url="http://127.0.0.1") as client:
        for path in (
            "/healthz",
            "/api/v2/runs?namespace=secret",
            "/api/v2/runs?odd=1",
            "/metrics",
            "/none%1B",
        ):
            client.get(path)
    told = [json.loads(line) for line in lines.getvalue().splitlines()]
    assert "secret" not in lines.getvalue()  # what is asked for is nobody's business
    return [(one["path"], one["status"]) for one in told if one["event"] == "request"]


def test_access_log_follows_its_setting(sqlite_engine: Engine) -> None:
    failed = [("/api/v2/runs", 400), ("/none%1B", 404)]

    assert logged(sqlite_engine, "off") == []
    assert logged(sqlite_engine, "errors") == failed
    assert logged(sqlite_engine, "all") == [("/api/v2/runs", 200), *failed]


def test_metrics_show_the_size_of_the_store(engine: Engine) -> None:
    now = time.time()
    store(
        engine,
        [
            event("START", 1),
            event("START", 2, job="done"),
            event("COMPLETE", 2, job="done", seconds=1),
        ],
    )
    with engine.begin() as connection:
        keep_dead(connection, Record(b"no event", datetime.now(UTC)), "for the test")

    text = sampled(engine)

    assert values(text, "strandline_dead_letters") == [({}, 1)]
    assert values(text, "strandline_unread_events") == [({}, 0)]
    assert values(text, "strandline_runs") == [({"state": state}, n) for state, n in EXPECTED_RUNS]
    assert values(text, "strandline_database_bytes")[0][1] > 100_000
    assert abs(values(text, "strandline_oldest_event_timestamp_seconds")[0][1] - now) < 120
    assert values(text, "strandline_build_info") == [({"version": __version__}, 1)]
    assert values(text, "strandline_resident_bytes")[0][1] > 10_000_000


def test_metrics_show_how_far_a_server_is_behind(engine: Engine) -> None:
    follower = Follower(engine)
    with follower.model():
        pass
    with engine.begin() as connection:
        facts = [
            GroupDeclared("bank", ((LAKE, "db.transfers"),), 1.0),
            GroupDeclared("shop", ((LAKE, "db.orders"),), 1.0),
        ]
        append(connection, lock_head(connection), facts, round((time.time() - 60) * 1_000_000))

    text = sampled(engine, follower)  # it asks the model last, which lets the follower follow

    assert values(text, "strandline_follower_behind_facts") == [({}, 2)]
    assert 60 <= values(text, "strandline_follower_delay_seconds")[0][1] < 180
    assert values(sampled(engine, follower), "strandline_follower_behind_facts") == [({}, 0)]


def test_metrics_show_the_barriers_of_each_group(engine: Engine) -> None:
    with running(engine) as server:
        server.group("bank", "db.transfers")
        server.post(started("credits", 0, ["db.transfers"], ["db.credits"], group="bank"))
        for barrier in (1, 2):
            read, made = {"db.transfers": f"t{barrier}"}, {"db.credits": f"c{barrier}"}
            server.post(committed("credits", 10 * barrier, barrier, read, made, group="bank"))
        text = sampled(engine)

    barriers = {
        (one["group"], one["kind"]): number
        for one, number in values(text, "strandline_group_barrier")
    }
    assert barriers["bank", "strong"] == 2
    assert barriers["bank", "newest"] >= 2


def test_metrics_show_how_far_each_export_target_is_behind(engine: Engine) -> None:
    with engine.begin() as connection:
        connection.exec_driver_sql("UPDATE numbers SET seq = 9 WHERE name = 'export_changes'")
        connection.exec_driver_sql(
            "INSERT INTO export_targets (name, cursor, failures) VALUES ('marquez', 4, 7)"
        )

    text = sampled(engine)

    assert values(text, "strandline_export_behind_changes") == [({"target": "marquez"}, 5)]
    assert values(text, "strandline_export_failures") == [({"target": "marquez"}, 7)]
