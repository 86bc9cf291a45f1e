"""Events over HTTP: delivered, rejected and kept for later."""

from __future__ import annotations

import socket
import threading

import pytest

from fixtures.emitter.builders import message
from fixtures.emitter.faulty_proxy import faulty_proxy
from fixtures.emitter.recording import RecordingServer, failing_at
from strandline_spark.delivery.transport import Delivery
from strandline_spark.delivery.transports.registry import transport_of

ONE, TWO = message("one"), message("two", vital=True)


def test_http_posts_each_event_to_the_endpoint_with_key_headers_and_parameters(
    server: RecordingServer,
) -> None:
    transport = transport_of(
        {
            "type": "http",
            "url": server.url,
            "auth.type": "api_key",
            "auth.apiKey": "k3y",
            "headers.X-Team": "bank",
            "urlParams.source": "spark",
            "compression": "gzip",
        }
    )

    assert transport.send([ONE, TWO], 5) == Delivery()

    transport.close()
    assert server.bodies() == [ONE.body, TWO.body]
    path, headers, _ = server.requests[0]
    assert path == "/api/v1/lineage?source=spark"
    assert (headers["Authorization"], headers["X-Team"], headers["Content-Encoding"]) == (
        "Bearer k3y",
        "bank",
        "gzip",
    )


def test_http_uses_the_path_of_the_url_or_the_endpoint_setting(server: RecordingServer) -> None:
    for settings in (
        {"url": f"{server.url}/gateway/lineage"},
        {"url": server.url, "endpoint": "events"},
    ):
        transport = transport_of({"type": "http", **settings})
        transport.send([ONE], 5)
        transport.close()

    assert [path for path, _, _ in server.requests] == ["/gateway/lineage", "/events"]


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 201",
        b"HTTP/1.1 201 Created\r\n",
        b"HTTP/1.1 201 Created\r\nContent-Length: 0\r\nX-Slow: x",
    ],
)
def test_http_treats_a_truncated_answer_as_no_answer(answer: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=answer_and_close, args=(listening, answer), daemon=True).start()
        transport = transport_of(
            {"type": "http", "url": f"http://127.0.0.1:{listening.getsockname()[1]}"}
        )
        delivery = transport.send([ONE], 5)
        transport.close()

    assert (delivery.unsent, delivery.refused) == ((ONE,), ())


def answer_and_close(listening: socket.socket, answer: bytes) -> None:
    """Reads one request, says that much, and closes."""
    connection, _ = listening.accept()
    with connection:
        connection.recv(65_536)
        connection.sendall(answer)
        connection.shutdown(socket.SHUT_WR)


@pytest.mark.parametrize("status", [400, 413, 422])
def test_http_drops_events_that_the_backend_rejects(server: RecordingServer, status: int) -> None:
    server.headers = {"Content-Type": "application/problem+json"}
    server.status = status
    transport = transport_of({"type": "http", "url": server.url})

    delivery = transport.send([ONE, TWO], 5)

    transport.close()
    assert (delivery.unsent, delivery.refused) == ((), (ONE, TWO))


def test_http_keeps_rejected_events_until_the_backend_accepts_one(server: RecordingServer) -> None:
    server.status = 400  # as a server that expects TLS says to whatever comes without
    transport = transport_of({"type": "http", "url": server.url})

    assert transport.send([ONE], 5).unsent == (ONE,)

    server.status = 201
    assert transport.send([ONE], 5) == Delivery()
    server.status = 400
    assert transport.send([TWO], 5).refused == (TWO,)
    transport.close()


def test_http_continues_after_an_event_that_always_fails() -> None:
    events = [message(name) for name in ("a", "bad", "b", "bad again", "c")]
    with failing_at(b"bad") as (url, got):
        transport = transport_of({"type": "http", "url": url})
        delivery = transport.send(events, 5)
        transport.close()

    assert delivery.unsent == (events[1], events[3])
    assert got == [events[0].body, events[2].body, events[4].body]


def test_http_gives_up_after_several_failures_in_a_row() -> None:
    events = [message(f"bad{number}") for number in range(10)]
    with failing_at(b"bad") as (url, got):
        transport = transport_of({"type": "http", "url": url})
        delivery = transport.send([*events, ONE], 5)
        transport.close()

    assert delivery.unsent == (*events, ONE)
    assert got == []


def test_invalid_header_key_is_not_shown(server: RecordingServer) -> None:
    transport = transport_of({"type": "http", "url": server.url, "auth.apiKey": "s3cret\nkey"})

    delivery = transport.send([ONE], 5)

    assert delivery.unsent == (ONE,)
    assert "s3cret" not in delivery.reason


def test_key_file_may_end_with_a_newline(server: RecordingServer) -> None:
    transport = transport_of({"type": "http", "url": server.url, "auth.apiKey": "k3y\n"})

    assert transport.send([ONE], 5) == Delivery()
    transport.close()
    assert server.requests[0][1]["Authorization"] == "Bearer k3y"


@pytest.mark.parametrize("status", [301, 307, 401, 403, 404, 429, 500, 502, 503])
def test_http_keeps_events_after_other_status_codes(server: RecordingServer, status: int) -> None:
    server.status, server.headers = status, {"Location": "http://127.0.0.1:1/"}
    transport = transport_of({"type": "http", "url": server.url})

    delivery = transport.send([ONE, TWO], 5)

    transport.close()
    assert (delivery.unsent, delivery.refused) == ((ONE, TWO), ())
    assert delivery.reason.startswith(
        f"http://127.0.0.1:{server.port}/api/v1/lineage: status {status}"
    )


def test_http_opens_a_new_connection_after_a_failure(server: RecordingServer) -> None:
    with faulty_proxy(
        "500", ("127.0.0.1", server.port)
    ) as gateway:  # says so once a connection, and then nothing
        transport = transport_of({"type": "http", "url": f"http://127.0.0.1:{gateway.port}"})
        reasons = [transport.send([ONE], 5).reason for _ in range(2)]
        transport.close()

    assert [reason.rpartition(": ")[2] for reason in reasons] == ["status 500", "status 500"]
