"""Large answers: cut into pages, bounded while they are read, and dropped if nobody reads."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import httpx
import pytest
from fastapi import APIRouter
from sqlalchemy import Engine

from fixtures.servers import SECONDS, SETTINGS, client_of, problem, serving
from fixtures.waiting import wait_until
from strandline.api import app as application
from strandline.api.http import connections, route
from strandline.api.http.route import Route
from strandline.api.http.sending import PIECE, AnswerRoom
from strandline.api.http.session import ReadSession
from strandline.errors import OverloadError
from worlds.builders import dataset, event, store

LARGE = 30 << 20
ROOM = 64 << 20


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """A question whose answer has 30 MB."""
    router = APIRouter(prefix="/api/v1", route_class=Route)

    @router.get("/large")
    def get_large(session: ReadSession) -> Any:
        return {"text": "x" * LARGE}

    monkeypatch.setattr(application, "ROUTERS", (*application.ROUTERS, router))


def ask_without_reading(address: str, path: str = "/api/v1/large") -> socket.socket:
    """Ask for a large answer on a connection that takes little, and read its status."""
    host, _, port = address.removeprefix("http://").partition(":")
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.connect((host, int(port)))
    connection.settimeout(SECONDS)
    connection.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
    return connection


def status_of(connection: socket.socket) -> bytes:
    return connection.recv(12)[-3:]


def status_of_another(address: str) -> bytes:
    with ask_without_reading(address) as connection:
        return status_of(connection)


@pytest.fixture
def connection_of(large: None, sqlite_engine: Engine) -> Iterator[str]:
    with serving(sqlite_engine, replace(SETTINGS, memory_bytes=ROOM * 8)) as address:
        yield address


def test_unread_answers_stay_within_their_memory_limit(connection_of: str) -> None:
    """One client may have half of the room; the rest of its questions hear 503."""
    connections_open = [ask_without_reading(connection_of) for _ in range(10)]

    statuses = sorted(map(status_of, connections_open))

    assert statuses == [b"200", *[b"503"] * 9]
    for connection in connections_open:
        connection.close()
    whole = httpx.get(f"{connection_of}/api/v1/large", timeout=SECONDS)
    assert len(whole.json()["text"]) == LARGE


def test_client_that_stops_reading_is_cut_off(
    connection_of: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "READ_SECONDS", 0.2)
    with ask_without_reading(connection_of) as connection:
        assert status_of(connection) == b"200"
        wait_until(lambda: status_of_another(connection_of) == b"200")  # its room is free again

        received = 0
        while piece := connection.recv(1 << 20):
            received += len(piece)
        assert received < LARGE


def test_large_answer_arrives_whole_on_a_connection_that_stays_open(connection_of: str) -> None:
    with client_of(connection_of, "/api/v1") as client:
        answers = [client.get("/large"), client.head("/large"), client.get("/namespaces")]

    assert [answer.status_code for answer in answers] == [200, 200, 200]
    assert len(answers[0].content) == int(answers[1].headers["content-length"]) > LARGE


def test_unread_tables_leave_connections_for_others(
    own_engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More clients than the pool has connections ask for a table and read nothing of it."""
    monkeypatch.setattr(connections, "READ_SECONDS", SECONDS)  # nobody is cut off meanwhile
    written = [dataset(f"t{number}") for number in range(8)]
    jobs = [event("START", number, f"{number:01000}", 0, [], written) for number in range(1500)]
    store(own_engine, jobs)
    with serving(own_engine) as address, ExitStack() as opened:
        path = "/api/v2/tables/sink_job_lineage"
        asked = [opened.enter_context(ask_without_reading(address, path)) for _ in range(20)]

        assert sorted(map(status_of, asked)) == [b"200"] * 2 + [b"503"] * 18
        assert httpx.get(f"{address}/readyz", timeout=5).status_code == 200
        opened.close()
        wait_until(lambda: own_engine.pool.checkedout() == 0)  # type: ignore[attr-defined]
        whole = httpx.get(f"{address}{path}", timeout=SECONDS)
        assert len(whole.json()) == len(jobs) * len(written)


def test_room_is_shared_between_clients() -> None:
    room = AnswerRoom(10)
    with ExitStack() as held:
        held.enter_context(room.taken("a", 4))
        with pytest.raises(OverloadError, match="read the large answers that you asked for"):
            held.enter_context(room.taken("a", 2))
        held.enter_context(room.taken("b", 5))
        with pytest.raises(OverloadError, match="too many large answers are being read"):
            held.enter_context(room.taken("c", 2))
    with room.taken("a", 11):
        assert room.used == 11
    assert room.used == 0


def test_page_that_is_too_large_ends_earlier_with_a_cursor(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"t{number:02}" for number in range(30)]
    store(engine, [event("COMPLETE", 1, "make", 0, [], [dataset(name) for name in names])])
    with serving(engine) as address, client_of(address) as client:
        whole = client.get("/datasets").json()
        monkeypatch.setattr(route, "ANSWER_BYTES", 5 * PIECE // 64)
        pages = [client.get("/datasets").json()]
        while cursor := pages[-1]["nextCursor"]:
            pages.append(client.get("/datasets", params={"cursor": cursor}).json())

    assert len(pages) > 1
    assert [one for page in pages for one in page["items"]] == whole["items"]


def test_a_page_has_at_most_eight_megabytes(sqlite_engine: Engine) -> None:
    """Sixty answers that nobody reads then fit into the memory of a server."""
    outputs = [dataset(f"t{number:03}{'x' * 39_000}") for number in range(230)]
    store(sqlite_engine, [event("COMPLETE", 1, "make", 0, [], outputs)])
    with serving(sqlite_engine) as address, client_of(address) as client:
        page = client.get("/datasets", params={"limit": 1000})

    assert 4 << 20 < len(page.content) <= 8 << 20
    assert page.json()["nextCursor"]


def test_graph_that_is_too_large_says_that_it_is_cut(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    outputs = [dataset(f"t{number:02}") for number in range(30)]
    store(engine, [event("COMPLETE", 1, "make", 0, [dataset("raw")], outputs)])
    with serving(engine) as address, client_of(address) as client:
        whole = client.get("/lineage", params={"node": "dataset:hive://lake:raw"}).json()
        monkeypatch.setattr(route, "ANSWER_BYTES", 5 * PIECE // 64)
        cut = client.get("/lineage", params={"node": "dataset:hive://lake:raw"}).json()

    assert (whole["complete"], len(whole["nodes"])) == (True, 32)
    assert (cut["complete"], cut["truncatedBy"]) == (False, "nodes")
    assert 1 < len(cut["nodes"]) < 32


def test_refusal_is_a_problem_document(connection_of: str) -> None:
    with ask_without_reading(connection_of) as connection:
        assert status_of(connection) == b"200"
        refused = httpx.get(f"{connection_of}/api/v1/large", timeout=SECONDS)

    assert problem(refused) == (
        503,
        "overload",
        "read the large answers that you asked for; then ask again",
    )
