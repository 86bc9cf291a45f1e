"""Records from a real topic: each has one outcome, however the group changes."""

import re
import signal
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, OffsetAndMetadata, TopicPartition
from kafka.admin import NewTopic
from kafka.errors import TopicAlreadyExistsError, UnknownTopicOrPartitionError
from sqlalchemy import Engine, func, select

from fixtures.kafka import (
    SECONDS,
    Running,
    environ_of,
    process,
    send,
    settings_of,
    stored,
    taken,
    values,
)
from fixtures.waiting import wait_until
from strandline.store.schema.received_tables import offsets, raw_events, set_aside
from strandline.store.schema.version_tables import version_facts, version_news
from worlds.sample_events import as_bytes, run_event

pytestmark = pytest.mark.kafka
CONSUMED = 'consumed_events_total{source="kafka"}'


def by_outcome(outcome: str) -> str:
    return f'events_total{{outcome="{outcome}",source="kafka"}}'


def test_every_event_is_stored_once_and_other_records_become_dead_letters(
    engine: Engine, kafka: str, topic: str
) -> None:
    send(kafka, topic, [*values(300), b"no event", *values(100)], partitions=2)

    with Running(engine, settings_of(kafka, topic)) as running:
        wait_until(lambda: taken(engine) == 401)

    assert stored(engine) == 300
    with engine.connect() as connection:
        assert connection.execute(
            select(set_aside.c.topic, set_aside.c.record_offset, set_aside.c.body)
        ).all() == [(topic, 150, b"no event")]
        assert connection.execute(select(offsets.c.token)).scalars().all() == ["", ""]
    assert running.counted(CONSUMED) == 401
    assert running.counted(by_outcome("stored")) == 300
    assert running.counted(by_outcome("duplicate")) == 100
    assert running.counted(by_outcome("dead")) == 1


def test_tombstones_of_a_compacted_topic_are_counted_and_passed_over(
    sqlite_engine: Engine, kafka: str, topic: str
) -> None:
    send(kafka, topic, [*values(2), None, b"", *values(3)])

    with Running(sqlite_engine, settings_of(kafka, topic)) as running:
        wait_until(lambda: taken(sqlite_engine) == 7)

    assert stored(sqlite_engine) == 3
    with sqlite_engine.connect() as connection:
        assert connection.execute(select(set_aside)).all() == []
    assert running.counted(by_outcome("tombstone")) == 2
    assert running.counted(by_outcome("dead")) == 0
    assert running.counted(CONSUMED) == 7


def test_backlog_of_many_fetches_is_stored_in_one_transaction(
    sqlite_engine: Engine, kafka: str, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("strandline.transports.kafka.GATHERING_SECONDS", SECONDS)
    monkeypatch.setattr("strandline.transports.kafka.GATHERING_MILLISECONDS", 10_000)
    plan = {"plan": "x" * 20_000}  # 12 MB in all, of which a fetch brings 4
    send(
        kafka,
        topic,
        [as_bytes(_running(str(number), "load", {"plan": plan})) for number in range(600)],
    )

    with Running(sqlite_engine, settings_of(kafka, topic)) as running:
        wait_until(lambda: taken(sqlite_engine) == 600)

    assert running.counted(CONSUMED) == 600
    assert running.counted('batch_seconds_count{source="kafka"}') == 1


def test_received_at_is_the_brokers_append_time(
    sqlite_engine: Engine, kafka: str, topic: str
) -> None:
    send(kafka, topic, values(1))

    received: list[list[int]] = []
    for group in ("one", "two"):
        with Running(sqlite_engine, replace(settings_of(kafka, topic), kafka_group=group)):
            wait_until(lambda: taken(sqlite_engine) == len(received) + 1)
        with sqlite_engine.begin() as connection:
            received.append(list(connection.execute(select(raw_events.c.received_at)).scalars()))

    assert received[0] == received[1]
    assert len(received[0]) == 1


def test_lag_metric_drops_partitions_of_other_consumers(
    sqlite_engine: Engine, kafka: str, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("strandline.transports.kafka.COMMIT_SECONDS", 0)
    send(kafka, topic, values(20), partitions=2)
    with Running(sqlite_engine, settings_of(kafka, topic)) as first:
        wait_until(lambda: lags_of(first) == ["0", "1"])
        with Running(sqlite_engine, settings_of(kafka, topic)) as second:
            wait_until(
                lambda: (
                    sorted(lags_of(first) + lags_of(second)) == ["0", "1"] and lags_of(second) != []
                )
            )
    assert lags_of(first) == []


def lags_of(running: Running) -> list[str]:
    """Return the partitions of which its metrics tell a lag."""
    return re.findall(
        r'strandline_lag_records\{partition="(\d)"', running.metrics.exposition().decode()
    )


def test_consumer_resumes_at_the_offset_in_the_store(
    sqlite_engine: Engine, kafka: str, topic: str
) -> None:
    send(kafka, topic, values(10))
    with Running(sqlite_engine, settings_of(kafka, topic)):
        wait_until(lambda: taken(sqlite_engine) == 10)
    send(kafka, topic, values(10, start=10))

    with Running(sqlite_engine, settings_of(kafka, topic)) as second:
        wait_until(lambda: taken(sqlite_engine) == 20)

    assert second.counted(CONSUMED) == 10


def test_empty_store_is_filled_from_the_beginning_of_the_topic(
    sqlite_engine: Engine, kafka: str, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    send(kafka, topic, values(10))
    settings = settings_of(kafka, topic)
    member = KafkaConsumer(
        bootstrap_servers=kafka, group_id=settings.kafka_group, enable_auto_commit=False
    )
    member.assign([TopicPartition(topic, 0)])
    member.commit({TopicPartition(topic, 0): OffsetAndMetadata(7, "", -1)})
    member.close()
    monkeypatch.setattr("strandline.transports.kafka.KafkaConsumer", EagerConsumer)

    with Running(sqlite_engine, settings) as running:
        wait_until(lambda: taken(sqlite_engine) == 10)

    assert running.counted(CONSUMED) == 10


class EagerConsumer:
    """A real consumer of which the first poll that tells of an assignment also brings that partition's records."""

    def __init__(self, **arguments: Any) -> None:
        self._kafka = KafkaConsumer(**arguments)
        self._first = True

    def __getattr__(self, name: str) -> Any:
        return getattr(self._kafka, name)

    def poll(self, milliseconds: int, most: int) -> Any:
        """Return the records of one poll; the first call polls until there are some."""
        if not self._first:
            return self._kafka.poll(milliseconds, most)
        self._first = False
        return wait_until(lambda: self._kafka.poll(milliseconds, most))


def test_too_many_consecutive_dead_letters_stop_the_consumer(
    engine: Engine, kafka: str, topic: str
) -> None:
    send(kafka, topic, [*values(5), *(b"log line %d" % number for number in range(50))])

    with Running(engine, replace(settings_of(kafka, topic), max_dead_in_row=50)) as running:
        wait_until(lambda: running.error is not None)

    assert str(running.error) == "50 records in a row are not OpenLineage events"
    assert taken(engine) == 0


def test_event_of_32_mebibytes_is_consumed(sqlite_engine: Engine, kafka: str, topic: str) -> None:
    plan = {"spark.logicalPlan": {"plan": "x" * (32 * 2**20 - 1000)}}
    send(
        kafka, topic, [as_bytes(run_event(run={"runId": "1", "facets": plan})), *values(3, start=2)]
    )

    with Running(sqlite_engine, settings_of(kafka, topic)):
        wait_until(lambda: taken(sqlite_engine) == 4)

    assert stored(sqlite_engine) == 4


@pytest.mark.parametrize("compression", ["gzip", "lz4", "snappy", "zstd"])
def test_every_compression_of_kafka_is_read(
    sqlite_engine: Engine, kafka: str, topic: str, compression: str
) -> None:
    send(kafka, topic, values(50), compression=compression)

    with Running(sqlite_engine, settings_of(kafka, topic)):
        wait_until(lambda: taken(sqlite_engine) == 50)

    assert stored(sqlite_engine) == 50


@pytest.mark.postgres
def test_joining_and_leaving_consumers_store_each_record_once(
    postgres_engine: Engine, kafka: str, topic: str
) -> None:
    settings, sent = replace(settings_of(kafka, topic), batch_records=20), 0

    def send_more(count: int) -> None:
        nonlocal sent
        send(kafka, topic, values(count, start=sent), partitions=2)
        sent += count

    def has_begun(consumer: Running) -> bool:
        """Return true if it has taken anything; earlier records may all be the other one's."""
        send_more(20)
        return consumer.counted(CONSUMED) > 0

    with Running(postgres_engine, settings) as second:
        send_more(1000)
        with Running(postgres_engine, settings) as first:
            wait_until(lambda: has_begun(first))
            send_more(1000)
            wait_until(lambda: taken(postgres_engine) == sent)
        send_more(1000)
        wait_until(lambda: taken(postgres_engine) == sent)

    assert stored(postgres_engine) == sent
    assert first.counted(CONSUMED) + second.counted(CONSUMED) == sent
    assert first.counted(by_outcome("duplicate")) + second.counted(by_outcome("duplicate")) == 0


def test_version_facts_are_derived_before_the_first_query(
    engine: Engine, kafka: str, topic: str
) -> None:
    facet = {"engine": "spark", "queryId": "q", "batchId": 0, "barrierId": 1, "phase": "committed"}
    tracked, other = ({"strandline_barrier": facet | more} for more in ({"group": "bank"}, {}))
    told = [("1", "pays", tracked), ("2", "copies", other)]
    send(kafka, topic, [as_bytes(_running(run, job, facets)) for run, job, facets in told])

    with Running(engine, settings_of(kafka, topic)):
        wait_until(lambda: taken(engine) == 2)

    with engine.connect() as connection:
        assert connection.scalar(select(func.count()).select_from(version_news)) == 0
        facts = connection.execute(select(version_facts.c.kind, version_facts.c.body))
        assert {(kind, b"pays" in body) for kind, body in facts} == {
            ("RunStarted", True),
            ("BarrierCommitted", True),
        }


def _running(run_id: str, job: str, facets: dict[str, Any]) -> dict[str, Any]:
    event = run_event(run_id, "RUNNING", job)
    return event | {"run": event["run"] | {"facets": facets}}


def test_records_of_an_aborted_transaction_are_ignored(
    sqlite_engine: Engine, kafka: str, topic: str
) -> None:
    producer = KafkaProducer(bootstrap_servers=kafka, transactional_id=topic)
    producer.init_transactions()
    for turn, end in enumerate((producer.abort_transaction, producer.commit_transaction)):
        producer.begin_transaction()
        for value in values(5, start=5 * turn):
            producer.send(topic, value, partition=0)
        producer.flush()
        end()
    producer.close(timeout=SECONDS)

    with Running(sqlite_engine, settings_of(kafka, topic)) as running:
        wait_until(lambda: stored(sqlite_engine) == 5)

    assert running.counted(CONSUMED) == 5


@pytest.mark.slow
def test_recreated_topic_is_read_from_its_beginning(
    sqlite_engine: Engine, kafka: str, topic: str
) -> None:
    environ = environ_of(sqlite_engine, kafka, topic, kafka_session_seconds="60")
    send(kafka, topic, values(100))
    with process(environ) as running:
        wait_until(lambda: taken(sqlite_engine) == 100)
        running.send_signal(signal.SIGSTOP)
        remake(kafka, topic)
        send(kafka, topic, values(50, start=100))
        running.send_signal(signal.SIGCONT)
        wait_until(lambda: stored(sqlite_engine) == 150)

    assert taken(sqlite_engine) == 50


def remake(bootstrap: str, topic: str) -> None:
    """Delete a topic and make another one of its name.

    What the stopped consumer asked last may be heard after that: the broker then makes the topic on
    its own.
    """
    wait_until(lambda: is_remade(bootstrap, topic))


def is_remade(bootstrap: str, topic: str) -> bool:
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        with suppress(UnknownTopicOrPartitionError):
            admin.delete_topics([topic])
        admin.create_topics([NewTopic(topic, 2, 1)])
    except TopicAlreadyExistsError:
        return False
    finally:
        admin.close()
    return True
