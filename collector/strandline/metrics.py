"""What Prometheus sees at /metrics: one object of counters, made by whoever starts a process and handed to its parts.

Events are counted after their transaction, so that consumed = stored + duplicate + dead + unread holds at every scrape.
"""

import threading
from collections import Counter as Count
from collections.abc import Iterable, Iterator, Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

OUTCOMES = ("stored", "duplicate", "dead", "unread")
SECONDS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)


class Events(Collector):
    """Events by source and outcome, taken together under one lock: a scrape never sees half a batch."""

    def __init__(self) -> None:
        self._counts: Count[tuple[str, str]] = Count()
        self._lock = threading.Lock()

    def add(self, source: str, outcomes: Iterable[str]) -> None:
        """Count a committed batch."""
        counts = Count(outcomes)
        with self._lock:
            for outcome, number in counts.items():
                self._counts[source, outcome] += number

    def collect(self) -> Iterator[Metric]:
        """Two families of one moment."""
        with self._lock:
            counts = dict(self._counts)
        consumed = CounterMetricFamily("strandline_consumed_events", "Events taken in", labels=["source"])
        by_outcome = CounterMetricFamily(
            "strandline_events", "Events by what became of them", labels=["source", "outcome"]
        )
        for source in sorted({source for source, _ in counts} | {"http", "kafka"}):
            consumed.add_metric([source], sum(number for (of, _), number in counts.items() if of == source))
            for outcome in OUTCOMES:
                by_outcome.add_metric([source, outcome], counts.get((source, outcome), 0))
        yield consumed
        yield by_outcome


class Metrics:
    """All metrics of one process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self.events = Events()
        self.registry.register(self.events)
        self.batch_seconds = Histogram(
            "strandline_batch_seconds",
            "Time of one transaction with its events",
            ["source"],
            buckets=SECONDS,
            registry=self.registry,
        )
        self.lag = Gauge(
            "strandline_lag_records", "Records not yet taken", ["topic", "partition"], registry=self.registry
        )
        self.lease_losses = Counter(
            "strandline_lease_losses", "Partitions lost to another consumer", registry=self.registry
        )
        self.retries = Counter(
            "strandline_transaction_retries", "Transactions done again", ["source"], registry=self.registry
        )
        self.waiting = Gauge(
            "strandline_waiting_requests", "Requests that wait for their commit", registry=self.registry
        )
        self.waiting_bytes = Gauge("strandline_waiting_bytes", "Bytes of bodies in memory", registry=self.registry)
        self.requests = Counter(
            "strandline_http_requests", "HTTP requests", ["method", "status"], registry=self.registry
        )

    def committed(self, source: str, kinds: Sequence[str], seconds: float) -> None:
        """A transaction with these outcomes is committed."""
        self.events.add(source, kinds)
        self.batch_seconds.labels(source).observe(seconds)

    def exposition(self) -> bytes:
        """The text that Prometheus scrapes."""
        return generate_latest(self.registry)
