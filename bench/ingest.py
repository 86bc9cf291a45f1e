"""The speed of turning events into rows.

From a real broker's topic and over HTTP, into SQLite and PostgreSQL.

Events are Spark's (about 17 KB, tables of 20 to 50 columns with column lineage). Broker, database,
collector and the load share the machine. PostgreSQL and SQLite commit to disk. Processor time is
that of collector and database together.
"""

import gc
import os
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from itertools import islice
from subprocess import Popen

import httpx
from sqlalchemy import Engine

from bench import _peer, _senders, _written
from bench._machine import (
    broker,
    busy_micros,
    command,
    counting,
    cpu_micros,
    folder,
    migrated,
    owning,
    peak_mebibytes,
    postgres,
    stopped,
    stored_bytes,
    wait_for,
)
from bench._parts import FULL, SHORT, Parts
from bench.events import events, new_runs
from deploy.kafka import free_port

TOPIC = "bench"


@dataclass(frozen=True)
class Drained:
    """One run of consumers over a topic that was full already."""

    rate: float
    micros: float
    peak: float
    busy: float  # cores of the whole machine

    def limit(self) -> str:
        """Say if processor time was left for more."""
        cores = os.cpu_count() or 1
        ours = self.rate * self.micros / 1e6
        what = (
            "the cores were the limit"
            if self.busy > 0.93 * cores
            else "the cores were not the limit"
        )
        return f"{what}: {self.busy:.2f} of {cores} busy, {ours:.2f} of them with consumers and database"


def run(short: bool) -> None:
    """Measure everything; a short run leaves out the peer."""
    sizes = SHORT if short else FULL
    with ExitStack() as stack:
        place = stack.enter_context(folder())
        server = stack.enter_context(postgres(place))
        with broker(place / "kafka") as bootstrap:
            parts = Parts(place, server, bootstrap, sizes)
            ours = from_topic(parts)
            visible(parts)
            if not short:
                _peer.run(parts.folder, parts.bootstrap, parts.server, ours.rate, ours.micros)
        over_http(parts)
        from_bytes(parts)
        in_bytes(parts)
        grown(parts)


def from_topic(parts: Parts) -> Drained:
    """Topic to commit by `strandline consume`; gives what was measured of one into PostgreSQL."""
    sizes = parts.sizes
    total = sizes.warm + sizes.events
    _fill(parts, TOPIC, events(total), partitions=2)
    one = drained(parts, "postgres", TOPIC, sizes.warm, total)
    parts.tell("topic.postgres", one.rate, "events/s", least=4500)
    parts.tell(
        "topic.postgres.cpu",
        one.micros,
        "us/event",
        note="with the Kafka client, without the broker",
    )
    parts.tell("topic.postgres.rss", one.peak, "MiB", most=350)
    two = shared(parts)
    least = 1.7 if one.busy * 1.7 <= (os.cpu_count() or 1) else 0  # where cores allow
    parts.tell("topic.two_consumers", two.rate / one.rate, "x one", least=least, note=two.limit())
    parts.tell("topic.one_consumer.cores", one.busy, "cores", note=one.limit())
    embedded = drained(parts, "sqlite", TOPIC, sizes.warm, total)
    parts.tell("topic.sqlite", embedded.rate, "events/s", least=6000)
    parts.tell(
        "topic.sqlite.cpu",
        embedded.micros,
        "us/event",
        note="with the Kafka client, without the broker",
    )
    _fill(parts, "cold", events(sizes.cold, seed=7, cold=True), partitions=2)
    cold = drained(parts, "cold", "cold", 0, sizes.cold)
    parts.tell("topic.postgres.cold", cold.rate, "events/s", least=1500, note="every name is new")
    return one


def drained(parts: Parts, name: str, topic: str, warm: int, total: int) -> Drained:
    """Take a whole topic into a new store, measured from the moment at which `warm` records are in."""
    url = (
        f"sqlite:///{parts.folder / 'bench.db'}"
        if name == "sqlite"
        else parts.server.fresh(f"bench_{name}")
    )
    migrated(url).dispose()
    before = stored_bytes(url)
    with ExitStack() as stack:
        running = stack.enter_context(consuming(parts, url, topic)).pid
        roots = [running] if name == "sqlite" else [running, parts.server.pid]
        taken = stack.enter_context(counting(url))
        wait_for(lambda: taken() > warm)
        first, began, cpu, busy = taken(), time.monotonic(), cpu_micros(*roots), busy_micros()
        wait_for(lambda: taken() >= total)
        seconds, spent, busy = (
            time.monotonic() - began,
            cpu_micros(*roots) - cpu,
            busy_micros() - busy,
        )
        peak = peak_mebibytes(running)
    if warm:
        note = f"of {_mean_size(parts):,.0f} received"
        parts.tell(f"stored.{name}", (stored_bytes(url) - before) / total, "bytes/event", note=note)
    measured = max(1, total - first)  # a short run may be over before it can be looked at
    return Drained(measured / seconds, spent / measured, peak, busy / seconds / 1e6)


def shared(parts: Parts) -> Drained:
    """Two consumers of one topic, each with a partition and warmed up, from the moment at which the topic is full.

    They are stopped while it is filled: the load would take the cores that they are to share.
    """
    sizes, url = parts.sizes, parts.server.fresh("bench_two")
    generated = events(2 * sizes.warm + sizes.events)
    warm, rest = list(islice(generated, 2 * sizes.warm)), list(generated)
    _senders.make_topic(parts.bootstrap, "two", 2)
    with ExitStack() as stack:
        running = [stack.enter_context(consuming(parts, url, "two")).pid for _ in range(2)]
        taken, owners = stack.enter_context(counting(url)), stack.enter_context(owning(url))
        wait_for(lambda: owners() == 2)
        _senders.send(parts.bootstrap, "two", warm, 2)
        wait_for(lambda: taken() >= len(warm))
        with stopped(running):
            _senders.send(parts.bootstrap, "two", rest, 2)
        roots = [*running, parts.server.pid]
        began, cpu, busy = time.monotonic(), cpu_micros(*roots), busy_micros()
        wait_for(lambda: taken() >= len(warm) + len(rest))
        seconds, spent, busy = (
            time.monotonic() - began,
            cpu_micros(*roots) - cpu,
            busy_micros() - busy,
        )
        peak = max(peak_mebibytes(pid) for pid in running)
    return Drained(len(rest) / seconds, spent / len(rest), peak, busy / seconds / 1e6)


def visible(parts: Parts) -> None:
    """From sending an event to the topic until REST shows its run, at 1,000 events a second."""
    url, port = parts.server.fresh("bench_visible"), free_port()
    _senders.make_topic(parts.bootstrap, "visible", 2)
    environ = environ_of(parts, url, "visible") | {"STRANDLINE_PORT": str(port)}
    sent: dict[str, float] = {}
    with command("serve", environ), ThreadPoolExecutor(1) as pool:
        wait_for(lambda: _ready(port))
        ended = pool.submit(_paced, parts, sent)
        waits = sorted(_seen(port, sent, ended.done))
        ended.result()
    parts.tell(
        "visible.p99",
        waits[int(0.99 * len(waits))],
        "ms",
        most=1000,
        note="in REST, at 1,000 events/s",
    )


def _paced(parts: Parts, sent: dict[str, float]) -> None:
    """Send 1,000 events a second.

    Every 100th is waited for, or the questions would take the cores.
    """
    sending, began = _senders.producer(parts.bootstrap), time.monotonic()
    for number, (run_id, event) in enumerate(new_runs(parts.sizes.paced)):
        time.sleep(max(0.0, began + number / 1000 - time.monotonic()))
        sending.send("visible", event, partition=number % 2)
        if number % 100 == 0:
            sent[run_id] = time.monotonic()
    sending.close(timeout=60)


def _seen(port: int, sent: dict[str, float], all_sent: Callable[[], bool]) -> Iterator[float]:
    """Milliseconds until each run was there, in the order in which they were sent."""
    done: set[str] = set()
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30) as client:
        while not (all_sent() and len(done) == len(sent)):
            waiting = next((run for run in list(sent) if run not in done), None)
            if (
                waiting
                and client.get("/api/v2/runs/detail", params={"runId": waiting}).status_code == 200
            ):
                done.add(waiting)
                yield 1000 * (time.monotonic() - sent[waiting])
            else:
                time.sleep(0.01)


def over_http(parts: Parts) -> None:
    """POST by many senders and by one, alone and in batches."""
    count = parts.sizes.requests
    generated = events(4 * count)  # of one stream, as its jobs would send them
    with serving(parts) as (port, server):
        _senders.load(port, islice(generated, count // 4), connections=64)
        cpu = cpu_micros(server, parts.server.pid)
        many = _senders.load(port, islice(generated, count), connections=64)
        cpu = cpu_micros(server, parts.server.pid) - cpu
        alone = _senders.load(port, islice(generated, count // 10), connections=1)
        groups = list(_arrays(islice(generated, count)))
        batches = _senders.load(port, groups, connections=1, path="/api/v1/lineage/batch")
        groups_of_many = list(_arrays(islice(generated, count)))
        from_many = _senders.load(port, groups_of_many, connections=8, path="/api/v1/lineage/batch")
        refused = sum(len(one.refused) for one in (many, alone, batches, from_many))
    parts.tell(
        "http.single",
        many.per_second(),
        "events/s",
        least=2500,
        note=f"64 senders, {refused} refused",
    )
    parts.tell(
        "http.single.p99",
        many.percentile(0.99),
        "ms",
        most=40,
        note="each answered after its commit",
    )
    parts.tell("http.single.cpu", cpu / count, "us/event", note="server, writer and database")
    parts.tell("http.senders.cpu", many.cpu / count, "us/event", note="on the same cores")
    parts.tell("http.one_sender", alone.per_second(), "events/s", note="one event after the other")
    rate = batches.per_second() * count / len(groups)
    parts.tell("http.batch", rate, "events/s", least=4000, note="one sender, arrays of 100 events")
    from_eight = from_many.per_second() * count / len(groups_of_many)
    parts.tell(
        "http.batch.senders",
        from_eight,
        "events/s",
        least=4000,
        note="eight senders, arrays of 100 events",
    )
    parts.tell("http.batch_gain", rate / alone.per_second(), "x single", least=10)


@contextmanager
def serving(parts: Parts) -> Iterator[tuple[int, int]]:
    """(port, process id) of `strandline serve` on PostgreSQL."""
    port = free_port()
    environ = {
        "STRANDLINE_DATABASE_URL": parts.server.fresh("bench_http"),
        "STRANDLINE_PORT": str(port),
    }
    with command("serve", environ) as running:
        wait_for(lambda: _ready(port))
        yield port, running.pid


def from_bytes(parts: Parts) -> None:
    """Processor time from bytes to commit on a warm store, without a client."""
    generated = events(parts.sizes.warm + parts.sizes.staged)
    warm, staged = list(islice(generated, parts.sizes.warm)), list(generated)
    urls = {
        "postgres": parts.server.fresh("bench_bytes"),
        "sqlite": f"sqlite:///{parts.folder / 'bytes.db'}",
    }
    for name, url in urls.items():
        with _opened(url) as engine:
            roots = (parts.server.pid,) if name == "postgres" else ()
            micros = _written.micros_an_event(engine, roots, warm, staged)
        parts.tell(f"bytes.{name}", micros, "us/event", note="collector and database")


def in_bytes(parts: Parts) -> None:
    """Measure the cost of events beside processor time.

    Statements, rows, bytes in tables with their indexes, write-ahead log.
    """
    generated = events(parts.sizes.warm + parts.sizes.staged)
    warm, staged = list(islice(generated, parts.sizes.warm)), list(generated)
    urls = {
        "postgres": parts.server.fresh("bench_written"),
        "sqlite": f"sqlite:///{parts.folder / 'written.db'}",
    }
    for name, url in urls.items():
        with _opened(url) as engine:
            found = _written.written(engine, warm, staged)
        note = f"of {_mean_size(parts):,.0f} received"
        parts.tell(
            f"written.{name}.bytes",
            found.stored,
            "bytes/event",
            note=f"{note}; tables and indexes, warm",
        )
        parts.tell(
            f"written.{name}.bytes_of_run",
            found.per_run,
            "bytes/run",
            note="two events of a batch run, many of a stream",
        )
        parts.tell(f"written.{name}.wal", found.wal, "bytes/event", note="write-ahead log")
        parts.tell(f"written.{name}.rows", found.rows, "rows/event", note="inserted or changed")
        parts.tell(
            f"written.{name}.statements",
            found.statements,
            "a batch",
            note=f"of {_written.BATCH} events",
        )


def grown(parts: Parts) -> None:
    """Measure the cost of an event in a store of so many runs."""
    sizes = parts.sizes.stores
    with _opened(parts.server.fresh("bench_grown")) as engine:
        generated = (event for _, event in new_runs(sizes[-1]))
        roots = (parts.server.pid,)
        found = _written.growth(engine, roots, generated, sizes, parts.sizes.window)
    for size, micros in zip(sizes, found, strict=True):
        parts.tell(f"runs.{size}", micros, "us/event", note="of the last events before that size")
    parts.tell("runs.growth", 100 * found[-1] / found[0] - 100, "% more", most=10)


@contextmanager
def _opened(url: str) -> Iterator[Engine]:
    engine = migrated(url)
    gc.collect()
    gc.freeze()  # the events of the benchmark itself are not to be walked again and again
    try:
        yield engine
    finally:
        gc.unfreeze()
        engine.dispose()


def consuming(parts: Parts, url: str, topic: str) -> AbstractContextManager[Popen[bytes]]:
    """`strandline consume` on a topic."""
    return command("consume", environ_of(parts, url, topic))


def environ_of(parts: Parts, url: str, topic: str) -> dict[str, str]:
    """The settings of a collector with a consumer; the group is the database's own."""
    return {
        "STRANDLINE_DATABASE_URL": url,
        "STRANDLINE_KAFKA_BOOTSTRAP_SERVERS": parts.bootstrap,
        "STRANDLINE_KAFKA_TOPIC": topic,
        "STRANDLINE_KAFKA_GROUP": url[-40:].replace("/", "_"),
        "STRANDLINE_KAFKA_SESSION_SECONDS": "120",  # nobody is taken for dead who is only stopped
    }


def _fill(parts: Parts, topic: str, values: Iterable[bytes], partitions: int) -> None:
    _senders.make_topic(parts.bootstrap, topic, partitions)
    _senders.send(parts.bootstrap, topic, values, partitions)


def _arrays(values: Iterable[bytes], size: int = 100) -> Iterator[bytes]:
    remaining = iter(values)
    while group := list(islice(remaining, size)):
        yield b"[" + b",".join(group) + b"]"


def _mean_size(parts: Parts) -> float:
    sample = list(events(500))
    return sum(map(len, sample)) / len(sample)


def _ready(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/readyz", timeout=5).status_code == 200
    except httpx.TransportError:
        return False
