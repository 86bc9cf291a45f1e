"""A broker that wants TLS and a password."""

from dataclasses import replace
from uuid import uuid4

import pytest
from kafka import KafkaProducer
from sqlalchemy import Engine

from deploy.kafka import Broker
from fixtures.emitter.secured import PASSWORD, USER, Certificate
from fixtures.kafka import SECONDS, Running, settings_of, taken, values
from fixtures.waiting import wait_until


@pytest.mark.slow
@pytest.mark.kafka
def test_a_consumer_logs_in_over_tls(
    sqlite_engine: Engine, secured: Broker, tls: Certificate
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

    with Running(sqlite_engine, settings):
        wait_until(lambda: taken(sqlite_engine) == 10)
