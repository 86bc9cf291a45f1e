"""OpenLineage over HTTP: storage and answers to the sender."""

import gzip
import json
from collections.abc import Iterator
from dataclasses import replace

import httpx
import pytest
from sqlalchemy import Engine

from fixtures.servers import SETTINGS, client_of, post, problem, serving
from worlds.builders import counts
from worlds.sample_events import as_bytes, run_event


@pytest.fixture
def client(engine: Engine) -> Iterator[httpx.Client]:
    with serving(engine) as address, client_of(address, "") as client:
        yield client


def stored(engine: Engine) -> int:
    return counts(engine, "event_keys")["event_keys"]


def test_event_is_stored_before_the_answer_is_sent(client: httpx.Client, engine: Engine) -> None:
    answer = client.post("/api/v1/lineage", json=run_event())

    assert (answer.status_code, answer.content) == (201, b"")
    assert stored(engine) == 1


def test_repeated_event_succeeds_and_changes_nothing(client: httpx.Client, engine: Engine) -> None:
    answers = [
        client.post("/api/v1/lineage", content=as_bytes(run_event())).status_code for _ in range(3)
    ]

    assert answers == [201, 201, 201]
    assert stored(engine) == 1


def test_invalid_event_is_rejected_with_the_path_of_the_fault(
    client: httpx.Client, engine: Engine
) -> None:
    answer = client.post("/api/v1/lineage", json=run_event(outputs=[{"namespace": "db"}]))

    assert problem(answer) == (
        422,
        "invalid_event",
        "not an OpenLineage event: outputs[0].name: Field required",
    )
    assert answer.json()["path"] == "outputs[0].name"
    assert stored(engine) == 0


@pytest.mark.parametrize("headers", [{"Content-Encoding": "gzip"}, {}], ids=["said", "not said"])
def test_gzip_is_read_with_and_without_its_header(
    client: httpx.Client, engine: Engine, headers: dict[str, str]
) -> None:
    answer = client.post(
        "/api/v1/lineage", content=gzip.compress(as_bytes(run_event())), headers=headers
    )

    assert answer.status_code == 201
    assert stored(engine) == 1


def test_a_chunked_body_is_read(client: httpx.Client, engine: Engine) -> None:
    body = as_bytes(run_event())

    answer = client.post("/api/v1/lineage", content=iter([body[:10], body[10:]]))

    assert answer.status_code == 201


def test_an_event_of_32_mebibytes_is_stored(client: httpx.Client, engine: Engine) -> None:
    plan = {"spark.logicalPlan": {"plan": "x" * (32 * 2**20 - 1000)}}

    answer = client.post("/api/v1/lineage", json=run_event(run={"runId": "1", "facets": plan}))

    assert answer.status_code == 201
    assert stored(engine) == 1


def test_a_good_batch_gets_204(client: httpx.Client, engine: Engine) -> None:
    answer = client.post(
        "/api/v1/lineage/batch", json=[run_event(str(number)) for number in range(50)]
    )

    assert (answer.status_code, answer.content) == (204, b"")
    assert stored(engine) == 50


def test_partly_valid_batch_reports_each_event(client: httpx.Client, engine: Engine) -> None:
    answer = client.post(
        "/api/v1/lineage/batch", json=[run_event("1"), {"job": 7}, run_event("2"), 42]
    )

    document = answer.json()
    assert answer.status_code == 200
    assert document["summary"] == {
        "received": 4,
        "successful": 2,
        "failed": 2,
        "retriable": 0,
        "non_retriable": 2,
    }
    assert [(one["index"], one["status"]) for one in document["results"]] == [
        (0, 201),
        (1, 422),
        (2, 201),
        (3, 422),
    ]
    assert stored(engine) == 2


DEEP = b"[" * 1_100 + b"]" * 1_100
ODD_ELEMENTS = {
    "half a surrogate": (as_bytes(run_event(job="\ud800")), 201),
    "not a number": (
        as_bytes(run_event("3")).replace(b'"inputs"', b'"x": [NaN, -Infinity], "inputs"'),
        201,
    ),
    "nested too deeply": (
        as_bytes(run_event("3")).replace(b'"inputs"', b'"x": ' + DEEP + b', "inputs"'),
        422,
    ),
    "a control character": (as_bytes(run_event("3")).replace(b"load", b"lo\nad"), 400),
    "a bad escape": (as_bytes(run_event("3")).replace(b"load", b"lo\\xad"), 400),
    "a comma too many": (b'{"job": {},}', 400),
    "no UTF-8": (as_bytes(run_event("3")).replace(b"load", b"lo\xffad"), 400),
    "nothing": (b" ", 400),
}


@pytest.mark.parametrize(("odd", "status"), ODD_ELEMENTS.values(), ids=ODD_ELEMENTS)
def test_odd_batch_element_does_not_affect_the_others(
    client: httpx.Client, engine: Engine, odd: bytes, status: int
) -> None:
    body = b" [%s, %s,\n%s] " % (as_bytes(run_event("1")), odd, as_bytes(run_event("2")))

    answer = client.post("/api/v1/lineage/batch", content=body)

    assert stored(engine) == (3 if status == 201 else 2)
    if status == 201:
        assert answer.status_code == 204
    else:
        assert [one["status"] for one in answer.json()["results"]] == [201, 422, 201]
    assert client.post("/api/v1/lineage", content=odd).status_code == status


def test_malformed_json_gets_400_with_the_byte_position(client: httpx.Client) -> None:
    cut, wrong = (
        client.post("/api/v1/lineage", content=body) for body in (b'{"job": {', b'{"job": x}')
    )

    assert problem(cut) == (
        400,
        "invalid_body",
        "not an OpenLineage event: Input data was truncated (byte 9)",
    )
    assert problem(wrong)[:2] == (400, "invalid_body")
    assert "(byte 8)" in wrong.json()["detail"]


def test_a_large_batch_is_stored_like_a_small_one(client: httpx.Client, engine: Engine) -> None:
    large = {"x": {"text": "x" * 2_000_000}}

    answer = client.post(
        "/api/v1/lineage/batch", json=[run_event(run={"runId": "1", "facets": large}), 42]
    )

    assert [one["status"] for one in answer.json()["results"]] == [201, 422]
    assert stored(engine) == 1


def test_body_over_the_waiting_limit_gets_503_with_retry_after(engine: Engine) -> None:
    tight = replace(SETTINGS, max_waiting_bytes=2048, max_body_bytes=100_000)

    with serving(engine, tight) as address:
        answer = post(f"{address}/api/v1/lineage", json=run_event(job="x" * 4000))
        after = post(f"{address}/api/v1/lineage", json=run_event())

    assert problem(answer)[:2] == (503, "overload")
    assert answer.headers["retry-after"] == "1"
    assert after.status_code == 201


def test_consumed_metric_counts_events_by_outcome(client: httpx.Client, engine: Engine) -> None:
    client.post("/api/v1/lineage", json=run_event("1"))
    client.post("/api/v1/lineage", json=run_event("1"))
    client.post("/api/v1/lineage/batch", json=[run_event("1"), run_event("2")])
    client.post("/api/v1/lineage", json={})

    lines = [
        line
        for line in client.get("/metrics").text.splitlines()
        if 'source="http"' in line and "_events_" in line
    ]
    assert lines == [
        'strandline_consumed_events_total{source="http"} 4.0',
        'strandline_events_total{outcome="stored",source="http"} 2.0',
        'strandline_events_total{outcome="duplicate",source="http"} 2.0',
        'strandline_events_total{outcome="dead",source="http"} 0.0',
        'strandline_events_total{outcome="unread",source="http"} 0.0',
    ]
    assert counts(engine, "set_aside") == {"set_aside": 0}


def test_secret_is_not_returned(client: httpx.Client) -> None:
    secret = {"namespace": "postgres://me:hunter2@db:5432", "name": "x.y"}
    client.post("/api/v1/lineage", json=run_event(inputs=[secret]))

    assert "hunter2" not in json.dumps(client.get("/api/v2/events").json())
