"""A broker killed or stopped repeatedly: each event is stored once.

`make soak` does so for longer: STRANDLINE_SOAK_EVENTS (300,000), STRANDLINE_SOAK_RESTARTS (60),
STRANDLINE_SOAK_SEED.
"""

import os
import random
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from kafka import KafkaProducer
from sqlalchemy import Engine, select

from deploy import kafka as brokers
from fixtures.kafka import environ_of, make_topic, process, stored, values
from fixtures.waiting import wait_until
from strandline.core.openlineage.facets import content_hash
from strandline.store.schema.received_tables import event_keys
from strandline.store.sql.engine import make_engine, reading
from worlds.builders import rows

pytestmark = pytest.mark.kafka
SOAK_EVENTS = int(os.environ.get("STRANDLINE_SOAK_EVENTS", "300000"))
SOAK_RESTARTS = int(os.environ.get("STRANDLINE_SOAK_RESTARTS", "60"))
SEED = int(os.environ.get("STRANDLINE_SOAK_SEED", "1000"))
TOPIC, PARTITIONS = "restarts", 3
PATIENCE = 180.0  # seconds without any progress


class Sending(threading.Thread):
    """Sends all events, a part at a time, each until the broker has it.

    Those whose answer was lost may be in the topic twice.
    """

    def __init__(
        self, bootstrap: str, bodies: Sequence[bytes], part: int, taken: Callable[[], int]
    ) -> None:
        super().__init__(daemon=True)
        self._bodies, self._part, self._taken = bodies, part, taken
        self.error: BaseException | None = None
        self._producer = KafkaProducer(
            bootstrap_servers=bootstrap,
            linger_ms=20,
            retries=10_000,
            reconnect_backoff_max_ms=500,
            delivery_timeout_ms=round(PATIENCE * 1000),
            max_block_ms=round(PATIENCE * 1000),
            enable_idempotence=False,
        )

    def run(self) -> None:
        """Send; a part waits until half of the one before was taken."""
        try:
            for start in range(0, len(self._bodies), self._part):
                wait_for(self._taken, start - self._part // 2)
                part = self._bodies[start : start + self._part]
                sent = [
                    self._producer.send(TOPIC, body, partition=n % PARTITIONS)
                    for n, body in enumerate(part)
                ]
                for one in sent:
                    one.get(PATIENCE)
        except BaseException as error:  # noqa: BLE001 - it is raised below, in the test's own thread
            self.error = error
        finally:
            self._producer.close()


def wait_for(progress: Callable[[], int], wanted: int) -> None:
    """Wait until so much is done; fail when there is no progress for long."""
    seen = progress()

    def has_advanced() -> bool:
        return progress() > seen

    while seen < wanted:
        wait_until(has_advanced, PATIENCE, every=0.2)
        seen = progress()


def with_archive(folder: Path) -> tuple[str, ...]:
    """Options of brokers that take their classes from an archive, which one broker leaves at its end: each starts in half the time."""
    archive, quiet = folder / "classes.jsa", "-Xlog:disable"
    brokers.start(
        folder / "first", jvm=(*brokers.QUICK, f"-XX:ArchiveClassesAtExit={archive}", quiet)
    ).stop()
    return (*brokers.QUICK, f"-XX:SharedArchiveFile={archive}", quiet)


def check(engine: Engine, folder: Path, events: int, restarts: int, seed: int) -> None:
    """Produce and consume while the broker goes and comes.

    Then every event has to be there once, with its run.
    """
    bodies, chance, part = values(events), random.Random(seed), events // (restarts + 1)
    jvm = with_archive(folder)
    broker = brokers.start(folder / "broker", jvm=jvm)
    port = int(broker.bootstrap.rpartition(":")[2])

    def taken() -> int:
        assert sending.error is None, sending.error
        return stored(engine)

    try:
        make_topic(broker.bootstrap, TOPIC, PARTITIONS)
        sending = Sending(broker.bootstrap, bodies, part, lambda: stored(engine))
        with process(environ_of(engine, broker.bootstrap, TOPIC)):
            sending.start()
            for number in range(restarts):
                wait_for(taken, part * number + chance.randrange(part // 2))
                (broker.kill if chance.random() < 0.7 else broker.stop)()
                broker = brokers.start(folder / "broker", port, jvm)
            wait_for(taken, events)
            sending.join(PATIENCE)
    finally:
        broker.kill()

    with engine.connect() as connection:
        found = set(connection.scalars(select(event_keys.c.hash)))
    assert found == set(map(content_hash, bodies))
    assert rows(engine, "SELECT count(*) FROM runs") == [(events,)]
    assert rows(engine, "SELECT count(*) FROM raw_events") == [(events,)]
    assert rows(engine, "SELECT count(*) FROM set_aside") == [(0,)]


@pytest.fixture
def reader_engine(sqlite_url: str, java: str) -> Iterator[Engine]:
    """The consumer's database; needs a broker's Java."""
    engine = reading(make_engine(sqlite_url))
    yield engine
    engine.dispose()


@pytest.mark.parametrize(
    ("events", "restarts", "seed"),
    [
        pytest.param(10_000, 4, 1, id="4 restarts"),
        pytest.param(SOAK_EVENTS, SOAK_RESTARTS, SEED, id="soak", marks=pytest.mark.soak),
    ],
)
def test_broker_restarts_lose_and_duplicate_no_event(
    events: int, restarts: int, seed: int, reader_engine: Engine, tmp_path: Path
) -> None:
    check(reader_engine, tmp_path, events, restarts, seed)
