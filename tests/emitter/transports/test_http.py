"""Events by HTTP: what counts as delivered, as refused, and as left for later."""

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


def test_http_posts_each_event_to_the_endpoint_with_key_headers_and_parameters(server: RecordingServer) -> None:
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
    assert (headers["Authorization"], headers["X-Team"], headers["Content-Encoding"]) == ("Bearer k3y", "bank", "gzip")


def test_http_keeps_a_path_that_the_address_has_and_takes_an_endpoint_of_its_own(server: RecordingServer) -> None:
    for settings in ({"url": f"{server.url}/gateway/lineage"}, {"url": server.url, "endpoint": "events"}):
        transport = transport_of({"type": "http", **settings})
        transport.send([ONE], 5)
        transport.close()

    assert [path for path, _, _ in server.requests] == ["/gateway/lineage", "/events"]


@pytest.mark.parametrize(
    "answer", [b"HTTP/1.1 201", b"HTTP/1.1 201 Created\r\n", b"HTTP/1.1 201 Created\r\nContent-Length: 0\r\nX-Slow: x"]
)
def test_http_takes_an_answer_that_breaks_off_for_none(answer: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=answer_and_close, args=(listening, answer), daemon=True).start()
        transport = transport_of({"type": "http", "url": f"http://127.0.0.1:{listening.getsockname()[1]}"})
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
def test_http_refuses_for_good_what_the_backend_refuses(server: RecordingServer, status: int) -> None:
    server.headers = {"Content-Type": "application/problem+json"}
    server.status = status
    transport = transport_of({"type": "http", "url": server.url})

    delivery = transport.send([ONE, TWO], 5)

    transport.close()
    assert (delivery.unsent, delivery.refused) == ((), (ONE, TWO))


def test_http_does_not_believe_a_refusal_of_whoever_takes_no_events(server: RecordingServer) -> None:
    server.status = 400  # as a server that expects TLS says to whatever comes without
    transport = transport_of({"type": "http", "url": server.url})

    assert transport.send([ONE], 5).unsent == (ONE,)

    server.status = 201
    assert transport.send([ONE], 5) == Delivery()
    server.status = 400
    assert transport.send([TWO], 5).refused == (TWO,)
    transport.close()


def test_http_goes_on_behind_an_event_at_which_the_backend_always_fails() -> None:
    events = [message(name) for name in ("a", "bad", "b", "bad again", "c")]
    with failing_at(b"bad") as (url, got):
        transport = transport_of({"type": "http", "url": url})
        delivery = transport.send(events, 5)
        transport.close()

    assert delivery.unsent == (events[1], events[3])
    assert got == [events[0].body, events[2].body, events[4].body]


def test_http_gives_up_where_several_events_fail_one_after_the_other() -> None:
    events = [message(f"bad{number}") for number in range(10)]
    with failing_at(b"bad") as (url, got):
        transport = transport_of({"type": "http", "url": url})
        delivery = transport.send([*events, ONE], 5)
        transport.close()

    assert delivery.unsent == (*events, ONE)
    assert got == []


def test_a_key_that_no_header_can_have_is_not_shown(server: RecordingServer) -> None:
    transport = transport_of({"type": "http", "url": server.url, "auth.apiKey": "s3cret\nkey"})

    delivery = transport.send([ONE], 5)

    assert delivery.unsent == (ONE,)
    assert "s3cret" not in delivery.reason


def test_a_key_from_a_file_may_end_with_a_newline(server: RecordingServer) -> None:
    transport = transport_of({"type": "http", "url": server.url, "auth.apiKey": "k3y\n"})

    assert transport.send([ONE], 5) == Delivery()
    transport.close()
    assert server.requests[0][1]["Authorization"] == "Bearer k3y"


@pytest.mark.parametrize("status", [301, 307, 401, 403, 404, 429, 500, 502, 503])
def test_http_keeps_for_later_what_another_answer_leaves(server: RecordingServer, status: int) -> None:
    server.status, server.headers = status, {"Location": "http://127.0.0.1:1/"}
    transport = transport_of({"type": "http", "url": server.url})

    delivery = transport.send([ONE, TWO], 5)

    transport.close()
    assert (delivery.unsent, delivery.refused) == ((ONE, TWO), ())
    assert delivery.reason.startswith(f"http://127.0.0.1:{server.port}/api/v1/lineage: status {status}")


def test_http_does_not_ask_again_over_a_connection_on_which_it_was_told_of_a_failure(server: RecordingServer) -> None:
    with faulty_proxy("500", ("127.0.0.1", server.port)) as gateway:  # says so once a connection, and then nothing
        transport = transport_of({"type": "http", "url": f"http://127.0.0.1:{gateway.port}"})
        reasons = [transport.send([ONE], 5).reason for _ in range(2)]
        transport.close()

    assert [reason.rpartition(": ")[2] for reason in reasons] == ["status 500", "status 500"]
