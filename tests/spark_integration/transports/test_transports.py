"""Each transport does what its conf says, on real sockets and files."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from openlineage.client import OpenLineageClient
from openlineage.client.event_v2 import Job, Run, RunEvent, RunState

from emitter_world.builders import message
from emitter_world.recording import Recorder, recorder
from strandline_spark.transports import Delivery, TransportConfError, transport_of
from strandline_spark.transports.kafka import settings_of

ONE, TWO = message("one"), message("two", vital=True)


@pytest.fixture
def server() -> Iterator[Recorder]:
    """A backend."""
    with recorder() as found:
        yield found


def test_http_posts_each_event_to_the_endpoint_with_key_headers_and_parameters(server: Recorder) -> None:
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


def test_http_keeps_a_path_that_the_address_has_and_takes_an_endpoint_of_its_own(server: Recorder) -> None:
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
def test_http_refuses_for_good_what_the_backend_refuses(server: Recorder, status: int) -> None:
    server.status = status
    transport = transport_of({"type": "http", "url": server.url})

    delivery = transport.send([ONE, TWO], 5)

    transport.close()
    assert (delivery.unsent, delivery.refused) == ((), (ONE, TWO))


@pytest.mark.parametrize("status", [301, 307, 401, 403, 404, 429, 500, 502, 503])
def test_http_keeps_for_later_what_another_answer_leaves(server: Recorder, status: int) -> None:
    server.status, server.headers = status, {"Location": "http://127.0.0.1:1/"}
    transport = transport_of({"type": "http", "url": server.url})

    delivery = transport.send([ONE, TWO], 5)

    transport.close()
    assert (delivery.unsent, delivery.refused) == ((ONE, TWO), ())
    assert delivery.reason == f"http://127.0.0.1:{server.port}/api/v1/lineage: status {status}"


def test_a_file_gets_one_line_an_event_and_its_folder(tmp_path: Path) -> None:
    file = tmp_path / "new folder" / "events.jsonl"
    transport = transport_of({"type": "file", "location": file.as_uri()})

    transport.send([ONE], 5)
    transport.send([TWO], 5)

    assert file.read_bytes() == ONE.body + b"\n" + TWO.body + b"\n"


def test_a_file_that_cannot_be_written_leaves_events_unsent(tmp_path: Path) -> None:
    delivery = transport_of({"type": "file", "location": str(tmp_path)}).send([ONE], 5)

    assert delivery.unsent == (ONE,)


def test_the_console_is_what_there_is_without_conf(capsys: pytest.CaptureFixture[str]) -> None:
    assert transport_of({}).send([ONE], 5) == Delivery()

    assert capsys.readouterr().out == ONE.body.decode() + "\n"


def test_composite_sends_to_the_rest_only_what_they_lack(server: Recorder, tmp_path: Path) -> None:
    file = tmp_path / "events.jsonl"
    server.status = 503
    transport = transport_of(
        {
            "type": "composite",
            "transports.http.type": "http",
            "transports.http.url": server.url,
            "transports.file.type": "file",
            "transports.file.location": str(file),
        }
    )

    first = transport.send([ONE], 5)
    server.status = 201
    until = time.monotonic() + 60
    while (second := transport.send([ONE], 5)).unsent and time.monotonic() < until:
        time.sleep(0.05)

    transport.close()
    assert (first.unsent, first.partly, second) == ((ONE,), True, Delivery())
    assert server.bodies() == [ONE.body]
    assert file.read_bytes() == ONE.body + b"\n"


@pytest.mark.parametrize(
    ("conf", "fault"),
    [
        ({"type": "smoke"}, "transport.type: 'smoke' is none of kafka, http, file, console, composite"),
        ({"type": "http"}, "transport.url: the http transport needs an http or https address"),
        (
            {"type": "http", "url": "http://u:p@h/"},
            "transport.url: credentials belong into transport.auth, not into the address",
        ),
        ({"type": "file"}, "transport.location: the file transport needs it"),
        ({"type": "kafka"}, "transport.properties.bootstrap.servers: the kafka transport needs it"),
        ({"type": "composite"}, "transport.transports: the composite transport needs at least one"),
    ],
)
def test_a_wrong_conf_names_the_key_and_the_reason(conf: dict[str, str], fault: str) -> None:
    with pytest.raises(TransportConfError) as error:
        transport_of(conf)

    assert str(error.value) == fault


def test_kafka_takes_the_java_names_of_security_settings() -> None:
    assert settings_of(
        {
            "bootstrap.servers": "a:9092, b:9092",
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required "
            'username="bank" password="s3\\"cret";',
            "ssl.ca.location": "/ca.pem",
            "key.serializer": "ignored",
        }
    ) == {
        "bootstrap_servers": ["a:9092", "b:9092"],
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "SCRAM-SHA-512",
        "ssl_cafile": "/ca.pem",
        "sasl_plain_username": "bank",
        "sasl_plain_password": 's3"cret',
    }


@pytest.mark.kafka
def test_openlineage_python_loads_the_kafka_transport(kafka: str) -> None:
    from kafka import KafkaConsumer

    topic = f"client.{uuid4().hex}"
    client = OpenLineageClient(
        config={
            "transport": {
                "type": "strandline_spark.transports.openlineage.KafkaPythonTransport",
                "topic": topic,
                "config": {"bootstrap.servers": kafka},
            }
        }
    )
    run = Run("22222222-2222-4222-8222-222222222222")
    client.emit(RunEvent(eventType=RunState.START, eventTime="2026-11-21T12:00:00Z", run=run, job=Job("ns", "job")))
    client.close()

    consumer = KafkaConsumer(topic, bootstrap_servers=kafka, auto_offset_reset="earliest", consumer_timeout_ms=30_000)
    record = next(iter(consumer))
    consumer.close()

    assert record.key == b"run:ns/job"
    assert json.loads(record.value)["run"]["runId"] == run.runId
