"""Untrusted TLS and wrong passwords keep events for a driver with the right conf."""

from __future__ import annotations

import signal
import ssl
from collections.abc import Iterator, Mapping
from pathlib import Path
from uuid import uuid4

import pytest

from deploy.kafka import Broker
from fixtures.emitter.builders import message
from fixtures.emitter.recording import RecordingServer, recording_server
from fixtures.emitter.secured import LOGIN_MODULE, PASSWORD, USER, Certificate
from fixtures.emitter.sending import sender
from fixtures.emitter.topics import records_of
from strandline_spark.delivery.outbox import Outbox
from strandline_spark.delivery.spool import Spool
from strandline_spark.delivery.transports.registry import transport_of

ONE = message("one", vital=True)


@pytest.fixture
def server(tls: Certificate) -> Iterator[RecordingServer]:
    """A backend that speaks TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tls.file, tls.key)
    with recording_server(context) as found:
        yield found


def test_http_trusts_only_the_configured_certificate(
    server: RecordingServer, tls: Certificate, tmp_path: Path
) -> None:
    untrusting = {"type": "http", "url": f"https://127.0.0.1:{server.port}"}
    trusting = {**untrusting, "sslContextConfig.caFile": str(tls.file)}

    reason = tried(untrusting, tmp_path)
    assert "CERTIFICATE_VERIFY_FAILED" in reason
    assert server.bodies() == []

    outbox = outbox_to(trusting, tmp_path)
    assert server.wait_until(lambda: server.bodies() == [ONE.body])
    outbox.close(5)


def kafka_conf(
    address: str, topic: str, password: str, certificate_file: Path | None
) -> dict[str, str]:
    """The conf as Kafka's Java producer has it."""
    quoted = password.replace("\\", "\\\\").replace('"', '\\"')
    conf = {
        "bootstrap.servers": address,
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": f'{LOGIN_MODULE} required username="{USER}" password="{quoted}";',
    }
    if certificate_file is not None:
        conf["ssl.ca.location"] = str(certificate_file)
    return {
        "type": "kafka",
        "topicName": topic,
        **{f"properties.{key}": value for key, value in conf.items()},
    }


@pytest.mark.slow
@pytest.mark.kafka
def test_kafka_logs_in_over_tls_or_reports_why_not(secured: Broker, tls: Certificate) -> None:
    topic, address = f"secured.{uuid4().hex}", secured.bootstrap
    answers = []
    for password, trusted in (("wrong", tls.file), (PASSWORD, None), (PASSWORD, tls.file)):
        with sender(kafka_conf(address, topic, password, trusted)) as process:
            answers.append(
                process.send("one", 5 if (password, trusted) != (PASSWORD, tls.file) else 60)
            )

    assert [answer["sent"] for answer in answers] == [False, False, True]
    assert [bool(answer["reason"]) for answer in answers] == [True, True, False]
    assert values(address, topic, tls) == [message("one").body]


@pytest.mark.slow
@pytest.mark.kafka
def test_kafka_leaks_no_connections_to_a_silent_broker(secured: Broker, tls: Certificate) -> None:
    with sender(
        kafka_conf(secured.bootstrap, f"silent.{uuid4().hex}", PASSWORD, tls.file)
    ) as process:
        assert process.send("one", 60)["sent"]
        secured.process.send_signal(signal.SIGSTOP)
        try:
            silent = [process.send("two", 0.5) for _ in range(4)]
        finally:
            secured.process.send_signal(signal.SIGCONT)
        healed = process.send("two", 60)

    assert [answer["sent"] for answer in silent] == [False] * 4
    assert silent[3]["open"] == silent[1]["open"]
    assert healed["sent"]


def tried(settings: Mapping[str, str], folder: Path) -> str:
    """Return the reason why an event is not delivered; it is in the spool then."""
    transport = transport_of(settings)
    delivery = transport.send([ONE], 5)
    transport.close()
    assert delivery.unsent == (ONE,)
    spool = Spool(folder, 1_000_000)
    assert spool.append([ONE]) == 1
    spool.close()
    return delivery.reason


def outbox_to(settings: Mapping[str, str], folder: Path) -> Outbox:
    """The outbox of a driver with that conf."""
    return Outbox(lambda: transport_of(settings), Spool(folder, 1_000_000), first_pause=0.05)


def values(address: str, topic: str, tls: Certificate) -> list[bytes]:
    """Return the first value that came to the topic."""
    login = {"sasl_plain_username": USER, "sasl_plain_password": PASSWORD}
    secured = {"security_protocol": "SASL_SSL", "sasl_mechanism": "SCRAM-SHA-512"}
    records = records_of(address, topic, 1, ssl_cafile=str(tls.file), **secured, **login)
    return [record.value for record in records]
