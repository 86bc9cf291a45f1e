"""The speed of turning events into rows, and what they take.

From a real broker's topic, over HTTP and in process, into SQLite and PostgreSQL, which commit to
disk. Events are Spark's (about 17 KB, tables of 20 to 50 columns with column lineage). Broker,
database, collector and the load share the machine. Processor time is that of collector and
database together.
"""

import gc
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

from sqlalchemy import Connection, text

from bench._machine import (
    Server,
    command,
    cpu_micros,
    folder,
    migrated,
    opened,
    peak_mebibytes,
    postgres,
    serving,
    stored_bytes,
    wait_for,
)
from bench._senders import fill_topic, post
from bench.events import events
from bench.report import record
from deploy import kafka
from strandline.settings import Settings
from strandline.store.ingest.take import Caches, Record, take
from strandline.store.sql.engine import reading

# What a careful operator sets.
POSTGRES = ("shared_buffers = '512MB'", "max_wal_size = '4GB'")
BATCH = Settings().batch_records
ARRAY = 100  # events


@dataclass(frozen=True)
class Sizes:
    """The number of events of each part; a short run only shows that everything works."""

    warm: int
    measured: int
    cold: int
    requests: int


FULL = Sizes(warm=4000, measured=24_000, cold=6000, requests=12_000)
SHORT = Sizes(warm=500, measured=1500, cold=1500, requests=400)


def run(short: bool) -> None:
    """Measure everything."""
    sizes = SHORT if short else FULL
    with folder() as place, postgres(place, POSTGRES) as server:
        broker = kafka.start(place / "kafka", jvm=("-XX:+UseSerialGC",))
        try:
            from_topic(place, server, broker.bootstrap, sizes)
        finally:
            broker.stop()
        over_http(server, sizes.requests)
        in_process(place, server, sizes)


def from_topic(place: Path, server: Server, bootstrap: str, sizes: Sizes) -> None:
    """Record topic to commit by `strandline consume`."""
    total = sizes.warm + sizes.measured
    fill_topic(bootstrap, "bench", events(total))
    for kind, least in (("postgres", 4500), ("sqlite", 6000)):
        drained = _drained(place, server, bootstrap, kind, "bench", sizes.warm, total)
        record(f"ingest.topic.{kind}", drained.rate, "events/s", least=least)
        note = "with the Kafka client, without the broker"
        record(f"ingest.topic.{kind}.cpu", drained.micros, "us/event", note=note)
        record(f"ingest.topic.{kind}.rss", drained.peak, "MiB", most=350)
    fill_topic(bootstrap, "cold", events(sizes.cold, seed=7, cold=True))
    drained = _drained(place, server, bootstrap, "postgres", "cold", 0, sizes.cold)
    note = "every name is new"
    record("ingest.topic.postgres.cold", drained.rate, "events/s", least=1500, note=note)


@dataclass(frozen=True)
class Drained:
    """One run of a consumer over a topic that was full already."""

    rate: float
    micros: float
    peak: float


def _drained(
    place: Path, server: Server, bootstrap: str, kind: str, topic: str, warm: int, total: int
) -> Drained:
    """Take a whole topic into a new store, measured from when `warm` records are in."""
    url = _fresh(place, server, kind, f"topic_{topic}")
    environ = {
        "STRANDLINE_DATABASE_URL": url,
        "STRANDLINE_KAFKA_BOOTSTRAP_SERVERS": bootstrap,
        "STRANDLINE_KAFKA_TOPIC": topic,
        "STRANDLINE_KAFKA_GROUP": f"{kind}_{topic}",
    }
    with command("consume", environ) as pid, _counting(url) as taken:
        roots = [pid] if kind == "sqlite" else [pid, server.pid]
        wait_for(lambda: taken() > warm)
        first, began, cpu = taken(), time.monotonic(), cpu_micros(*roots)
        wait_for(lambda: taken() >= total)
        seconds, cpu = time.monotonic() - began, cpu_micros(*roots) - cpu
        measured = max(1, total - first)  # a short run may be over before the first look
        return Drained(measured / seconds, cpu / measured, peak_mebibytes(pid))


@contextmanager
def _counting(url: str) -> Iterator[Callable[[], int]]:
    """Yield a function that counts the records of topics in a store."""
    with opened(url) as engine:

        def count() -> int:
            with reading(engine).connect() as connection:
                return int(connection.scalar(text("SELECT sum(next_offset) FROM offsets")) or 0)

        yield count


def over_http(server: Server, count: int) -> None:
    """Record POSTs by many senders, and of arrays by one."""
    generated = events(3 * count)  # of one stream, as its jobs would send them
    with serving(server.fresh("http")) as (port, pid):
        post(port, "/api/v1/lineage", islice(generated, count // 4), senders=64)
        cpu = cpu_micros(pid, server.pid)
        single = post(port, "/api/v1/lineage", islice(generated, count), senders=64)
        cpu = cpu_micros(pid, server.pid) - cpu
        arrays = list(_arrays(islice(generated, count)))
        batches = post(port, "/api/v1/lineage/batch", arrays, senders=1)
    note = f"64 senders, {single.refused} refused"
    record("ingest.http.single", single.per_second(), "events/s", least=2500, note=note)
    note = "each answered after its commit"
    record("ingest.http.single.p99", single.percentile(0.99), "ms", most=40, note=note)
    note = "server, writer and database"
    record("ingest.http.single.cpu", cpu / count, "us/event", note=note)
    rate, note = batches.per_second() * ARRAY, f"one sender, arrays of {ARRAY} events"
    record("ingest.http.batch", rate, "events/s", least=4000, note=note)


def _arrays(values: Iterable[bytes]) -> Iterator[bytes]:
    remaining = iter(values)
    while group := list(islice(remaining, ARRAY)):
        yield b"[" + b",".join(group) + b"]"


def in_process(place: Path, server: Server, sizes: Sizes) -> None:
    """Record processor time and bytes from an event's JSON to its commit in a warm store."""
    generated = events(sizes.warm + sizes.measured)
    warm, measured = list(islice(generated, sizes.warm)), list(generated)
    received = sum(map(len, measured)) / len(measured)
    gc.collect()
    gc.freeze()  # the benchmark's own events are not to be walked again and again
    for kind in ("postgres", "sqlite"):
        roots = (server.pid,) if kind == "postgres" else ()
        caches = Caches()
        with opened(_fresh(place, server, kind, "bytes")) as engine, engine.connect() as connection:
            _take(connection, warm, caches)
            size, cpu = stored_bytes(engine), cpu_micros(*roots)
            own = time.thread_time()
            _take(connection, measured, caches)
            spent = (time.thread_time() - own) * 1e6 + cpu_micros(*roots) - cpu
            size = stored_bytes(engine) - size
        note = f"of {received:,.0f} received; tables and indexes"
        record(f"ingest.written.{kind}.bytes", size / len(measured), "bytes/event", note=note)
        record(f"ingest.bytes.{kind}", spent / len(measured), "us/event", note="without a client")
    gc.unfreeze()


def _take(connection: Connection, bodies: list[bytes], caches: Caches) -> None:
    """Take the events in, a batch a transaction."""
    for start in range(0, len(bodies), BATCH):
        now = datetime.now(UTC)  # each batch has its moment of receipt, as an array over HTTP has
        take(connection, [Record(body, now) for body in bodies[start : start + BATCH]], caches)
        connection.commit()
        caches.commit()


def _fresh(place: Path, server: Server, kind: str, name: str) -> str:
    if kind == "postgres":
        return server.fresh(name)
    return migrated(f"sqlite:///{place / name}.db")
