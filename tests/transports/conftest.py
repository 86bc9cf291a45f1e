"""A topic of a test's own on the session's broker."""

from uuid import uuid4

import pytest

from fixtures.kafka import make_topic


@pytest.fixture
def topic(kafka: str) -> str:
    """Return a topic of two partitions."""
    name = f"events-{uuid4().hex[:8]}"
    make_topic(kafka, name, partitions=2)
    return name
