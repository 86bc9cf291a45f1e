"""Random jobs over a few datasets, as events and as the triples (source, job, sink) that they state: an oracle's world.

Each job runs once. Of some sinks a job states columns, each with where it comes from, directly or not.
"""

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from strandline.store.ingest.take import Record
from worlds.scenarios.bank import FACET
from worlds.scenarios.plain import dataset, run

Triple = tuple[str | None, str, str | None]
Column = tuple[str, str]  # dataset, column; "" for the whole dataset
ColumnEdge = tuple[Column, str, Column, str]  # source, job, target, direct | indirect | opaque

COLUMNS = ("x", "y")


@dataclass(frozen=True)
class Job:
    """The reads and writes of one job; stated: sink -> column -> (source, its column, type)."""

    name: str
    second: int
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    stated: dict[str, dict[str, list[tuple[str, str, str]]]] = field(default_factory=dict)
    facets: dict[str, Any] = field(default_factory=dict)

    def event(self) -> Record:
        sinks = [self._sink(name) if name in self.stated else dataset(name) for name in self.writes]
        return run("COMPLETE", self.second, self.name, self.reads, sinks, of_job=self.facets)

    def _sink(self, name: str) -> dict[str, Any]:
        fields = {
            column: {"inputFields": [_origin(*origin) for origin in origins]}
            for column, origins in self.stated[name].items()
        }
        return dataset(name, columnLineage=FACET | {"fields": fields})

    def triples(self) -> Iterator[Triple]:
        """Yield job, source and output; None: from nothing, or a dataset that is only read."""
        used: set[str] = set()
        for sink in self.writes:
            sources = self._sources(sink)
            used |= sources
            yield from ((source, self.name, sink) for source in sources)
            if not sources:
                yield None, self.name, sink
        yield from ((source, self.name, None) for source in set(self.reads) - used)

    def _sources(self, sink: str) -> set[str]:
        """Return the sources of its columns.

        Those that no column of any sink names count as a whole.
        """
        if sink not in self.stated:
            return set(self.reads)
        named = {origin[0] for origins in self.stated[sink].values() for origin in origins}
        return named | (set(self.reads) - self._named())

    def _named(self) -> set[str]:
        return {
            origin[0]
            for stated in self.stated.values()
            for origins in stated.values()
            for origin in origins
        }

    def column_edges(self) -> Iterator[ColumnEdge]:
        """The same between columns."""
        for sink in self.writes:
            stated = self.stated.get(sink, {})
            for column, origins in stated.items():
                for source, of, kind in origins:
                    yield (source, of), self.name, (sink, column), kind.lower()
            for source in set(self.reads) - (self._named() if stated else set()):
                yield (source, ""), self.name, (sink, ""), "opaque"


def _origin(source: str, column: str, kind: str) -> dict[str, Any]:
    how = [{"type": kind, "subtype": "IDENTITY" if kind == "DIRECT" else "FILTER"}]
    return {"namespace": "db", "name": source, "field": column, "transformations": how}


def random_jobs(chance: random.Random, tables: int, jobs: int) -> list[Job]:
    """Jobs with up to three sources and two sinks, circles included."""
    names = [f"t{number}" for number in range(tables)]
    return [_job(chance, names, number) for number in range(jobs)]


def _job(chance: random.Random, names: list[str], number: int) -> Job:
    reads = tuple(sorted(chance.sample(names, chance.randrange(4))))
    writes = tuple(sorted(chance.sample(names, chance.randrange(3))))
    stated: dict[str, dict[str, list[tuple[str, str, str]]]] = {}
    for sink in writes:
        if reads and chance.random() < 0.6:
            stated[sink] = {
                column: [
                    (
                        chance.choice(reads),
                        chance.choice(COLUMNS),
                        chance.choice(("DIRECT", "INDIRECT")),
                    )
                    for _ in range(chance.randint(1, 2))
                ]
                for column in COLUMNS
            }
    return Job(f"j{number}", number + 1, reads, writes, stated)


def ways_on(triples: Iterable[Triple]) -> dict[str, set[str]]:
    """Return the datasets that are made from each dataset."""
    found: dict[str, set[str]] = {}
    for source, _, sink in triples:
        if source is not None and sink is not None:
            found.setdefault(source, set()).add(sink)
    return found


def reached(onwards: dict[Any, set[Any]], starts: Iterable[Any]) -> dict[Any, int]:
    """Everything that can be reached, with its distance."""
    found = dict.fromkeys(starts, 0)
    waiting = list(found)
    for node in waiting:
        for other in sorted(onwards.get(node, ())):
            if other not in found:
                found[other] = found[node] + 1
                waiting.append(other)
    return found


def turned(onwards: dict[str, set[str]]) -> dict[str, set[str]]:
    """The same backwards."""
    found: dict[str, set[str]] = {}
    for node, others in onwards.items():
        for other in others:
            found.setdefault(other, set()).add(node)
    return found
