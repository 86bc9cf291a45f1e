"""API keys: with keys required, only the probes answer without one."""

import asyncio
import socket
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from sqlalchemy import Engine
from starlette.applications import Starlette
from starlette.testclient import TestClient

from fixtures.operations import operations
from fixtures.servers import SETTINGS, bearer, client_of, problem, serving
from strandline.api.http.auth import ACCESS, BELIEVED_SECONDS, RequireKey
from strandline.core.access.granted import EVERYTHING, SCOPES, Access
from strandline.store.api_keys import add_key, keys_of, revoke_key
from strandline.store.schema.received_tables import event_keys
from strandline.web.pages import COOKIE, routes
from worlds.sample_events import run_event

METHODS = ("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE", "TRACE")
PATHS = (
    *(
        "/",
        "/docs",
        "/openapi.json",
        "/metrics",
        "/api/v1/lineage",
        "/api/v1/lineage/batch",
        "/api/v1/namespaces",
    ),
    *(
        "/api/v2/events",
        "/api/v2/groups",
        "/version/weak/a/b/c",
        "/nowhere",
        "/healthz/",
        "//healthz",
        "/readyz/x",
    ),
)
NOW = datetime(2026, 11, 20, tzinfo=UTC)


@pytest.fixture
def client(engine: Engine) -> Iterator[httpx.Client]:
    required = replace(SETTINGS, auth="required")
    with serving(engine, required) as address, client_of(address, "") as client:
        yield client


@pytest.fixture
def key(engine: Engine) -> str:
    with engine.begin() as connection:
        return add_key(connection, "job", NOW, ["ingest", "read"], ["*"])


def test_every_method_and_path_requires_a_key(client: httpx.Client, engine: Engine) -> None:
    answers = {
        (method, path): client.request(method, path, json=run_event()).status_code
        for method in METHODS
        for path in PATHS
    }

    page = {
        (method, path) for method in ("GET", "HEAD") for path in ("/", "//healthz")
    }  # no data; httpx asks both for "/"
    assert {
        asked: status for asked, status in answers.items() if status != 401 and asked not in page
    } == {}
    with engine.connect() as connection:
        assert connection.execute(event_keys.select()).all() == []


def test_probes_need_no_key_and_reveal_nothing(client: httpx.Client) -> None:
    assert client.get("/healthz").status_code == 200
    assert client.get("/readyz").json() == {"status": "ready", "faults": {}}


def test_rejection_says_how_to_get_a_key(client: httpx.Client) -> None:
    answer = client.get("/api/v2/events")

    assert (answer.headers["www-authenticate"], answer.json()["code"]) == ("Bearer", "unauthorized")
    assert "strandline keys add" in answer.json()["detail"]


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_valid_key_is_accepted(client: httpx.Client, key: str, method: str) -> None:
    assert client.request(method, "/api/v2/events", headers=bearer(key)).status_code == 200
    assert client.post("/api/v1/lineage", json=run_event(), headers=bearer(key)).status_code == 201


@pytest.mark.parametrize(
    "header", ["", "Bearer", "Basic {}", "{}", "Bearer {}x", "Bearer x{}", "Bearer {} {}"]
)
def test_malformed_keys_are_rejected(client: httpx.Client, key: str, header: str) -> None:
    asked = {"Authorization": header.replace("{}", key)}

    assert client.get("/api/v2/events", headers=asked).status_code == 401


def test_revoked_key_is_rejected_at_first_use(
    client: httpx.Client, engine: Engine, key: str
) -> None:
    with engine.begin() as connection:
        revoke_key(connection, "job", NOW)

    assert client.get("/api/v2/events", headers=bearer(key)).status_code == 401


@pytest.mark.parametrize("scope", SCOPES)
def test_key_may_call_only_the_operations_of_its_scope(
    client: httpx.Client, engine: Engine, scope: str
) -> None:
    with engine.begin() as connection:
        key = add_key(connection, scope, NOW, [scope], ["*"])

    refused = {
        (one.method, one.path)
        for one in operations()
        if one.path != "/api/v2/stream"
        and client.request(
            one.method, one.path.replace("{", "").replace("}", ""), headers=bearer(key)
        ).status_code
        == 403
    }

    granted = {"open", "read", "ingest", "admin"} if scope == "admin" else {"open", scope}
    streams = {("GET", "/api/v2/stream")}
    assert (
        refused
        == {(one.method, one.path) for one in operations() if one.scope not in granted} - streams
    )


def test_rejection_names_the_missing_scope_or_namespace(
    client: httpx.Client, engine: Engine
) -> None:
    with engine.begin() as connection:
        ingest, here = (
            add_key(connection, "i", NOW, ["ingest"], ["*"]),
            add_key(connection, "h", NOW, ["read"], ["a*"]),
        )

    assert problem(client.get("/api/v2/jobs", headers=bearer(ingest))) == (
        *(403, "forbidden", "this needs a key with scope read, and this one has ingest"),
    )
    assert problem(client.get("/metrics", headers=bearer(here))) == (
        *(
            403,
            "forbidden",
            "this needs a key for all namespaces: --namespace '*'",
        ),
    )


def test_key_may_send_events_of_its_own_jobs_only(client: httpx.Client, engine: Engine) -> None:
    theirs, own, output = run_event(), run_event(outputs=[]), run_event()
    own["job"]["namespace"] = output["job"]["namespace"] = "mine"
    with engine.begin() as connection:
        key = bearer(add_key(connection, "mine", NOW, ["ingest"], ["mi?e"]))

    refused = problem(client.post("/api/v1/lineage", json=theirs, headers=key))
    written = problem(client.post("/api/v1/lineage", json=output, headers=key))
    taken = client.post("/api/v1/lineage", json=own, headers=key)
    half = client.post("/api/v1/lineage/batch", json=[own, theirs], headers=key).json()

    namespace = theirs["job"]["namespace"]
    assert refused == (403, "forbidden", f"this key may not send events of namespace {namespace!r}")
    assert written == (
        403,
        "forbidden",
        "this key may not write namespace 'db': add it to the key with --namespace",
    )
    assert taken.status_code == 201
    assert [one["status"] for one in half["results"]] == [201, 422]
    with engine.connect() as connection:
        assert len(connection.execute(event_keys.select()).all()) == 1


def test_expired_key_is_rejected(client: httpx.Client, engine: Engine) -> None:
    with engine.begin() as connection:
        expired = add_key(connection, "old", NOW, ["read"], ["*"], NOW + timedelta(days=1))

    assert client.get("/api/v2/jobs", headers=bearer(expired)).status_code == 401


def test_last_use_of_a_key_is_recorded(client: httpx.Client, engine: Engine, key: str) -> None:
    client.get("/api/v2/jobs", headers=bearer(key))

    with engine.connect() as connection:
        (kept,) = keys_of(connection)
    assert kept.used_at is not None
    assert key.split("_")[1] == kept.id
    assert key.split("_", 2)[2] not in str(kept)


class Gate:
    """RequireKey with one valid key, a clock that stands still and a sleep that only notes."""

    def __init__(self) -> None:
        self.valid, self.now, self.slept, self.asked = {"good"}, 0.0, list[float](), 0
        self.middleware = RequireKey(self._inside, self._grant, self._sleep, lambda: self.now)

    def status(self, key: str, address: str = "10.0.0.1") -> int:
        """Return the status of a request with this key."""
        found: list[int] = []

        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                found.append(message["status"])

        scope = {"type": "http", "method": "GET", "path": "/api/v2/jobs", "client": (address, 1),
                 "headers": [(b"authorization", f"Bearer {key}".encode())]}  # fmt: skip
        asyncio.run(self.middleware(scope, _nothing, send))
        return found[0]

    async def _inside(self, scope: Any, _receive: Any, send: Any) -> None:
        assert scope[ACCESS].who == "good"
        await send({"type": "http.response.start", "status": 200})

    def _grant(self, key: str) -> Access | None:
        self.asked += 1
        return Access(key, frozenset({"read"}), ("*",)) if key in self.valid else None

    async def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


async def _nothing() -> Any:
    """Nothing is received."""


def test_revoked_key_is_rejected_within_five_seconds() -> None:
    gate = Gate()
    before = [gate.status("good") for _ in range(3)]
    gate.valid.clear()
    gate.now = 4.99

    assert before == [200] * 3
    assert BELIEVED_SECONDS < 5
    assert gate.status("good") == 401
    assert gate.asked == 2


def test_wrong_keys_slow_down_their_address_but_not_valid_keys() -> None:
    gate = Gate()
    for _ in range(20):
        gate.status("bad")
    slowed = list(gate.slept)
    gate.status("bad", "10.0.0.2")

    assert slowed == sorted(slowed)
    assert len(slowed) == 15
    assert slowed[-1] == 5.0
    assert gate.slept == slowed
    assert gate.status("good") == 200
    assert gate.slept == slowed


def test_wrong_session_keys_are_slowed_down_too() -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    def grant(key: str) -> Access | None:
        return EVERYTHING if key == "good" else None

    page = {"X-Strandline-Page": "1"}
    with TestClient(RequireKey(Starlette(routes=routes(grant)), grant, sleep)) as client:
        answers = [
            client.post("/ui/session", content="bad", headers=page).status_code for _ in range(8)
        ]
        posted = len(slept)
        opened = client.post("/ui/session", content="good", headers=page).status_code
        client.cookies.clear()
        nothing = client.get("/ui/session").json()
        without = len(slept)
        client.cookies.set(COOKIE, "bad")
        asked = client.get("/ui/session").json()

    assert (set(answers), opened, nothing, asked) == (
        {401},
        204,
        {"keyNeeded": True},
        {"keyNeeded": True},
    )
    assert (posted, without, len(slept)) == (3, 3, 4)


def test_long_session_request_is_rejected_before_its_body_ends(client: httpx.Client) -> None:
    """The client has shown no key yet, so the server buffers nothing."""
    head = "POST /ui/session HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Strandline-Page: 1\r\nTransfer-Encoding: chunked\r\n\r\n"
    with socket.create_connection(
        (client.base_url.host, client.base_url.port or 80), timeout=60
    ) as connection:
        connection.sendall(head.encode() + b"4000\r\n" + b"x" * 0x4000 + b"\r\n")
        answer = connection.recv(1000)

    assert answer.startswith(b"HTTP/1.1 401 ")
