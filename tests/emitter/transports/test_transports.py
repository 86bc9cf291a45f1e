"""Each transport follows its conf, on real sockets and files."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from uuid import uuid4

import pytest
from openlineage.client import OpenLineageClient
from openlineage.client.event_v2 import Job, Run, RunEvent, RunState

from fixtures.emitter.builders import message
from fixtures.emitter.recording import RecordingServer, failing_at
from fixtures.emitter.spools import files_of
from fixtures.emitter.topics import records_of
from fixtures.waiting import wait_until
from strandline_spark.delivery.transport import Delivery, TransportConfError
from strandline_spark.delivery.transports.kafka import settings_of
from strandline_spark.delivery.transports.registry import transport_of

ONE, TWO = message("one"), message("two", vital=True)


def test_file_transport_writes_one_line_per_event_and_creates_its_folder(tmp_path: Path) -> None:
    file = tmp_path / "new folder" / "events.jsonl"
    transport = transport_of({"type": "file", "location": file.as_uri()})

    transport.send([ONE], 5)
    transport.send([TWO], 5)

    assert file.read_bytes() == ONE.body + b"\n" + TWO.body + b"\n"


@pytest.mark.skipif(sys.platform != "linux", reason="needs a limit on the size of files")
def test_file_transport_writes_whole_lines_after_a_full_disk(tmp_path: Path) -> None:
    path = tmp_path / "events"
    transport = transport_of({"type": "file", "location": str(path)})
    with files_of(len(ONE.body) + 10):
        assert transport.send([ONE, TWO], 5).unsent == (TWO,)

    assert transport.send([TWO], 5) == Delivery()

    lines = path.read_bytes().splitlines()
    assert (lines[0], lines[-1]) == (ONE.body, TWO.body)


def test_unwritable_file_leaves_events_unsent(tmp_path: Path) -> None:
    delivery = transport_of({"type": "file", "location": str(tmp_path)}).send([ONE], 5)

    assert delivery.unsent == (ONE,)


def test_console_is_the_default_transport(capsys: pytest.CaptureFixture[str]) -> None:
    assert transport_of({}).send([ONE], 5) == Delivery()

    assert capsys.readouterr().out == ONE.body.decode() + "\n"


def test_composite_resends_only_to_parts_that_lack_an_event(
    server: RecordingServer, tmp_path: Path
) -> None:
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
    second = wait_until(lambda: None if (answer := transport.send([ONE], 5)).unsent else answer)

    transport.close()
    assert (first.unsent, first.partly, second) == ((ONE,), True, Delivery())
    assert server.bodies() == [ONE.body]
    assert file.read_bytes() == ONE.body + b"\n"


def test_composite_skips_a_misconfigured_part_and_warns_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    parts = {
        "gone": {
            "type": "http",
            "url": "https://c",
            "sslContextConfig.caFile": str(tmp_path / "ca.pem"),
        },
        "slow": {"type": "http", "url": "http://c", "timeoutInMillis": "soon"},
        "kept": {"type": "file", "location": str(tmp_path / "events.jsonl")},
    }
    with caplog.at_level("WARNING", "strandline"):
        transport = transport_of({"type": "composite", **under(parts)})
        deliveries = [transport.send([one], 5) for one in (ONE, TWO)]

    transport.close()
    assert deliveries == [Delivery(), Delivery()]
    assert (tmp_path / "events.jsonl").read_bytes() == ONE.body + b"\n" + TWO.body + b"\n"
    assert [record.getMessage().split(": ")[1:3] for record in caplog.records] == [
        ["transport.transports.gone", "transport.sslContext"],
        ["transport.transports.slow", "transport.timeoutInMillis"],
    ]


def test_composite_part_that_fails_one_event_stays_reachable() -> None:
    bad, later = message("bad"), message("later")
    with failing_at(b"bad") as (url, got):
        transport = transport_of(
            {"type": "composite", **under({"only": {"type": "http", "url": url}})}
        )
        deliveries = [transport.send(some, 5) for some in ([bad, ONE], [later])]
        transport.close()

    assert deliveries[0].unsent == (bad,)
    assert deliveries[1] == Delivery()
    assert got == [ONE.body, later.body]


def under(parts: dict[str, dict[str, str]]) -> dict[str, str]:
    """The conf of a composite's parts."""
    return {
        f"transports.{name}.{key}": value
        for name, part in parts.items()
        for key, value in part.items()
    }


@pytest.mark.parametrize(
    ("conf", "fault"),
    [
        (
            {"type": "smoke"},
            "transport.type: 'smoke' is none of kafka, http, file, console, composite",
        ),
        ({"type": "http"}, "transport.url: the http transport needs an http or https address"),
        (
            {"type": "http", "url": "http://u:p@h/"},
            "transport.url: put credentials into transport.auth, not into the address",
        ),
        (
            {"type": "http", "url": "http://h:99999"},
            "transport.url: its host or port cannot be read",
        ),
        ({"type": "http", "url": "http://[::1"}, "transport.url: its host or port cannot be read"),
        ({"type": "file"}, "transport.location: the file transport needs it"),
        ({"type": "kafka"}, "transport.properties.bootstrap.servers: the kafka transport needs it"),
        ({"type": "composite"}, "transport.transports: the composite transport needs at least one"),
        (
            {"type": "composite", "transports.a.type": "file", "transports.b.type": "smoke"},
            (
                "transport.transports.a: transport.location: the file transport needs it; "
                "transport.transports.b: transport.type: 'smoke' is none of kafka, http, file, console, composite"
            ),
        ),
    ],
)
def test_invalid_conf_is_reported_with_key_and_reason(conf: dict[str, str], fault: str) -> None:
    with pytest.raises(TransportConfError) as error:
        transport_of(conf)

    assert str(error.value) == fault


def test_kafka_accepts_the_java_names_of_security_settings() -> None:
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
    topic = f"client.{uuid4().hex}"
    client = OpenLineageClient(
        config={
            "transport": {
                "type": "strandline_spark.delivery.transports.openlineage.KafkaPythonTransport",
                "topic": topic,
                "config": {"bootstrap.servers": kafka},
            }
        }
    )
    run = Run("22222222-2222-4222-8222-222222222222")
    client.emit(
        RunEvent(
            eventType=RunState.START,
            eventTime="2026-11-21T12:00:00Z",
            run=run,
            job=Job("ns", "job"),
        )
    )
    client.close()

    (record,) = records_of(kafka, topic, 1)
    assert record.key == b"run:ns/job"
    assert json.loads(record.value)["run"]["runId"] == run.runId


LATE = """
import atexit, sys
from pathlib import Path

def at_exit():
    outbox.put(Message("run:a/b", b'{"late": 1}', vital=True))
    outbox.close(20)

atexit.register(at_exit)
from strandline_spark.delivery.outbox import Outbox
from strandline_spark.delivery.spool import Spool
from strandline_spark.delivery.transport import Message
from strandline_spark.delivery.transports.registry import transport_of

conf = {"type": "kafka", "topicName": sys.argv[2], "properties.bootstrap.servers": sys.argv[1]}
outbox = Outbox(lambda: transport_of(conf), Spool(Path(sys.argv[3]), 1_000_000))
outbox.put(Message("run:a/b", b'{"early": 1}', vital=True))
assert outbox.flush(60)
"""


@pytest.mark.kafka
def test_events_at_interpreter_exit_reach_kafka(kafka: str, tmp_path: Path) -> None:
    topic = f"late.{uuid4().hex}"

    subprocess.run(
        [sys.executable, "-c", LATE, kafka, topic, str(tmp_path)], check=True, timeout=120
    )

    values = [record.value for record in records_of(kafka, topic, 2)]
    assert values == [b'{"early": 1}', b'{"late": 1}']
    assert list(tmp_path.iterdir()) == []
