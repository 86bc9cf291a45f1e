"""A broker that wants TLS and a password, and what the settings of one Kafka client are to the other."""

import sys
from dataclasses import replace
from uuid import uuid4

import pytest
from kafka import KafkaProducer
from sqlalchemy import Engine

from deploy.kafka import Broker
from fixtures.emitter.secured import PASSWORD, USER, Certificate
from fixtures.kafka import SECONDS, Running, settings_of, taken, values, wait_until
from strandline.errors import SettingsError
from strandline.settings import Settings, read_settings
from strandline.transports import clients
from strandline.transports.confluent import properties_of


@pytest.mark.kafka
def test_each_client_logs_in_over_tls_with_the_same_settings(
    sqlite_engine: Engine, secured: Broker, tls: Certificate, client: str
) -> None:
    topic = f"secured-{uuid4().hex[:8]}"
    security = {
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_plain_username": USER,
        "sasl_plain_password": PASSWORD,
        "ssl_cafile": str(tls.file),
    }
    producer = KafkaProducer(bootstrap_servers=secured.bootstrap, **security)
    for value in values(10):
        producer.send(topic, value)
    producer.close(timeout=SECONDS)
    settings = replace(settings_of(secured.bootstrap, topic), kafka_security=security)
    stranger = replace(settings, kafka_security=security | {"sasl_plain_password": "wrong"})

    with Running(sqlite_engine, stranger) as refused:
        wait_until(lambda: "no Kafka at" in refused.log.getvalue())
    assert taken(sqlite_engine) == 0

    with Running(sqlite_engine, settings) as running:
        wait_until(lambda: taken(sqlite_engine) == 10)
    assert f"client={client}" in running.log.getvalue()


def test_librdkafka_gets_what_kafka_python_would() -> None:
    given = {
        "BOOTSTRAP_SERVERS": "a:9092,b:9093",
        "SESSION_SECONDS": "600",
        "SECURITY_PROTOCOL": "SASL_SSL",
        "SASL_MECHANISM": "PLAIN",
        "SASL_PLAIN_USERNAME": "me",
        "SASL_PLAIN_PASSWORD": "secret",
        "SSL_CHECK_HOSTNAME": "false",
        "SSL_CAFILE": "ca.pem",
        "SSL_CERTFILE": "mine.pem",
        "SSL_CIPHERS": "HIGH",
    }
    settings = read_settings({f"STRANDLINE_KAFKA_{name}": value for name, value in given.items()})

    properties = properties_of(settings)

    secured = {name: value for name, value in properties.items() if name.startswith(("security.", "sasl.", "ssl."))}
    assert secured == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "me",
        "sasl.password": "secret",
        "ssl.endpoint.identification.algorithm": "none",
        "ssl.ca.location": "ca.pem",
        "ssl.certificate.location": "mine.pem",
        "ssl.key.location": "mine.pem",  # where kafka-python looks for it
        "ssl.cipher.suites": "HIGH",
    }
    assert properties["bootstrap.servers"] == "a:9092,b:9093"
    assert properties["session.timeout.ms"] == properties["max.poll.interval.ms"] == 600_000


@pytest.mark.parametrize(
    ("asked", "mechanism", "taken_is"),
    [
        ("auto", None, "confluent"),
        ("auto", "SCRAM-SHA-256", "confluent"),
        ("auto", "GSSAPI", "kafka-python"),
        ("confluent", None, "confluent"),
        ("kafka-python", None, "kafka-python"),
    ],
)
def test_the_faster_client_is_taken_where_it_is_there_and_can_log_in(
    asked: str, mechanism: str | None, taken_is: str
) -> None:
    security = {"sasl_mechanism": mechanism} if mechanism else {}

    assert clients.client_name(Settings(kafka_client=asked, kafka_security=security)) == taken_is


def test_a_client_that_cannot_be_had_is_a_fault_only_where_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)  # as where the extra is not installed

    assert clients.client_name(Settings()) == "kafka-python"
    with pytest.raises(
        SettingsError, match=r"KAFKA_CLIENT=confluent: it is not installed: pip install 'strandline\[fast\]'"
    ):
        clients.client_name(Settings(kafka_client="confluent"))
    with pytest.raises(SettingsError, match="cannot do AWS_MSK_IAM"):
        clients.client_name(Settings(kafka_client="confluent", kafka_security={"sasl_mechanism": "AWS_MSK_IAM"}))
