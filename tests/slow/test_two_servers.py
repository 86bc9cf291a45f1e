"""Two servers on one PostgreSQL: each takes events and answers for both, and what is due is done once."""

import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from fixtures.contract_servers.server import ContractServer, Fault
from fixtures.servers import bearer
from fixtures.versions_server.process import Served, served
from fixtures.waiting import wait_until
from worlds.builders import dataset, event

pytestmark = pytest.mark.postgres

REVOKED_SECONDS = 5  # as docs/explanation/security-model.md promises


@pytest.fixture
def servers(own_postgres_url: str, tmp_path: Path) -> Iterator[Sequence[Served]]:
    with served(own_postgres_url, tmp_path, 2) as servers:
        yield servers


def post(server: Served, body: dict[str, Any]) -> int:
    return server.client.post("/api/v1/lineage", json=body).status_code


def test_events_of_both_are_in_the_answers_of_both(servers: Sequence[Served]) -> None:
    one, other = servers
    first = event("COMPLETE", 1, "first", 0, [dataset("a")], [dataset("b")])
    second = event("COMPLETE", 2, "second", 1, [dataset("b")], [dataset("c")])

    for server, body in ((one, first), (other, second), (other, first), (one, second)):
        assert post(server, body) == 201

    question = "/api/v2/lineage?node=dataset:hive://lake:a&direction=downstream"
    answers = [server.client.get(question).json() for server in servers]
    assert answers[0]["nodes"] == answers[1]["nodes"]
    assert [node["name"] for node in answers[0]["nodes"] if node["type"] == "dataset"] == list(
        "abc"
    )
    for server in servers:
        assert len(server.client.get("/api/v2/events").json()["items"]) == 2


def test_key_that_is_revoked_at_one_is_refused_by_the_other(
    own_postgres_url: str, tmp_path: Path
) -> None:
    file = tmp_path / "admin-key"
    flags = ("--auth", "required", "--admin-key-file", str(file))
    with served(own_postgres_url, tmp_path, 2, *flags) as (one, other):
        admin = bearer(file.read_text().strip())
        wanted = {"name": "reader", "scopes": ["read"], "namespaces": ["*"]}
        reader = bearer(one.client.post("/api/v2/keys", json=wanted, headers=admin).json()["key"])
        assert other.client.get("/api/v2/jobs", headers=reader).status_code == 200

        assert one.client.delete("/api/v2/keys/reader", headers=admin).status_code == 204
        revoked = time.monotonic()
        while other.client.get("/api/v2/jobs", headers=reader).status_code != 401:
            assert time.monotonic() - revoked < REVOKED_SECONDS


def has_got(receiver: ContractServer, count: int) -> bool:
    return len(receiver.asked) >= count


def test_alert_is_sent_once(own_postgres_url: str, tmp_path: Path) -> None:
    """Both look for alerts each second; a second alert proves that both went on looking."""
    receiver = ContractServer()
    receiver.fault = lambda _: Fault(200)
    target = f"http://127.0.0.1:{receiver.port}"
    flags = ("--alert-targets", target, "--alert-seconds", "1")
    with served(own_postgres_url, tmp_path, 2, *flags) as servers:
        now = datetime.now(UTC).isoformat()
        for number, server in enumerate(servers, 1):
            failed = event("FAIL", number, f"job_{number}") | {"eventTime": now}
            assert post(server, failed) == 201
            wait_until(partial(has_got, receiver, number))
    receiver.close()

    texts = [asked.body["text"].split(" (run ")[0] for asked in receiver.asked]
    assert texts == ["job job_1 failed", "job job_2 failed"]
