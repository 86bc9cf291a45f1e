"""Senders of OpenLineage events: to an HTTP endpoint, a Kafka topic, or a file of JSON lines.

Each sends all or none of a batch, or raises an error.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol
from urllib.parse import urlsplit

import orjson

from strandline.errors import RefusedItemError, UnavailableError
from strandline.exporters.http_client import Client

KAFKA_SECONDS = 30.0
LINEAGE = "/api/v1/lineage"
BATCH = "/api/v1/openlineage/lineage/batch"


class Message(NamedTuple):
    """One event as bytes, and the key that keeps its job in one partition.

    `deletes` is the path of a job of Marquez that is deleted instead.
    """

    body: bytes
    key: str
    deletes: str = ""


class Sender(Protocol):
    """A way to send events."""

    at_once: int

    def send(self, messages: Sequence[Message]) -> None:
        """Send them in order; raise UnavailableError or RefusedItemError if they were not taken."""

    def close(self) -> None:
        """Close connections and files."""


class HttpSender:
    """An endpoint that takes one event a request."""

    at_once = 1

    def __init__(self, client: Client, path: str) -> None:
        self._client = client
        self._path = path

    def send(self, messages: Sequence[Message]) -> None:
        """Send one after the other."""
        for message in messages:
            if message.deletes:
                self._delete(message.deletes)
            else:
                self._client.send("POST", self._path, message.body)

    def _delete(self, path: str) -> None:
        """Delete a job; one that does not exist is deleted already."""
        if self._client.request("DELETE", path).status not in (200, 202, 204, 404):
            self._client.send("DELETE", path)

    def close(self) -> None:
        """Close the connection."""
        self._client.close()


class HttpBatchSender:
    """OpenMetadata's endpoint, which takes several events a request."""

    at_once = 50

    def __init__(self, client: Client) -> None:
        self._client = client

    def send(self, messages: Sequence[Message]) -> None:
        """Send all in one request."""
        events = b", ".join(message.body for message in messages)
        self._client.send("POST", BATCH, b'{"events": [' + events + b"]}")

    def close(self) -> None:
        """Close the connection."""
        self._client.close()


class FileSender:
    """A file of JSON lines; each batch is on disk when it counts as sent."""

    at_once = 500

    def __init__(self, file: Path) -> None:
        self._file = file

    def send(self, messages: Sequence[Message]) -> None:
        """Add the events; what a full disk took of them is cut off again."""
        try:
            with self._file.open("ab") as file:
                before = file.tell()
                try:
                    file.writelines(message.body + b"\n" for message in messages)
                    file.flush()
                    os.fsync(file.fileno())
                except OSError:
                    os.truncate(self._file, before)
                    raise
        except OSError as error:
            raise UnavailableError(f"{self._file}: {error.strerror or error}") from error

    def close(self) -> None:
        """Do nothing: the file is open only while it is written to."""


class KafkaSender:
    """A topic. The producer is made at the first batch, which may find no broker."""

    at_once = 500

    def __init__(self, servers: str, topic: str, security: dict[str, Any]) -> None:
        self._servers = servers.split(",")
        self._topic = topic
        self._security = security
        self._producer: Any = None

    def send(self, messages: Sequence[Message]) -> None:
        """Send and wait until all replicas have them."""
        # Imported here: only a target with a topic waits for it.
        from kafka.errors import KafkaError, MessageSizeTooLargeError

        try:
            producer = self._producer = self._producer or self._new_producer()
            waiting = [
                producer.send(self._topic, message.body, message.key.encode())
                for message in messages
            ]
            producer.flush(timeout=KAFKA_SECONDS)
            for future in waiting:
                future.get(timeout=KAFKA_SECONDS)
        except MessageSizeTooLargeError as error:
            raise RefusedItemError(f"topic {self._topic}: {error}") from error
        except (KafkaError, OSError, AssertionError) as error:
            self.close()
            raise UnavailableError(
                f"topic {self._topic} at {','.join(self._servers)}: {error!r}"
            ) from error

    def _new_producer(self) -> Any:
        from kafka import KafkaProducer

        return KafkaProducer(
            bootstrap_servers=self._servers,
            max_block_ms=KAFKA_SECONDS * 1000,
            max_request_size=32 << 20,
            compression_type="gzip",
            **self._security,
        )

    def close(self) -> None:
        """Close the producer."""
        if self._producer is not None:
            self._producer.close(timeout=5)
            self._producer = None


def message_of(event: dict[str, Any]) -> Message:
    """Return an event, or the deletion of a job, as a message."""
    if "delete" in event:
        return Message(b"", "", event["delete"])
    job = event.get("job") or event.get("dataset") or {}
    return Message(orjson.dumps(event), f"run:{job.get('namespace')}/{job.get('name')}")


def kafka_address(url: str) -> tuple[str, str]:
    """Return brokers and topic of an address.

    >>> kafka_address("kafka://a:9092,b:9092/lineage")
    ('a:9092,b:9092', 'lineage')
    """
    parts = urlsplit(url)
    return parts.netloc, parts.path.strip("/")
