"""A topic with events, consumers in threads, and `strandline consume` as processes that may be stopped and killed."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from typing import Self

from kafka import KafkaAdminClient, KafkaProducer
from kafka.admin import NewTopic
from sqlalchemy import Engine, func, select

from sample_events import as_bytes, run_event
from strandline.errors import StrandlineError
from strandline.logs import make_log
from strandline.metrics import Metrics
from strandline.runtime.follower import Follower
from strandline.settings import Settings
from strandline.store.schema.tables import event_keys, offsets
from strandline.transports.kafka import Consumer

SECONDS = 120
ROOT = Path(__file__).resolve().parents[2]


def make_topic(bootstrap: str, topic: str, partitions: int = 1) -> None:
    """A new topic."""
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        admin.create_topics([NewTopic(topic, partitions, 1)])
    finally:
        admin.close()


def send(
    bootstrap: str, topic: str, values: Sequence[bytes], partitions: int = 1, compression: str | None = None
) -> None:
    """Send values to the partitions in turn and wait until the broker has them."""
    producer = KafkaProducer(
        bootstrap_servers=bootstrap, linger_ms=5, max_request_size=40_000_000, compression_type=compression
    )
    try:
        sent = [producer.send(topic, value, partition=place % partitions) for place, value in enumerate(values)]
        producer.flush(SECONDS)
        for one in sent:
            one.get(SECONDS)
    finally:
        producer.close(timeout=SECONDS)


def environ_of(engine: Engine, bootstrap: str, topic: str, **more: str) -> dict[str, str]:
    """The settings of a consumer, as environment."""
    return {
        "STRANDLINE_DATABASE_URL": engine.url.render_as_string(hide_password=False),
        "STRANDLINE_KAFKA_BOOTSTRAP_SERVERS": bootstrap,
        "STRANDLINE_KAFKA_TOPIC": topic,
        "STRANDLINE_KAFKA_GROUP": f"group-{topic}",
        "STRANDLINE_LOG_FORMAT": "json",
        **{f"STRANDLINE_{name.upper()}": value for name, value in more.items()},
    }


@contextmanager
def process(environ: dict[str, str], code: str = "", log: Path = Path(os.devnull)) -> Iterator[subprocess.Popen[bytes]]:
    """`strandline consume`, after some `code` in its process; killed at the end if it is still there."""
    command = f"{code}\nimport sys; sys.argv[1:] = ['consume']\nfrom strandline.cli import run\nrun()"
    path = os.pathsep.join(str(ROOT / part) for part in ("collector", "tests"))
    with log.open("ab") as stderr:
        running = subprocess.Popen(
            [sys.executable, "-c", command], env=os.environ | environ | {"PYTHONPATH": path}, stderr=stderr
        )
    try:
        yield running
    finally:
        if running.poll() is None:
            running.send_signal(signal.SIGCONT)
            running.kill()
        running.wait(SECONDS)


def wait_until(what: Callable[[], bool]) -> None:
    """Wait until something is so."""
    deadline = time.monotonic() + SECONDS
    while not what():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.05)


def stored(engine: Engine) -> int:
    """How many events the store has."""
    with engine.connect() as connection:
        return connection.scalar(select(func.count()).select_from(event_keys)) or 0


def taken(engine: Engine) -> int:
    """The sum of the next offsets of all partitions."""
    with engine.connect() as connection:
        return connection.scalar(select(func.sum(offsets.c.next_offset))) or 0


def values(count: int, start: int = 0) -> list[bytes]:
    """Events of runs of their own."""
    return [as_bytes(run_event(str(number))) for number in range(start, start + count)]


def settings_of(bootstrap: str, topic: str) -> Settings:
    """A consumer's settings that notice a dead member within seconds; the client is the environment's, if it names one."""
    return Settings(
        kafka_bootstrap_servers=bootstrap,
        kafka_topic=topic,
        kafka_group=topic,
        kafka_session_seconds=6,
        kafka_client=os.environ.get("STRANDLINE_KAFKA_CLIENT", "auto"),
    )


class Running:
    """A consumer in a thread."""

    def __init__(self, engine: Engine, settings: Settings) -> None:
        self.metrics = Metrics()
        self.log = StringIO()
        self.consumer = Consumer(engine, settings, self.metrics, make_log(stream=self.log), Follower(engine).take_news)
        self.error: StrandlineError | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.consumer.stop()
        self._thread.join(60)
        assert not self._thread.is_alive()

    def counted(self, name: str) -> int:
        """A sample of its metrics, e.g. `lease_losses_total` or `events_total{outcome="dead",source="kafka"}`."""
        lines = self.metrics.exposition().decode().splitlines()
        return next(int(float(line.rpartition(" ")[2])) for line in lines if line.startswith(f"strandline_{name} "))

    def _run(self) -> None:
        try:
            self.consumer.run()
        except StrandlineError as error:
            self.error = error
