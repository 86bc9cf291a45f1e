"""Prometheus's metrics at /metrics.

One object of counters, made by whoever starts a process and handed to its parts.

Events are counted after their transaction, so that consumed = stored + duplicate + dead + unread
holds at every scrape.
"""

import os
import threading
from collections import Counter as Count
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from strandline import __version__

OUTCOMES = {
    "http": ("stored", "duplicate", "dead", "unread"),
    "kafka": ("stored", "duplicate", "dead", "unread", "tombstone"),
}
SECONDS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)


class Events(Collector):
    """Events by source and outcome, taken together under one lock.

    A scrape never sees half a batch.
    """

    def __init__(self) -> None:
        self._counts: Count[tuple[str, str]] = Count()
        self._lock = threading.Lock()

    def add(self, source: str, outcomes: Iterable[str]) -> None:
        """Count a committed batch."""
        counts = Count(outcomes)
        with self._lock:
            for outcome, number in counts.items():
                self._counts[source, outcome] += number

    def total(self) -> int:
        """All events that were taken in."""
        with self._lock:
            return sum(self._counts.values())

    def collect(self) -> Iterator[Metric]:
        """Two families of one moment."""
        with self._lock:
            counts = dict(self._counts)
        consumed = CounterMetricFamily(
            "strandline_consumed_events", "All events of a source", labels=["source"]
        )
        by_outcome = CounterMetricFamily(
            "strandline_events",
            "Events: stored, duplicate, dead letter, unread (a fault of ours), "
            "tombstone (without a value)",
            labels=["source", "outcome"],
        )
        for source, outcomes in OUTCOMES.items():
            consumed.add_metric(
                [source], sum(number for (of, _), number in counts.items() if of == source)
            )
            for outcome in outcomes:
                by_outcome.add_metric([source, outcome], counts.get((source, outcome), 0))
        yield consumed
        yield by_outcome


class Memory(Collector):
    """Resident memory of this process and of the one that writes for it, as the kernel counts it.

    `writer` returns the id of that process, if it runs.
    """

    def __init__(self) -> None:
        self.writer: Callable[[], int | None] = lambda: None

    def collect(self) -> Iterator[Metric]:
        """One family; without values where the kernel does not tell."""
        family = GaugeMetricFamily(
            "strandline_resident_bytes",
            "Memory of the server (main) and of its writing process (writer)",
            labels=["process"],
        )
        for process, size in self.resident_bytes().items():
            family.add_metric([process], size)
        yield family

    def total(self) -> int:
        """Bytes of all processes of this server together."""
        return sum(self.resident_bytes().values())

    def resident_bytes(self) -> dict[str, int]:
        """Bytes of this process (main) and of the one that writes (writer).

        Empty where the kernel does not tell.
        """
        sizes = {"main": _resident("self")}
        writer = self.writer()
        if writer is not None:
            sizes["writer"] = _resident(writer)
        return {process: size for process, size in sizes.items() if size}


def _resident(process: int | str) -> int:
    try:
        with Path(f"/proc/{process}/statm").open("rb", buffering=0) as statm:
            pages = statm.read().split()[1]
    except OSError:
        return 0
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


class StoreGauges:
    """The size and state of the store at the last look.

    Nothing is asked of the database during a scrape.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        def gauge(name: str, about: str, *labels: str) -> Gauge:
            return Gauge(f"strandline_{name}", about, labels, registry=registry)

        about_runs = (
            "Runs: running now; lost and failed within a day. A run below another of its state "
            "is not counted again"
        )
        self.runs = gauge("runs", about_runs, "state")
        self.dead_letters = gauge("dead_letters", "Stored dead letters")
        self.unread_events = gauge(
            "unread_events", "Stored events that a fault of Strandline kept from being read"
        )
        self.database_bytes = gauge("database_bytes", "Size of the database")
        self.oldest_event = gauge(
            "oldest_event_timestamp_seconds", "When the oldest stored event was received"
        )
        self.newest_event = gauge(
            "newest_event_timestamp_seconds", "When the newest event was received"
        )
        self.retention_days = gauge(
            "retention_days", "STRANDLINE_RETENTION_DAYS; 0: events are never deleted"
        )
        self.behind_facts = gauge(
            "follower_behind_facts", "Facts about versions that this server's model lacks"
        )
        self.delay_seconds = gauge(
            "follower_delay_seconds", "Age of the oldest fact that this server's model lacks"
        )
        self.news = gauge("follower_news", "Runs and base tables that wait to become facts")
        self.barrier = gauge(
            "group_barrier", "Barriers of a group: the newest, and the strong one", "group", "kind"
        )
        self.staleness = gauge(
            "group_staleness_seconds",
            "Age of the first barrier that one of its tables lacks",
            "group",
        )
        self.export_behind = gauge(
            "export_behind_changes", "Changes that wait for an export target, at most", "target"
        )
        self.export_failures = gauge(
            "export_failures", "Failures in a row of an export target", "target"
        )
        self.looked_at = gauge(
            "store_sample_timestamp_seconds",
            "When the gauges of the store were last read: twice a minute",
        )


def _tell_version(registry: CollectorRegistry) -> None:
    build = Gauge(
        "strandline_build_info",
        "Version of this program; the value is always 1",
        ["version"],
        registry=registry,
    )
    build.labels(__version__).set(1)


def _refused(registry: CollectorRegistry) -> Counter:
    about = "Events rejected over HTTP, by error code"
    return Counter("strandline_rejected_events", about, ["reason"], registry=registry)


def _over_rate(registry: CollectorRegistry) -> Counter:
    about = "Requests refused because their key exceeded its rate"
    return Counter("strandline_over_rate_requests", about, ["scope"], registry=registry)


class KeptMetrics:
    """The things that a process keeps in memory."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.graph_bytes = Gauge(
            "strandline_graph_bytes",
            "Memory of the jobs kept for lineage, about: at most STRANDLINE_GRAPH_BYTES",
            registry=registry,
        )
        self.graph_jobs = Counter(
            "strandline_graph_jobs",
            "Jobs in answers about lineage, from memory or from the database",
            ["source"],
            registry=registry,
        )


class Answers(NamedTuple):
    """The counters of answers of one method, route and status.

    Looking that up takes longer than counting.
    """

    counter: Counter | None
    seconds: Histogram


class Metrics:
    """All metrics of one process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self.memory = Memory()
        self.registry.register(self.memory)
        self.store = StoreGauges(self.registry)
        _tell_version(self.registry)
        self.events = Events()
        self.registry.register(self.events)
        self.batch_seconds = Histogram(
            "strandline_batch_seconds",
            "Time of a transaction that stores events",
            ["source"],
            buckets=SECONDS,
            registry=self.registry,
        )
        self.expired_rows = Counter(
            "strandline_expired_rows",
            "Rows that retention deleted",
            ["table"],
            registry=self.registry,
        )
        self.returned_bytes = Counter(
            "strandline_returned_bytes",
            "Bytes that retention freed on disk",
            registry=self.registry,
        )
        self.lag = Gauge(
            "strandline_lag_records",
            "Records not yet stored",
            ["topic", "partition"],
            registry=self.registry,
        )
        self.lease_losses = Counter(
            "strandline_lease_losses", "Partitions lost to another consumer", registry=self.registry
        )
        self.retries = Counter(
            "strandline_transaction_retries",
            "Repeated transactions that store events",
            ["source"],
            registry=self.registry,
        )
        self.waiting = Gauge(
            "strandline_waiting_requests",
            "Requests that wait for their commit",
            registry=self.registry,
        )
        self.waiting_bytes = Gauge(
            "strandline_waiting_bytes",
            "Bytes of events that wait for their commit",
            registry=self.registry,
        )
        self.requests = Counter(
            "strandline_http_requests",
            "Answered HTTP requests",
            ["method", "status"],
            registry=self.registry,
        )
        self.http_seconds = Histogram(
            "strandline_http_seconds",
            "Time to answer a request, by route as in /docs",
            ["method", "route"],
            buckets=SECONDS,
            registry=self.registry,
        )
        self._answers: dict[tuple[str, str, int], Answers] = {}
        self.over_rate = _over_rate(self.registry)
        self.kept = KeptMetrics(self.registry)
        self.refused = _refused(self.registry)

    def committed(self, source: str, kinds: Sequence[str], seconds: float) -> None:
        """Count a transaction that is committed with these outcomes."""
        self.events.add(source, kinds)
        self.batch_seconds.labels(source).observe(seconds)

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request answered after so many seconds; status 0: nobody waited for it."""
        answers = self._answers.get((method, route, status))
        if answers is None:
            counter = self.requests.labels(method, str(status)) if status else None
            answers = self._answers[method, route, status] = Answers(
                counter, self.http_seconds.labels(method, route)
            )
        if answers.counter is not None:
            answers.counter.inc()
        answers.seconds.observe(seconds)

    def exposition(self) -> bytes:
        """Return the text that Prometheus scrapes."""
        return generate_latest(self.registry)
