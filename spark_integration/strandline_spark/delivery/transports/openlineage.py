"""The Kafka transport as a Transport class that openlineage-python loads by its full name.

transport:
  type: strandline_spark.delivery.transports.openlineage.KafkaPythonTransport
  topic: openlineage.events
  config: {bootstrap.servers: "broker:9092"}
"""

from __future__ import annotations

from typing import Any

import attr
from openlineage.client.serde import Serde
from openlineage.client.transport.transport import Config, Transport

from strandline_spark.delivery.transport import Message
from strandline_spark.delivery.transports.kafka import TOPIC, KafkaTransport, settings_of
from strandline_spark.openlineage.events import key_of


class UndeliveredError(RuntimeError):
    """An event did not reach the topic; the message says why."""


@attr.define
class KafkaPythonConfig(Config):
    """Kafka's properties by the names of its Java producer.

    The topic and the time to wait for the broker come with them.
    """

    config: dict[str, str]
    topic: str = TOPIC
    messageKey: str | None = None  # noqa: N815 - openlineage-python's name
    timeout: float = 10.0

    @classmethod
    def from_dict(cls, params: dict[str, Any]) -> KafkaPythonConfig:
        """The config that a client's `transport` section gives.

        Keys that are not ours are passed over.
        """
        fields = {field.name for field in attr.fields(cls)}
        return cls(**{key: value for key, value in params.items() if key in fields})


class KafkaPythonTransport(Transport):
    """Sends each event by kafka-python and waits for its acknowledgement.

    Raises UndeliveredError where none comes.
    """

    kind = "kafka-python"
    config_class = KafkaPythonConfig

    def __init__(self, config: KafkaPythonConfig) -> None:
        self._timeout = config.timeout
        self._transport = KafkaTransport(
            config.topic, settings_of(config.config), config.messageKey
        )

    def emit(self, event: Any) -> None:
        """Send one event."""
        document = Serde.to_dict(event)
        message = Message(_key(document), Serde.to_json(event).encode())
        delivery = self._transport.send([message], self._timeout)
        if delivery.unsent or delivery.refused:
            raise UndeliveredError(f"event not delivered: {delivery.reason}")

    def close(self, timeout: float = -1) -> bool:
        """Close the producer; nothing waits in it."""
        self._transport.close()
        return True


def _key(document: dict[str, Any]) -> str:
    """The key that OpenLineage clients give run, job and dataset events."""
    if "run" in document:
        return key_of(document)
    kind = "job" if "job" in document else "dataset"
    return f"{kind}:{document[kind]['namespace']}/{document[kind]['name']}"
