"""Pages of other origins can neither read nor write; programs and the own page are not affected."""

import socket
from collections.abc import Iterator
from dataclasses import replace
from ipaddress import ip_network
from pathlib import Path

import httpx
import pytest
from sqlalchemy import Engine

from fixtures.servers import SETTINGS, client_of, problem, serving
from strandline.api.http.browsers import hosts_of
from worlds.sample_events import as_bytes, run_event

BODY = as_bytes(run_event())
JSON = {"content-type": "application/json"}


@pytest.fixture
def client(sqlite_engine: Engine) -> Iterator[httpx.Client]:
    with serving(sqlite_engine) as address, client_of(address, "") as client:
        yield client


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:1"},  # another port is another origin
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"host": "evil.example"},  # its name was pointed at this machine
        {"host": "127.0.0.1.evil.example:80"},
    ],
)
def test_requests_from_a_foreign_page_are_rejected(
    client: httpx.Client, headers: dict[str, str]
) -> None:
    written = client.post("/api/v1/lineage", content=BODY, headers=JSON | headers)
    read = client.get("/api/v2/jobs", headers=headers)

    assert problem(written)[:2] == problem(read)[:2] == (403, "forbidden")
    assert client.get("/api/v2/jobs").json()["items"] == []


@pytest.mark.parametrize(
    "media", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"]
)
def test_html_form_bodies_are_rejected(client: httpx.Client, media: str) -> None:
    answer = client.post("/api/v1/lineage", content=BODY, headers={"content-type": media})

    assert problem(answer) == (
        415,
        "media_type",
        f"send application/json, not {media.partition(';')[0]!r}",
    )


def test_programs_and_its_own_page_are_not_affected(client: httpx.Client) -> None:
    own = {"origin": str(client.base_url).rstrip("/"), "sec-fetch-site": "same-origin"}
    link = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}

    assert client.post("/api/v1/lineage", content=BODY).status_code == 201
    assert client.post("/api/v1/lineage", content=BODY, headers=JSON | own).status_code in (
        200,
        201,
    )
    assert client.get("/api/v2/jobs", headers=own).status_code == 200
    assert client.get("/graph", headers=link).status_code == 200
    assert client.get("/healthz", headers={"host": "localhost:1234"}).status_code == 200


def test_configured_host_names_are_its_own(sqlite_engine: Engine, tmp_path: Path) -> None:
    behind_a_proxy = replace(SETTINGS, allowed_hosts=("lineage.example",))
    with serving(sqlite_engine, behind_a_proxy) as address:
        status = [
            httpx.get(f"{address}/healthz", headers={"host": host}).status_code
            for host in ("lineage.example", "LINEAGE.example:443", "other.example")
        ]

    assert status == [200, 200, 403]
    assert hosts_of("0.0.0.0", ()) is None


def test_documentation_allows_no_scripts(client: httpx.Client) -> None:
    policy = client.get("/docs").headers["content-security-policy"]

    assert "default-src 'none'" in policy
    assert "unsafe" not in policy


def raw_answer(client: httpx.Client, request: bytes) -> bytes:
    url = client.base_url
    with socket.create_connection((url.host, url.port or 80)) as connection:
        connection.sendall(request)
        return b"".join(iter(lambda: connection.recv(1000), b""))


@pytest.mark.parametrize(
    ("hosts", "reason"),
    [
        (
            b"Host: localhost\r\nHost: b.example\r\n",
            b"the request has more than one Host header",
        ),
        (b"", b"the request has no Host header"),
    ],
)
def test_request_needs_one_host(client: httpx.Client, hosts: bytes, reason: bytes) -> None:
    answer = raw_answer(client, b"GET /healthz HTTP/1.1\r\n" + hosts + b"Connection: close\r\n\r\n")

    assert answer.startswith(b"HTTP/1.1 400 ")
    assert reason in answer


def test_health_check_of_a_load_balancer_may_leave_the_host_out(client: httpx.Client) -> None:
    answer = raw_answer(client, b"GET /healthz HTTP/1.0\r\n\r\n")

    assert answer.startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize(
    ("proxies", "address"),
    [((), "127.0.0.1"), (("127.0.0.0/8",), "192.0.2.7"), (("10.0.0.0/8",), "127.0.0.1")],
)
def test_only_trusted_proxies_say_where_a_request_comes_from(
    own_sqlite_engine: Engine, proxies: tuple[str, ...], address: str
) -> None:
    settings = replace(SETTINGS, trusted_proxies=tuple(map(ip_network, proxies)))
    headers = {"x-forwarded-for": "192.0.2.7"}
    with serving(own_sqlite_engine, settings) as root, client_of(root, "") as client:
        client.post("/api/v2/forget", json={}, headers=headers)
        (entry,) = client.get("/api/v2/audit").json()["items"]

    assert entry["address"] == address
