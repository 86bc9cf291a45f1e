"""Takes records from a Kafka topic into the store, each exactly once.

Many consumers may share a topic.

A batch and the offsets after it are one transaction. Offsets move by compare-and-set on offset and
owner, so of two consumers that both believe they own a partition only one can commit. What is
committed to Kafka is only for lag tools.
"""

import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from kafka import ConsumerRebalanceListener, KafkaConsumer, OffsetAndMetadata, TopicPartition
from kafka.errors import IllegalStateError, KafkaError
from sqlalchemy import Connection, Engine
from structlog.typing import FilteringBoundLogger

from strandline.errors import FencedError, StrandlineError
from strandline.metrics import Metrics
from strandline.settings import Settings
from strandline.store.ingest.take import Outcome
from strandline.store.ingest.transactions import nothing_else
from strandline.transports.partitions import PORTION_BYTES, Batch, Bounds, Holdings

POLL_MILLISECONDS = 500
PATIENCE_SECONDS = (
    1.0  # a write that takes longer is waited for by polling, which keeps the membership alive
)
COMMIT_SECONDS = 2.0
AGAIN_SECONDS = 2.0
GATHERING_SECONDS, GATHERING_MILLISECONDS = 0.5, 50
Done = TypeVar("Done")


class Consumer:
    """One member of the consumer group.

    `run` returns after `stop`, and raises when it must not go on.

    `finish` is the last thing that each transaction does, `after` what is done once it is
    committed.
    """

    def __init__(
        self,
        engine: Engine,
        settings: Settings,
        metrics: Metrics,
        log: FilteringBoundLogger,
        finish: Callable[[Connection], object] = nothing_else,
        after: Callable[[], None] = lambda: None,
    ) -> None:
        self._settings = settings
        self._metrics = metrics
        self._log = log.bind(topic=settings.kafka_topic, group=settings.kafka_group)
        self._stopping = threading.Event()
        on_retry = metrics.retries.labels("kafka").inc
        self._holdings = Holdings(
            engine, settings, self._log, on_retry, self._stopping.wait, finish, after
        )
        self._at_once = settings.batch_records  # fewer, once they are seen to be large
        self._writing = ThreadPoolExecutor(1, thread_name_prefix="consumer-write")
        self._batch: Future[list[Outcome]] | None = None  # under way
        self._began = 0.0
        self._listener = NotingListener()
        self._told_at = 0.0
        self._lag_told: set[tuple[str, str]] = set()  # of which topics and partitions
        self.state: str | None = "the consumer has not started"

    def run(self) -> None:
        """Take records until stopped."""
        kafka = self._connected()
        try:
            while not self._stopping.is_set():
                records = self._gathered(kafka)  # while those before are written
                self._settle(kafka)
                self._look_behind(kafka)
                for partition in self._follow_assignment(kafka):
                    records.pop(
                        partition, None
                    )  # read from where the group was, which is not where the store is
                if batch := self._holdings.batch_of(records):
                    self._begin(batch)
                self._tell_positions(kafka)
            self._settle(kafka)
        finally:
            self._leave(kafka)

    def stop(self) -> None:
        """Finish the batch under way, then end."""
        self._stopping.set()

    def _gathered(self, kafka: KafkaConsumer) -> dict[Any, list[Any]]:
        """The records of one transaction.

        What a poll gives and, while the topic is known to hold more, what the next ones
        give. A fetch brings a few hundred large events; five fetches in one transaction cost half
        as much an event.
        """
        batches: dict[Any, list[Any]] = {}
        until, patience, left = (
            time.monotonic() + GATHERING_SECONDS,
            POLL_MILLISECONDS,
            self._at_once,
        )
        while left > 0 and time.monotonic() < until:
            more = self._polled(kafka, patience, left)
            for partition, records in more.items():
                batches.setdefault(partition, []).extend(records)
            patience, left = GATHERING_MILLISECONDS, self._at_once - sum(map(len, batches.values()))
            if not more or not is_behind(kafka, batches):
                break
        return batches

    def _polled(
        self, kafka: KafkaConsumer, milliseconds: int = POLL_MILLISECONDS, most: int | None = None
    ) -> Mapping[Any, Sequence[Any]]:
        try:
            records: Mapping[Any, Sequence[Any]] = kafka.poll(milliseconds, most or self._at_once)
        except KafkaError as error:
            self._say(f"Kafka does not answer: {error!r}")
            self._stopping.wait(AGAIN_SECONDS)
            return {}
        self._say(None)
        self._at_once = records_of_a_portion(records, self._settings.batch_records)
        return records

    def _follow_assignment(self, kafka: KafkaConsumer) -> Collection[TopicPartition]:
        """Release what was taken from us, claim what is newly ours, and return that.

        Reading continues at the store's offsets.
        """
        revoked, assigned = self._listener.news()
        if revoked:
            self._polling_meanwhile(kafka, self._writing.submit(self._holdings.release, revoked))
        if not assigned:
            return ()
        try:
            bounds = bounds_of(kafka, assigned)
        except KafkaError as error:
            self._say(
                f"Kafka does not tell where {self._settings.kafka_topic} begins and ends: {error!r}"
            )
            self._listener.on_partitions_assigned(list(assigned))  # again at the next turn
            return assigned
        claimed = self._polling_meanwhile(kafka, self._writing.submit(self._holdings.claim, bounds))
        for partition in sorted(claimed):
            with gone_elsewhere():
                kafka.seek(partition, claimed[partition])
        self._log.info(
            "partitions assigned", partitions=sorted(partition.partition for partition in assigned)
        )
        return assigned

    def _begin(self, batch: Batch) -> None:
        """Start to store a batch, in one transaction."""
        self._began = time.monotonic()
        self._batch = self._writing.submit(self._holdings.write, batch)

    def _settle(self, kafka: KafkaConsumer) -> None:
        """See the batch under way stored, and tell what became of its records and how long it took.

        This holds if a later part of it fails, too.
        """
        working, self._batch = self._batch, None
        if working is None:
            return
        try:
            self._polling_meanwhile(kafka, working)
        except FencedError as error:
            self._start_over(kafka, error)
        finally:
            if self._holdings.committed:
                self._tell(self._holdings.committed, time.monotonic() - self._began)

    def _polling_meanwhile(self, kafka: KafkaConsumer, working: "Future[Done]") -> Done:
        """Return the result of the work.

        Meanwhile poll without taking records, so that the group keeps this consumer.
        """
        while not _done(working, PATIENCE_SECONDS):
            for partition in kafka.assignment():
                with gone_elsewhere():
                    kafka.pause(partition)
            for partition, early in self._polled(
                kafka
            ).items():  # assigned just now: its records come again
                with gone_elsewhere():
                    kafka.seek(partition, early[0].offset)
        for partition in kafka.paused():
            with gone_elsewhere():
                kafka.resume(partition)
        return working.result()

    def _look_behind(self, kafka: KafkaConsumer) -> None:
        """Claim partitions again that are shorter than the stored offset.

        Their topic was recreated or truncated.
        """
        for partition, offset in self._holdings.positions().items():
            with gone_elsewhere():
                if (kafka.highwater(partition) or offset) < offset:
                    self._listener.on_partitions_assigned([partition])

    def _start_over(self, kafka: KafkaConsumer, error: FencedError) -> None:
        """Forget everything and join the group again; another consumer owns our partitions."""
        self._log.warning("fenced", reason=str(error))
        self._metrics.lease_losses.inc()
        self._holdings.forget()
        kafka.unsubscribe()
        self._listener.news()
        kafka.subscribe([self._settings.kafka_topic], listener=self._listener)

    def _tell(self, outcomes: Sequence[Outcome], seconds: float) -> None:
        self._metrics.committed("kafka", [outcome.kind for outcome in outcomes], seconds)
        reasons = [outcome.reason for outcome in outcomes if outcome.kind == "dead"]
        if reasons:
            self._log.warning("dead letters", number=len(reasons), first=reasons[0])

    def _tell_positions(self, kafka: KafkaConsumer) -> None:
        """Tell Kafka and the metrics how far we are: for people, nothing depends on it."""
        if time.monotonic() - self._told_at < COMMIT_SECONDS:
            return
        self._told_at = time.monotonic()
        positions = self._holdings.positions()
        kafka.commit_async(
            {
                partition: OffsetAndMetadata(offset, "", -1)
                for partition, offset in positions.items()
            }
        )
        for partition, offset in positions.items():
            with gone_elsewhere():
                lag = max(0, (kafka.highwater(partition) or offset) - offset)
                self._metrics.lag.labels(partition.topic, str(partition.partition)).set(lag)
        self._tell_no_lag_but_of(positions)

    def _tell_no_lag_but_of(self, positions: Collection[TopicPartition]) -> None:
        """Drop the lag of partitions that another consumer reads now.

        A number that stays would be a lag that never ends.
        """
        held = {(position.topic, str(position.partition)) for position in positions}
        for gone in self._lag_told - held:
            self._metrics.lag.remove(*gone)
        self._lag_told = held

    def _connected(self) -> KafkaConsumer:
        while True:
            try:
                kafka = KafkaConsumer(**consumer_arguments(self._settings))
                kafka.subscribe([self._settings.kafka_topic], listener=self._listener)
            except KafkaError as error:
                self._say(f"no Kafka at {self._settings.kafka_bootstrap_servers}: {error!r}")
                if self._stopping.wait(AGAIN_SECONDS):
                    raise StrandlineError("stopped before Kafka could be reached") from error
            else:
                return kafka

    def _leave(self, kafka: KafkaConsumer) -> None:
        self._writing.shutdown()
        self._holdings.release_all()
        self._tell_no_lag_but_of(())
        self.state = self.state or "the consumer has stopped"
        kafka.close(autocommit=False, timeout_ms=5000)

    def _say(self, state: str | None) -> None:
        if state and state != self.state:
            self._log.warning(state)
        self.state = state


class NotingListener(ConsumerRebalanceListener):  # type: ignore[misc]
    """Notes what the group decides.

    It runs on Kafka's I/O thread, where waiting would cost the membership.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._revoked: set[TopicPartition] = set()
        self._assigned: set[TopicPartition] = set()

    def on_partitions_revoked(self, revoked: Sequence[TopicPartition]) -> None:
        """These are no longer ours."""
        with self._lock:
            self._revoked |= set(revoked)
            self._assigned -= set(revoked)

    def on_partitions_assigned(self, assigned: Sequence[TopicPartition]) -> None:
        """These are ours now, perhaps again."""
        with self._lock:
            self._assigned |= set(assigned)

    def news(self) -> tuple[set[TopicPartition], set[TopicPartition]]:
        """Return the partitions revoked and assigned since the last call."""
        with self._lock:
            revoked, assigned = self._revoked, self._assigned
            self._revoked, self._assigned = set(), set()
        return revoked, assigned


def consumer_arguments(settings: Settings) -> dict[str, Any]:
    """Return kafka-python's arguments.

    Fetches are small enough to bound memory; a larger single record still comes.
    """
    return {
        "bootstrap_servers": (settings.kafka_bootstrap_servers or "").split(","),
        "group_id": settings.kafka_group,
        "client_id": "strandline",
        "bootstrap_timeout_ms": 10_000,  # then it is logged, and tried again
        "enable_auto_commit": False,
        "auto_offset_reset": "earliest",
        "isolation_level": "read_committed",  # what a producer took back was never sent
        "session_timeout_ms": settings.kafka_session_seconds * 1000,
        "heartbeat_interval_ms": min(3000, settings.kafka_session_seconds * 250),
        "max_partition_fetch_bytes": 4 * 1024 * 1024,
        "fetch_max_bytes": 16 * 1024 * 1024,
        **settings.kafka_security,
    }


@contextmanager
def gone_elsewhere() -> Iterator[None]:
    """The group may take a partition away at any moment, on Kafka's own thread.

    Its news come at the next turn.
    """
    with suppress(IllegalStateError, ValueError, KeyError):
        yield


def is_behind(kafka: KafkaConsumer, records_of: Mapping[Any, Sequence[Any]]) -> bool:
    """Return whether a partition was seen to hold more than was found of it."""
    with gone_elsewhere():
        return any(
            (kafka.highwater(partition) or 0) > records[-1].offset + 1
            for partition, records in records_of.items()
        )
    return False


def records_of_a_portion(polled: Mapping[Any, Sequence[Any]], most: int) -> int:
    """Return how many records like these to take at once.

    Large ones are not to be held in memory by the thousand.
    """
    sizes = [len(message.value or b"") for messages in polled.values() for message in messages]
    return max(1, min(most, PORTION_BYTES * len(sizes) // (sum(sizes) + 1))) if sizes else most


def bounds_of(kafka: KafkaConsumer, partitions: Collection[TopicPartition]) -> Bounds:
    """The first and the next offset of each partition, as the broker has them."""
    beginnings, ends = (
        kafka.beginning_offsets(list(partitions)),
        kafka.end_offsets(list(partitions)),
    )
    return {partition: (beginnings[partition], ends[partition]) for partition in partitions}


def _done(writing: "Future[Any]", seconds: float) -> bool:
    try:
        writing.exception(timeout=seconds)
    except TimeoutError:
        return False
    return True
