"""A topic of a test's own, taken by each of the two Kafka clients."""

from uuid import uuid4

import pytest

from fixtures.kafka import make_topic


@pytest.fixture(params=["kafka-python", "confluent"])
def client(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The Kafka client that consumers of this test use, in its process and in those that it starts."""
    name: str = request.param
    monkeypatch.setenv("STRANDLINE_KAFKA_CLIENT", name)
    return name


@pytest.fixture
def topic(kafka: str, client: str) -> str:
    """A topic of two partitions."""
    name = f"events-{uuid4().hex[:8]}"
    make_topic(kafka, name, partitions=2)
    return name
