"""The metrics of several processes as those of one server."""

from collections.abc import Callable, Iterable, Iterator

from prometheus_client.core import Metric
from prometheus_client.registry import Collector
from prometheus_client.samples import Sample

ADDED = ("counter", "histogram")
HELD_BY_EACH = frozenset(
    f"strandline_{name}"
    for name in ("resident_bytes", "search_pages_bytes", "graph_bytes", "waiting_requests", "waiting_bytes")
)  # gauges of which each process has its part; all others are the first one's alone, which looks at the store
Families = list[Metric]


class Merged(Collector):
    """The families of one process, with what `others` have added."""

    def __init__(self, own: Collector, others: Callable[[], Iterable[Families]]) -> None:
        self._own = own
        self._others = others

    def collect(self) -> Iterator[Metric]:
        """All families, of about one moment."""
        others = self._others()
        yield from merged(self._own.collect(), others)


def merged(own: Iterable[Metric], others: Iterable[Families]) -> Families:
    """The families of `own`: counters, histograms and what each process holds are sums."""
    by_name = {family.name: _copy(family) for family in own}
    for families in others:
        for family in families:
            if (mine := by_name.get(family.name)) and (family.type in ADDED or family.name in HELD_BY_EACH):
                _add(mine, family)
    return list(by_name.values())


def counts(families: Iterable[Metric]) -> Families:
    """What stays true of a process that has ended: how often it did something, not what it held."""
    return [family for family in families if family.type in ADDED]


def _copy(family: Metric) -> Metric:
    copied = Metric(family.name, family.documentation, family.type, family.unit)
    copied.samples = list(family.samples)
    return copied


def _add(mine: Metric, family: Metric) -> None:
    places = {_key(sample): index for index, sample in enumerate(mine.samples)}
    for sample in family.samples:
        index = places.get(_key(sample))
        if index is None:
            mine.samples.append(sample)
        elif not sample.name.endswith("_created"):  # a moment, no amount
            mine.samples[index] = sample._replace(value=mine.samples[index].value + sample.value)


def _key(sample: Sample) -> tuple[str, tuple[tuple[str, str], ...]]:
    return sample.name, tuple(sorted(sample.labels.items()))
