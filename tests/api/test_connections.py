"""Unfinished request heads and excess connections are closed without delaying others."""

import socket
import time
from collections.abc import Iterator
from dataclasses import replace
from urllib.parse import urlsplit

import httpx
import pytest
from sqlalchemy import Engine

from fixtures.servers import SETTINGS, serving

HEAD = b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n"


@pytest.fixture
def address(sqlite_engine: Engine) -> Iterator[str]:
    with serving(
        sqlite_engine, replace(SETTINGS, head_seconds=1, max_connections_per_address=5)
    ) as address:
        yield address


def connected(address: str) -> socket.socket:
    where = urlsplit(address)
    assert where.hostname
    assert where.port
    return socket.create_connection((where.hostname, where.port), timeout=60)


def answer(connection: socket.socket) -> bytes:
    """All that the server says before it closes."""
    found = b""
    try:
        while data := connection.recv(65536):
            found += data
    except ConnectionResetError:
        pass  # it did not read all that was sent
    return found


@pytest.mark.parametrize("begun", [b"", b"GET /hea", HEAD + b"x: y"])
def test_unfinished_request_head_times_out(address: str, begun: bytes) -> None:
    with connected(address) as connection:
        connection.sendall(begun)
        assert httpx.get(f"{address}/healthz").status_code == 200
        assert answer(connection).startswith(b"HTTP/1.1 408 ")


def test_oversized_request_head_is_cut_off(address: str) -> None:
    with connected(address) as connection:
        try:
            connection.sendall(HEAD)
            for _ in range(1000):
                connection.sendall(b"x: " + b"y" * 60_000 + b"\r\n")
        except (BrokenPipeError, ConnectionResetError):
            pass  # as it should
        else:
            pytest.fail("60 MB of headers were taken")
    assert httpx.get(f"{address}/healthz").status_code == 200


def test_second_request_on_a_connection_has_its_own_timeout(address: str) -> None:
    with connected(address) as connection:
        connection.sendall(HEAD + b"\r\n")
        assert connection.recv(12) == b"HTTP/1.1 200"
        connection.sendall(HEAD)
        assert b"HTTP/1.1 408 " in answer(connection)


@pytest.mark.slow
def test_idle_connection_stays_open_for_longer_than_clients_keep_it(address: str) -> None:
    with connected(address) as connection:
        for idle_seconds in (0, 6):  # httpx gives an idle connection up after five
            time.sleep(idle_seconds)
            connection.sendall(HEAD + b"\r\n")
            assert connection.recv(65536).startswith(b"HTTP/1.1 200")


def test_connections_per_address_are_limited(address: str) -> None:
    held = [connected(address) for _ in range(5)]
    try:
        for one in held:  # each is there once it is answered
            one.sendall(HEAD + b"\r\n")
            assert one.recv(12) == b"HTTP/1.1 200"
        with connected(address) as one_more:
            assert answer(one_more).startswith(b"HTTP/1.1 429 ")
    finally:
        for one in held:
            one.close()
    with connected(address) as again:
        again.sendall(HEAD + b"connection: close\r\n\r\n")
        assert answer(again).startswith((b"HTTP/1.1 200", b"HTTP/1.1 429"))
