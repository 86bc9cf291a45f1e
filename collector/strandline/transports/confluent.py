"""confluent-kafka (librdkafka) behind the methods of kafka-python's consumer that ours uses: `pip install strandline[fast]`.

It fetches nothing of a partition before `seek` says from where: the group may have been elsewhere than the store is. Its
errors are raised as kafka-python's, so that one consumer handles both clients in one way.
"""

import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from confluent_kafka import Consumer, KafkaException
from confluent_kafka import KafkaError as ClientError
from confluent_kafka import TopicPartition as Place
from kafka import OffsetAndMetadata, TopicPartition
from kafka.errors import IllegalStateError, KafkaConnectionError, KafkaError

from strandline.settings import Settings

ANSWER_SECONDS = 10.0
NOBODY, REFUSALS = ClientError._ALL_BROKERS_DOWN, (ClientError._AUTHENTICATION, ClientError._SSL)
LOG = logging.getLogger("kafka.confluent")  # silent, as all below "kafka": what matters reaches us as an exception
NAMES = {
    "sasl_plain_username": "sasl.username",
    "sasl_plain_password": "sasl.password",
    "ssl_cafile": "ssl.ca.location",
    "ssl_certfile": "ssl.certificate.location",
    "ssl_keyfile": "ssl.key.location",
    "ssl_password": "ssl.key.password",
    "ssl_crlfile": "ssl.crl.location",
    "ssl_ciphers": "ssl.cipher.suites",
}


class FetchedRecord(NamedTuple):
    """A record, with the names that kafka-python has for its parts."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    value: bytes | None


class ConfluentConsumer:
    """A member of the group, used from one thread."""

    def __init__(self, settings: Settings) -> None:
        self._fault: ClientError | None = None
        self._granted: set[TopicPartition] = set()  # by the group
        self._next: dict[TopicPartition, int] = {}  # what is read, and the offset that comes next
        self._paused: set[TopicPartition] = set()
        self._moved = False  # `_next` is not yet what librdkafka reads
        with translated():
            self._client = Consumer(properties_of(settings) | {"error_cb": self._note}, logger=LOG)
        try:
            self._client.list_topics(settings.kafka_topic, ANSWER_SECONDS)
        except KafkaException as error:
            self._client.poll(0)  # this is when `_note` hears why
            self._client.close()
            raise KafkaConnectionError(self._fault.str() if self._fault else reason_of(error)) from error

    def _note(self, error: ClientError) -> None:
        """Keep what librdkafka reports for the end of a poll; what it repairs on its own is no fault."""
        if error.code() in REFUSALS or (self._fault is None and (error.fatal() or error.code() == NOBODY)):
            self._fault = error

    def subscribe(self, topics: Sequence[str], *, listener: Any) -> None:
        """Join the group; the listener hears of its decisions during `poll`."""

        def assigned(client: Consumer, places: list[Place]) -> None:
            client.assign([])  # `seek` says from where each is to be read
            self._granted = set(partitions_of(places))
            listener.on_partitions_assigned(partitions_of(places))

        def revoked(client: Consumer, places: list[Place]) -> None:
            client.resume(places_of(self._paused))  # else it is still paused when it comes back
            client.unassign()
            for one in (self._granted, self._next, self._paused):
                one.clear()
            listener.on_partitions_revoked(partitions_of(places))

        self._client.subscribe(list(topics), on_assign=assigned, on_revoke=revoked, on_lost=revoked)

    def unsubscribe(self) -> None:
        """Leave the group."""
        self._client.unsubscribe()

    def poll(self, milliseconds: int, most: int) -> Mapping[TopicPartition, Sequence[FetchedRecord]]:
        """What has come, and at least one record if one comes in time; a fault is raised where there is no record."""
        self._fault = None
        with translated():
            self._move()
            found = self._client.consume(1, milliseconds / 1000)  # more would be waited for until the time is over
        if found and most > 1:
            with suppress(KafkaException):  # it comes again where there is nothing to be lost by it
                found += self._client.consume(most - 1, 0)
        records: dict[TopicPartition, list[FetchedRecord]] = {}
        for one in found:
            if one.error():
                self._fault = one.error()
                continue
            record = FetchedRecord(one.topic(), one.partition(), one.offset(), one.timestamp()[1], one.value())
            partition = TopicPartition(record.topic, record.partition)
            if partition in self._next:  # it may have been taken away during this very poll
                records.setdefault(partition, []).append(record)
        self._next |= {partition: messages[-1].offset + 1 for partition, messages in records.items()}
        if self._fault and not records:
            raise KafkaError(self._fault.str())
        return records

    def _move(self) -> None:
        """Read every partition from where `seek` wants it; those that were read before go on where they are."""
        if self._moved:
            self._client.assign([Place(*partition, offset) for partition, offset in self._next.items()])
            self._client.pause(places_of(self._paused))
            self._moved = False

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Read a partition from there on, whether it was read before or not; an IllegalStateError where it is not ours."""
        if partition not in self._granted:
            raise IllegalStateError(f"{partition} was taken away")
        self._next[partition] = offset
        self._moved = True

    def assignment(self) -> set[TopicPartition]:
        """The partitions that are read."""
        return set(self._next)

    def pause(self, partition: TopicPartition) -> None:
        """Fetch nothing of a partition for now."""
        self._paused.add(partition)
        with translated():
            self._client.pause(places_of([partition]))

    def paused(self) -> set[TopicPartition]:
        """The partitions of which nothing is fetched for now."""
        return set(self._paused)

    def resume(self, partition: TopicPartition) -> None:
        """Fetch a partition again."""
        self._paused.discard(partition)
        with translated():
            self._client.resume(places_of([partition]))

    def highwater(self, partition: TopicPartition) -> int | None:
        """The offset after the last record, as the last fetch had it; None before the first."""
        with suppress(KafkaException):
            _low, high = self._client.get_watermark_offsets(Place(*partition), cached=True)
            return high if high >= 0 else None
        return None

    def beginning_offsets(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """The first offset of each, as the broker has it."""
        return {partition: self._bounds(partition)[0] for partition in partitions}

    def end_offsets(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """The offset after the last of each, as the broker has it."""
        return {partition: self._bounds(partition)[1] for partition in partitions}

    def _bounds(self, partition: TopicPartition) -> tuple[int, int]:
        with translated():
            low, high = self._client.get_watermark_offsets(Place(*partition), timeout=ANSWER_SECONDS)
        return low, high

    def commit_async(self, positions: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Report how far we are, for lag tools: nothing depends on it."""
        places = [Place(*partition, position.offset) for partition, position in positions.items()]
        if places:
            with suppress(KafkaException):
                self._client.commit(offsets=places, asynchronous=True)

    def close(self, *, autocommit: bool, timeout_ms: int) -> None:
        """Leave the group; librdkafka has a time-out of its own, and commits nothing."""
        self._client.close()


@contextmanager
def translated() -> Iterator[None]:
    """librdkafka's errors as kafka-python's."""
    try:
        yield
    except KafkaException as error:
        raise KafkaError(reason_of(error)) from error


def reason_of(error: KafkaException) -> str:
    """What librdkafka says in words."""
    (inner, *_) = error.args
    return inner.str() if isinstance(inner, ClientError) else str(inner)


def partitions_of(places: Collection[Place]) -> list[TopicPartition]:
    """Partitions as kafka-python has them."""
    return [TopicPartition(place.topic, place.partition) for place in places]


def places_of(partitions: Collection[TopicPartition]) -> list[Place]:
    """Partitions as librdkafka has them."""
    return [Place(*partition) for partition in partitions]


def properties_of(settings: Settings) -> dict[str, Any]:
    """librdkafka's properties for what `consumer_arguments` asks of kafka-python.

    It fetches ahead on a thread of its own: what waits there is bounded, and looked after often where that bound is met.
    """
    session = settings.kafka_session_seconds * 1000
    return {
        "bootstrap.servers": settings.kafka_bootstrap_servers or "",
        "group.id": settings.kafka_group,
        "client.id": "strandline",
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "auto.offset.reset": "earliest",
        "allow.auto.create.topics": True,
        "isolation.level": "read_committed",  # what a producer took back was never sent
        "check.crcs": True,
        "session.timeout.ms": session,
        "heartbeat.interval.ms": min(3000, session // 4),
        "max.poll.interval.ms": max(300_000, session),
        "fetch.message.max.bytes": 4 * 1024 * 1024,
        "fetch.max.bytes": 16 * 1024 * 1024,
        "queued.max.messages.kbytes": 16 * 1024,
        "fetch.queue.backoff.ms": 20,
        **dict(_secured(name, value) for name, value in _with_key(settings.kafka_security).items()),
    }


def _with_key(security: Mapping[str, Any]) -> dict[str, Any]:
    """kafka-python finds the key in the file of the certificate where no other file is named."""
    certificate = security.get("ssl_certfile")
    return ({"ssl_keyfile": certificate} if certificate else {}) | dict(security)


def _secured(name: str, value: Any) -> tuple[str, Any]:
    if name == "ssl_check_hostname":
        return "ssl.endpoint.identification.algorithm", "https" if value else "none"
    return NAMES.get(name, name.replace("_", ".")), value
