"""Readers: bounds, waiting, leases, certificates, rejections, and cuts without barriers."""

import json
import socket
import threading
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import Any

import pytest

from fixtures.servers import client_of, serving
from fixtures.versions_server.events import LAKE, appended, committed, started
from fixtures.versions_server.server import Server, tables
from strandline.api.routers import versions
from strandline.core.openlineage.times import micros_of
from strandline.core.versions.certificates import verify
from strandline.questions.version_answers import tables_of
from strandline.store.versions.leases import lease_pins


@pytest.fixture
def chain(server: Server) -> Server:
    """A -> b -> c at barriers 1 and 2; c lacks 2."""
    server.post(
        started("to_a", 0, [], ["db.a"], group="d"),
        started("to_b", 0, ["db.a"], ["db.b"], group="d"),
        started("to_c", 0, ["db.b"], ["db.c"], group="d"),
        committed("to_a", 10, 1, {}, {"db.a": "a1"}, group="d"),
        committed("to_b", 12, 1, {"db.a": "a1"}, {"db.b": "b1"}, group="d"),
        committed("to_c", 15, 1, {"db.b": "b1"}, {"db.c": "c1"}, group="d"),
        committed("to_a", 20, 2, {}, {"db.a": "a2"}, group="d", parents={"db.a": "a1"}),
        committed("to_b", 23, 2, {"db.a": "a2"}, {"db.b": "b2"}, group="d", parents={"db.b": "b1"}),
    )
    return server


def test_staleness_bound_gives_an_answer_or_an_error_at_once(chain: Server) -> None:
    assert chain.versions("db.c", maxLagSeconds=30_000_000)["tables"][0]["barrier"] == 1
    problem = chain.versions("db.c", maxLagSeconds=1, status=409)

    assert problem["code"] == "lag"
    assert "s behind, more than 1 s" in problem["detail"]


def test_timed_out_wait_names_the_blocking_job(chain: Server) -> None:
    problem = chain.versions("db.a", waitForBarrier=2, timeoutSeconds=0.2, status=504)

    assert problem["code"] == "waited"
    assert "to_c: running, is at barrier 1, barrier 2 is next" in problem["detail"]


def test_waiting_reader_is_answered_when_the_barrier_completes(chain: Server) -> None:
    answers: list[dict[str, int]] = []
    reader = threading.Thread(
        target=lambda: answers.append(chain.barriers("db.a", "db.c", waitForBarrier=2))
    )
    reader.start()
    chain.post(
        committed("to_c", 25, 2, {"db.b": "b2"}, {"db.c": "c2"}, group="d", parents={"db.c": "c1"})
    )
    reader.join(30)

    assert answers == [{"db.a": 2, "db.c": 2}]


def test_lease_starts_when_the_answer_is_given(
    chain: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers: list[dict[str, Any]] = []
    looked, look = threading.Event(), tables_of

    def looking(*asked: Any) -> Any:
        looked.set()
        return look(*asked)

    monkeypatch.setattr(versions, "tables_of", looking)
    how = {"waitForBarrier": 2, "leaseSeconds": 60}
    reader = threading.Thread(target=lambda: answers.append(chain.versions("db.a", "db.c", **how)))
    reader.start()
    assert looked.wait(30)
    before = micros_of(datetime.now(UTC))
    chain.post(
        committed("to_c", 25, 2, {"db.b": "b2"}, {"db.c": "c2"}, group="d", parents={"db.c": "c1"})
    )
    reader.join(30)

    assert (
        micros_of(datetime.fromisoformat(answers[0]["lease"]["expiresAt"])) >= before + 60_000_000
    )


def test_waiting_and_disconnected_readers_hold_no_thread(chain: Server) -> None:
    """All requests share 40 threads."""
    body = json.dumps(
        {"tables": tables("db.a"), "waitForBarrier": 9, "timeoutSeconds": 3600}
    ).encode()
    head = f"POST /api/v2/versions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    with serving(chain.engine) as address, ExitStack() as waiting, client_of(address, "") as client:
        where = client.base_url.host, client.base_url.port or 80
        for _ in range(60):
            waiting.enter_context(socket.create_connection(where)).sendall(head + body)
        beside = [
            client.get(path).status_code
            for path in ("/api/v2/datasets", "/readyz", "/api/v2/overview")
        ]
        waiting.close()
        after = [
            client.get(path).status_code
            for path in ("/api/v2/datasets", "/readyz", "/api/v2/overview")
        ]

    assert beside == after == [200] * 3


def test_leased_answer_carries_a_verifiable_certificate(chain: Server) -> None:
    answer = chain.versions("db.c", "db.a", leaseSeconds=60)
    certificate = answer["certificate"]

    assert verify(certificate) == []
    assert [(entry["name"], entry["snapshotId"]) for entry in certificate["entries"]] == [
        ("db.a", "a1"),
        ("db.b", "b1"),
        ("db.c", "c1"),
    ]
    certificate["entries"][1]["inputs"][0]["snapshotId"] = "a2"
    assert verify(certificate) == [
        "digest: does not belong to these entries",
        "db.a: input of db.b is a2, the version has a1",
    ]


def test_lease_pins_its_snapshots_until_it_ends(chain: Server) -> None:
    lease = chain.versions("db.b", leaseSeconds=60, holder="report")["lease"]
    kept = chain.get("/api/v2/expirable?namespace=iceberg%3A%2F%2Flake&name=db.b")["kept"]

    assert {"snapshotId": "b1", "reasons": [*kept[0]["reasons"]]} == kept[0]
    assert f"lease {lease['id']} of report" in kept[0]["reasons"]

    renewed = chain.client.put(f"/api/v2/leases/{lease['id']}", json={"leaseSeconds": 120}).json()
    assert renewed["id"] == lease["id"]
    assert renewed["expiresAt"] > lease["expiresAt"]
    with chain.engine.connect() as connection:
        after_the_first = micros_of(datetime.fromisoformat(lease["expiresAt"])) + 1
        pins = lease_pins(connection, (LAKE, "db.b"), after_the_first)
    assert [(pin.snapshot, pin.reason) for pin in pins] == [
        ("b1", f"lease {lease['id']} of report")
    ]
    assert chain.client.put(f"/api/v2/leases/{lease['id']}").status_code == 200
    chain.send("DELETE", f"/api/v2/leases/{lease['id']}")
    assert chain.client.put(f"/api/v2/leases/{lease['id']}", json={}).status_code == 404


def test_expired_lease_cannot_be_renewed(chain: Server) -> None:
    lease = chain.versions("db.b", leaseSeconds=0.001)["lease"]
    answer = chain.client.put(f"/api/v2/leases/{lease['id']}", json={"leaseSeconds": 60})

    assert (answer.status_code, answer.json()["code"]) == (409, "expired")


def test_tables_of_two_groups_get_weak_answers_only(chain: Server) -> None:
    chain.post(
        started("other", 0, [], ["db.o"], group="e"),
        committed("other", 10, 7, {}, {"db.o": "o7"}, group="e"),
    )

    assert chain.versions("db.a", "db.o", consistency="strong", status=409)["code"] == "groups"
    assert chain.barriers("db.a", "db.o", consistency="weak") == {"db.a": 2, "db.o": 7}


def test_table_of_a_new_stream_answers_before_the_others_have_its_barrier(chain: Server) -> None:
    chain.post(
        started("late", 30, ["db.a"], ["db.late"], group="d"),
        committed("late", 31, 2, {"db.a": "a2"}, {"db.late": "l2"}, group="d"),
    )

    assert chain.barriers("db.late") == {"db.late": 2}
    assert chain.barriers("db.late", consistency="weak") == {"db.late": 2}
    assert chain.barriers("db.a") == {"db.a": 1}

    chain.post(committed("to_c", 35, 2, {"db.b": "b2"}, {"db.c": "c2"}, group="d"))

    assert chain.barriers("db.late", "db.c") == {"db.late": 2, "db.c": 2}


def test_only_named_groups_are_listed(chain: Server) -> None:
    chain.post(appended("batch", 40, "db.lookup", "l1"))
    body = {"namespace": "iceberg://lake", "name": "db.lookup", "barrier": 1}
    assert chain.ask("/rollbacks", body, 409)["code"]  # of a table of no group

    assert [one["name"] for one in chain.get("/api/v2/groups")["groups"]] == ["d"]


def test_cut_without_barriers_is_the_greatest_consistent_one(server: Server) -> None:
    server.post(
        appended("w", 1, "db.s", "s1"),
        appended("w", 2, "db.s", "s2", "s1"),
        appended("w", 3, "db.s", "s3", "s2"),
        committed("q", 4, 1, {"db.s": "s2"}, {"db.t": "t1"}, group=None, aligned=False),
        committed("r", 5, 1, {"db.s": "s1"}, {"db.u": "u1"}, group=None, aligned=False),
        committed(
            "r",
            6,
            2,
            {"db.s": "s2"},
            {"db.u": "u2"},
            group=None,
            aligned=False,
            parents={"db.u": "u1"},
        ),
        committed(
            "r",
            7,
            3,
            {"db.s": "s3"},
            {"db.u": "u3"},
            group=None,
            aligned=False,
            parents={"db.u": "u2"},
        ),
    )
    answer = server.versions("db.s", "db.t", "db.u", consistency="cut")

    assert {one["name"]: one["snapshotId"] for one in answer["tables"]} == {
        "db.s": "s2",
        "db.t": "t1",
        "db.u": "u2",
    }
    compared = server.ask("/compare", {"tables": tables("db.s", "db.t", "db.u")})
    told = ("namespace", "name", "snapshotId", "observed")
    assert compared["versions"]["cut"]["tables"] == [
        {name: one[name] for name in told} for one in answer["tables"]
    ]


def test_parts_of_a_delay_add_up_and_name_the_bottleneck(chain: Server) -> None:
    answer = chain.get("/api/v2/delays?namespace=iceberg%3A%2F%2Flake&name=db.c&barrier=1")

    assert answer["delay"]["seconds"] == 5
    assert sum(part["seconds"] for part in answer["delay"]["parts"]) == 5
    assert answer["delay"]["bottleneck"]["job"] == {"namespace": "default", "name": "to_c"}
    assert answer["delay"]["bottleneck"]["kind"] == "wait"
    assert (answer["staleness"]["barrier"], answer["staleness"]["job"]) == (
        2,
        {"namespace": "default", "name": "to_c"},
    )


def test_auto_answers_strongly_or_with_a_cut_and_the_reason(chain: Server) -> None:
    chain.post(appended("batch", 40, "db.lookup", "l1"))
    strong = chain.versions("db.a", "db.c")
    cut = chain.versions("db.a", "db.lookup", leaseSeconds=60)

    assert (strong["consistency"], "reason" in strong) == ("strong", False)
    assert strong == chain.versions("db.a", "db.c", consistency="strong") | {
        "tables": strong["tables"]
    }
    assert cut["consistency"] == "cut"
    assert [(one["snapshotId"], one["barrier"]) for one in cut["tables"]] == [
        ("a2", None),
        ("l1", None),
    ]
    assert cut["reason"].startswith("db.lookup: untracked: no job that carries barriers writes it")
    assert (cut["lease"]["id"] != "", cut["certificate"]) == (True, None)


def test_a_cut_has_no_lag_and_no_barrier_to_wait_for(chain: Server) -> None:
    cut = {"consistency": "cut"}
    assert chain.versions("db.a", **cut, maxLagSeconds=9, status=409)["code"] == "lag"
    waits = chain.versions("db.a", **cut, waitForBarrier=1, status=400)
    assert waits["detail"] == "a cut has no barriers: waitForBarrier takes auto, strong or weak"


def test_invalid_consistency_is_rejected_with_the_valid_values(chain: Server) -> None:
    question = {"tables": [{"namespace": LAKE, "name": "db.a"}], "consistency": "strng"}

    answer = chain.client.post("/api/v2/versions", json=question)

    assert answer.status_code == 400
    assert answer.json()["detail"].endswith("consistency is not one of auto, strong, weak, cut")
