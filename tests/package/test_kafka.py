"""The broker of demo and tests survives restarts, takes large events, and ends with its parent."""

import subprocess
import sys
from pathlib import Path

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from deploy import jars, kafka

pytestmark = pytest.mark.kafka


@pytest.fixture(autouse=True, scope="module")
def broker_jars() -> None:
    """Skip the test with the reason if there is no broker."""
    try:
        jars.fetch("kafka")
    except jars.JarsError as error:
        pytest.skip(str(error))


@pytest.mark.slow
def test_records_survive_a_kill_and_a_restart(tmp_path: Path) -> None:
    first = kafka.start(tmp_path)
    send(first.bootstrap, b"written before the kill")
    first.kill()

    second = kafka.start(tmp_path)
    try:
        found = read(second.bootstrap)
    finally:
        second.stop()

    assert found == [b"written before the kill"]


@pytest.mark.slow
def test_broker_ends_with_the_process_that_started_it(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "deploy.kafka", str(tmp_path)]
    with subprocess.Popen(
        command, cwd=jars.ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        assert process.stdin
        bootstrap = process.stdout.readline().strip()
        process.stdin.close()
        process.wait(60)

    host, _, port = bootstrap.partition(":")
    assert (host, process.returncode) == ("127.0.0.1", 0)
    assert not is_open(int(port))


def is_open(port: int) -> bool:
    """Return true if a program listens on a port of this machine."""
    import socket

    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def send(bootstrap: str, value: bytes) -> None:
    """Send one record, acknowledged."""
    producer = KafkaProducer(bootstrap_servers=bootstrap)
    producer.send("survivors", value).get(30)
    producer.close(timeout=10)


def read(bootstrap: str) -> list[bytes]:
    """All records of the topic."""
    consumer = KafkaConsumer(bootstrap_servers=bootstrap)
    consumer.assign([TopicPartition("survivors", number) for number in range(3)])
    consumer.seek_to_beginning()
    found = [record.value for records in consumer.poll(20_000).values() for record in records]
    consumer.close()
    return found
