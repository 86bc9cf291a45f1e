"""Hostile requests are answered as the sender's fault and cost no other sender an event."""

import gzip
import json
import socket
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import content_type_conformance, status_code_conformance
from sqlalchemy import Engine

from fixtures.servers import SETTINGS, post, problem, serving
from fixtures.stores import engine_of
from strandline.api.app import document
from worlds.builders import counts
from worlds.sample_events import as_bytes, run_event

MIB = 2**20
SMALL = replace(SETTINGS, max_body_bytes=MIB, body_seconds=3)
EVENT = as_bytes(run_event())


@pytest.fixture(scope="module")
def shared(new_store: Callable[[str], str]) -> Iterator[tuple[Engine, str]]:
    """Serve from one database for all tests: invalid requests never come near it."""
    for engine in engine_of(new_store("sqlite")):
        with serving(engine, SMALL) as address:
            yield engine, address


@pytest.fixture
def engine(shared: tuple[Engine, str]) -> Engine:
    """Its database, without an event."""
    with shared[0].begin() as connection:
        for table in ("event_keys", "raw_events", "set_aside"):
            connection.exec_driver_sql(f"DELETE FROM {table}")
    return shared[0]


@pytest.fixture
def address(shared: tuple[Engine, str], engine: Engine) -> str:
    return shared[1]


def around(facet: bytes) -> bytes:
    """An event with this as one of its facets."""
    return as_bytes(run_event(run={"runId": "1", "facets": {"odd": 0}})).replace(
        b'"odd": 0', b'"odd": ' + facet
    )


UNREADABLE = {
    "nothing": b"",
    "no json": b"{",
    "no object": b"[]",
    "null": b"null",
    "a million brackets": b"[" * 1_000_000,
    "no utf-8": b'{"eventTime": "\xff\xfe"}',
    "nan": b'{"eventTime": NaN}',
    "a number too long": b'{"eventTime": ' + b"9" * 100_000 + b"}",
    "a type that is none": as_bytes(run_event(kind="STARTED")),
    "a time that is none": as_bytes(run_event(eventTime="yesterday")),
    "utf-16": json.dumps(run_event()).encode("utf-16"),
    "utf-32": json.dumps(run_event()).encode("utf-32"),
    "latin-1": json.dumps(run_event(job="M\xfcll"), ensure_ascii=False).encode("latin-1"),
    "a surrogate in bytes": EVENT.replace(b"load", b"\xed\xa0\x80"),
    "a zero byte": EVENT.replace(b"load", b"lo\x00ad"),
    "two events": EVENT + EVENT,
    "a deep facet": around(b"[" * 200_000 + b"]" * 200_000),
    "a deep facet of objects": around(b'{"a":' * 100_000 + b"1" + b"}" * 100_000),
    "a facet that never ends": around(b"[" * 200_000)[:150_000],
    "NaN for a time": EVENT.replace(b'"eventTime": "', b'"eventTime": NaN, "x": "'),
    "text for a job": as_bytes(run_event() | {"job": "load"}),
    "numbers for names": as_bytes(run_event() | {"job": {"namespace": 1, "name": 2}}),
    "a number for the time": as_bytes(run_event(eventTime=10**300)),
    "text for inputs": as_bytes(run_event(inputs="all")),
    "null for a dataset": as_bytes(run_event(inputs=[None])),
}


def is_json(body: bytes) -> bool:
    """Return true if Python reads it, or finds nothing wrong before it is nested too deeply."""
    try:
        json.loads(body.decode(), parse_int=str)
    except RecursionError:
        return True
    except ValueError:
        return False
    return True


@pytest.mark.parametrize("body", UNREADABLE.values(), ids=UNREADABLE)
def test_invalid_body_is_rejected_and_the_next_event_is_stored(
    address: str, engine: Engine, body: bytes
) -> None:
    refused = post(f"{address}/api/v1/lineage", content=body)
    in_batch = post(f"{address}/api/v1/lineage/batch", content=b"[" + EVENT + b"," + body + b"]")
    good = post(f"{address}/api/v1/lineage", content=EVENT)

    assert refused.status_code == (422 if is_json(body) else 400)
    assert refused.json()["detail"].startswith("not an OpenLineage event: ")
    assert in_batch.status_code in (
        200,
        204,
        400,
    )  # 400: where the array itself cannot be read, or is two elements
    assert good.status_code == 201
    assert counted(engine) == (1, 0)


PACKED = {
    "a bomb": (gzip.compress(b" " * 64 * MIB), 413),
    "a bomb of many members": (gzip.compress(b" " * MIB) * 60, 413),
    "a bomb in a bomb": (gzip.compress(gzip.compress(b" " * 8 * MIB)), 400),
    "rubbish after the head": (b"\x1f\x8b\x08\x00" + b"\xff" * 100, 400),
    "a head alone": (b"\x1f\x8b", 400),
    "cut off": (gzip.compress(EVENT)[:-4], 400),
    "a wrong checksum": (gzip.compress(EVENT)[:-8] + b"\x00" * 8, 400),
    "rubbish behind it": (gzip.compress(EVENT) + b"rubbish", 400),
    "zlib without gzip": (zlib.compress(EVENT), 400),
    "not compressed": (b"plain", 400),
}


@pytest.mark.parametrize(("body", "status"), PACKED.values(), ids=PACKED)
@pytest.mark.parametrize("said", [True, False])
def test_compressed_bodies_cannot_exhaust_the_server(
    address: str, engine: Engine, body: bytes, status: int, said: bool
) -> None:
    headers = {"Content-Encoding": "gzip"} if said else {}

    answer = post(f"{address}/api/v1/lineage", content=body, headers=headers)

    assert problem(answer)[0] == status
    assert counted(engine) == (0, 0)


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_that_is_too_large_gets_413(address: str, chunked: bool) -> None:
    body = b" " * (SMALL.max_body_bytes + 1)
    content = (body[start : start + MIB] for start in range(0, len(body), MIB)) if chunked else body

    answer = post(f"{address}/api/v1/lineage", content=content)

    assert problem(answer)[:2] == (413, "too_large")


def test_another_encoding_gets_400(address: str) -> None:
    headers = {"Content-Encoding": "br"}

    answer = post(f"{address}/api/v1/lineage", content=EVENT, headers=headers)

    assert problem(answer)[:2] == (400, "invalid_body")


@pytest.mark.parametrize(
    "body", [b"{}", b"", b"[1,", b"[" * 1_000_000], ids=["object", "empty", "cut off", "deep"]
)
def test_non_array_batch_gets_400(address: str, engine: Engine, body: bytes) -> None:
    answer = post(f"{address}/api/v1/lineage/batch", content=body)

    assert problem(answer)[:2] == (400, "invalid_body")
    assert counted(engine) == (0, 0)


@pytest.mark.parametrize("number", [10_001, 500_000])
def test_batch_of_too_many_events_gets_413(address: str, engine: Engine, number: int) -> None:
    body = b"[" + b"1," * (number - 1) + b"1]"

    answer = post(f"{address}/api/v1/lineage/batch", content=body)

    assert problem(answer) == (413, "too_large", "the array has more than 10000 events")
    assert counted(engine) == (0, 0)


def test_empty_batch_is_valid(address: str) -> None:
    assert post(f"{address}/api/v1/lineage/batch", content=b"[]").status_code == 204


HEAD = b"POST /api/v1/lineage HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
CHUNK = b"%x\r\n" % (64 * 1024) + b" " * 64 * 1024 + b"\r\n"


def endless_chunks(connection: socket.socket) -> None:
    """Send chunks until nobody takes them."""
    connection.sendall(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
    for _ in range(24):
        connection.sendall(CHUNK)


LIES = {
    "less than announced": (
        lambda one: one.sendall(HEAD + b"Content-Length: 5000\r\n\r\n" + EVENT),
        400,
    ),
    "more than announced": (
        lambda one: one.sendall(
            HEAD + b"Content-Length: %d\r\n\r\n" % len(EVENT) + EVENT + b"rubbish"
        ),
        400,
    ),
    "nothing of what was announced": (
        lambda one: one.sendall(HEAD + b"Content-Length: 5000\r\n\r\n"),
        400,
    ),
    "more than is allowed, announced": (
        lambda one: one.sendall(HEAD + b"Content-Length: 99999999999\r\n\r\n"),
        413,
    ),
    "no number": (lambda one: one.sendall(HEAD + b"Content-Length: many\r\n\r\n" + EVENT), 400),
    "a negative length": (
        lambda one: one.sendall(HEAD + b"Content-Length: -1\r\n\r\n" + EVENT),
        400,
    ),
    "two lengths": (
        lambda one: one.sendall(HEAD + b"Content-Length: 5\r\nContent-Length: 9\r\n\r\n" + EVENT),
        400,
    ),
    "chunks without end": (endless_chunks, 413),
    "a chunk of no size": (
        lambda one: one.sendall(HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n"),
        400,
    ),
    "chunks that never come": (
        lambda one: one.sendall(HEAD + b"Transfer-Encoding: chunked\r\n\r\n"),
        400,
    ),
}


@pytest.mark.parametrize(("attack", "expected"), LIES.values(), ids=LIES)
def test_sender_that_lies_about_its_body_does_not_affect_others(
    address: str, engine: Engine, attack: Callable[[socket.socket], None], expected: int
) -> None:
    with connected(address) as liar:
        attack(liar)
        good = post(f"{address}/api/v1/lineage", content=EVENT)
        status = int(liar.recv(4096).split()[1])

    assert status == expected
    assert good.status_code == 201
    assert counted(engine) == (1, 0)


def test_sender_that_disconnects_leaves_nothing_behind(address: str, engine: Engine) -> None:
    with connected(address) as gone:
        gone.sendall(HEAD + b"Content-Length: 1000000\r\n\r\n" + EVENT)
    good = post(f"{address}/api/v1/lineage", content=EVENT)

    assert good.status_code == 201
    assert counted(engine) == (1, 0)
    assert "strandline_waiting_bytes 0.0" in httpx.get(f"{address}/metrics").text


def connected(address: str) -> socket.socket:
    where = urlsplit(address)
    return socket.create_connection((where.hostname or "", where.port or 0))


def counted(engine: Engine) -> tuple[int, int]:
    """Count the events and dead letters of the store."""
    found = counts(engine, "event_keys", "set_aside")
    return found["event_keys"], found["set_aside"]


API = schemathesis.openapi.from_dict(document())


@pytest.fixture(scope="module")
def served(new_store: Callable[[str], str]) -> Iterator[str]:
    """Give the address of a server that knows a few events."""
    for engine in engine_of(new_store("sqlite")):
        with serving(engine, SMALL) as address:
            for number in range(3):
                post(f"{address}/api/v1/lineage", content=as_bytes(run_event(str(number))))
            yield address


FEW = settings(
    max_examples=3, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)


@API.exclude(method="GET").parametrize()  # test_any_question asks the reads
@FEW
def test_every_request_gets_a_documented_answer(
    case: "schemathesis.Case[Any]", served: str
) -> None:
    check_answer(case, served)


@pytest.mark.slow
@API.parametrize()
@settings(FEW, max_examples=25)
def test_25_requests_for_each_operation_are_answered_as_the_document_says(
    case: "schemathesis.Case[Any]", served: str
) -> None:
    check_answer(case, served)


def check_answer(case: "schemathesis.Case[Any]", served: str) -> None:
    """Ask, and compare the answer with the document."""
    asked = case.body.get("timeoutSeconds") if isinstance(case.body, dict) else None
    if isinstance(case.body, dict) and isinstance(asked, int | float):
        case.body["timeoutSeconds"] = min(asked, 1)  # it may ask to wait for days
    answer = case.call(base_url=served)

    # A wait for a barrier that nobody commits ends with 504, as the document says; nothing else may
    # answer 5xx.
    checks = [status_code_conformance, content_type_conformance]
    waited_in_vain = answer.status_code == 504 and answer.json()["code"] == "waited"
    case.validate_response(
        answer, checks=checks if waited_in_vain else [not_a_server_error, *checks]
    )
