"""Single questions over stores of one large kind, over REST, each with its target.

A job of 1,000 inputs and outputs, wide column graphs, the map of 20,000 datasets, the search of
300,000 names, and 15,000 jobs as one graph; on both databases. Each is asked of a server that has
just started, and then again. `.cpu` is the processor time of server and sender, without that of
PostgreSQL; `.memory` is by how much the server's peak grew.
"""

import http.client
import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any
from urllib.parse import urlencode

from bench import _lakehouse as lakehouse
from bench._machine import cpu_micros, peak_mebibytes
from bench._serving import PATIENCE, get, serving
from bench.databases import NAMES, database, opened
from bench.report import record
from strandline.core.openlineage.times import moment_of
from strandline.store.ingest.take import Caches, Record, take

NAMESPACE = "iceberg://large"
AT_ONCE = 1_000
ASKED_AGAIN = 5  # times, of which the median counts

Event = dict[str, Any]


def run(short: bool) -> None:
    """Measure and record; short: stores of a fiftieth."""
    part = 50 if short else 1
    for name in NAMES:
        _wide_job(name, 1_000 // part)
        _columns(name, 3_000 // part, 3, 0.5)
        _columns(name, 20_000 // part, 1, 3)
        _map(name, 20_000 // part)
        _search(name, 300_000 // part)
        _whole_graph(name, 15_000 // part)


def _wide_job(database_name: str, width: int) -> None:
    """Ask for one step from one of a job's inputs."""
    inputs = [_dataset(f"in_{number}") for number in range(width)]
    outputs = [_dataset(f"out_{number}") for number in range(width)]
    with database(database_name) as url:
        _fill(url, [_event(0, inputs, outputs)])
        asked = {"node": _node("in_0"), "depth": 1, "limit": 50_000}
        figure = f"large.{database_name}.wide_job.{width}"
        _ask(figure, url, "/api/v2/lineage", asked, seconds=0.5, mebibytes=100)


def _columns(database_name: str, columns: int, sources: int, seconds: float) -> None:
    """Ask for all columns of a table, each made from so many columns of another."""
    fields = {
        f"column_{number}": {
            "inputFields": [
                {
                    "namespace": NAMESPACE,
                    "name": "wide_in",
                    "field": f"column_{(number + beside) % columns}",
                }
                for beside in range(sources)
            ]
        }
        for number in range(columns)
    }
    facet = {"_producer": "bench://large", "_schemaURL": "bench://large", "fields": fields}
    output = _dataset("wide_out") | {"facets": {"columnLineage": facet}}
    with database(database_name) as url:
        _fill(url, [_event(0, [_dataset("wide_in")], [output])])
        asked = {"node": _node("wide_out"), "granularity": "column", "limit": 50_000}
        figure = f"large.{database_name}.columns.{columns}x{sources}"
        _ask(figure, url, "/api/v2/lineage", asked, seconds=seconds)


def _map(database_name: str, size: int) -> None:
    with database(database_name) as url:
        with opened(url) as engine:
            lakehouse.fill(engine, size)
        _ask(f"large.{database_name}.map.{size}", url, "/api/v2/lineage/map", {}, seconds=0.3)


def _search(database_name: str, names: int) -> None:
    """Ask for one name, for one letter, and for a word that nothing has."""
    with database(database_name) as url:
        _fill(url, _loads(names))
        for what, word in (("name", "table_0001234"), ("letter", "e"), ("no_hit", "zebra")):
            figure = f"large.{database_name}.search.{names}.{what}"
            _ask(figure, url, "/api/v2/search", {"q": word, "limit": 50}, seconds=0.1)


def _whole_graph(database_name: str, jobs: int) -> None:
    """Ask for all that hangs on a hub."""
    size = jobs * lakehouse.LAYERS // (lakehouse.LAYERS - 1)
    all_of_it = {"limit": 50_000}
    asks: dict[str, tuple[str, dict[str, Any]]] = {
        "lineage": ("/api/v2/lineage", {"node": lakehouse.HUB} | all_of_it),
        "impact": ("/api/v2/impact", {"node": lakehouse.HUB} | all_of_it),
        "v1_lineage": ("/api/v1/lineage", {"nodeId": lakehouse.HUB, "depth": lakehouse.LAYERS}),
    }
    with database(database_name) as url:
        with opened(url) as engine:
            lakehouse.fill(engine, size)
        for what, (path, asked) in asks.items():
            figure = f"large.{database_name}.graph_of_jobs.{jobs}.{what}"
            _ask(figure, url, path, asked, cpu=2)


def _ask(
    figure: str,
    url: str,
    path: str,
    asked: Mapping[str, Any],
    *,
    seconds: float | None = None,
    cpu: float | None = None,
    mebibytes: float | None = None,
) -> None:
    """Ask a server that has just started, and again, and record both with their targets."""
    full = f"{path}?{urlencode(asked)}"
    with serving(url) as port:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        get(connection, "/readyz")
        before = peak_mebibytes(os.getpid())
        first, first_cpu, size = _timed(connection, full)
        grown = peak_mebibytes(os.getpid()) - before
        again = sorted(_timed(connection, full) for _ in range(ASKED_AGAIN))[ASKED_AGAIN // 2]
    note = f"{size >> 10} KiB"
    _record(figure, first, "s", seconds, note)
    _record(f"{figure}.again", again[0], "s", seconds, note)
    _record(f"{figure}.cpu", first_cpu, "s", cpu, note)
    _record(f"{figure}.again.cpu", again[1], "s", cpu, note)
    _record(f"{figure}.memory", grown, "MiB", mebibytes, note)


def _timed(connection: http.client.HTTPConnection, path: str) -> tuple[float, float, int]:
    """Return the seconds, the seconds of processor time and the bytes of an answer."""
    began, cpu = time.perf_counter(), cpu_micros(os.getpid())
    size = len(get(connection, path))
    return time.perf_counter() - began, (cpu_micros(os.getpid()) - cpu) / 1e6, size


def _record(figure: str, value: float, unit: str, most: float | None, note: str) -> None:
    if most is None:
        record(figure, value, unit, note=note)
    else:
        record(figure, value, unit, f"<= {most:g}", value <= most, note)


def _fill(url: str, events: Iterable[Event]) -> None:
    """Store events."""
    caches, coming = Caches(), iter(events)
    with opened(url) as engine:
        while batch := list(islice(coming, AT_ONCE)):
            records = [
                Record(json.dumps(one).encode(), moment_of(lakehouse.BEGIN)) for one in batch
            ]
            with engine.begin() as connection:
                take(connection, records, caches)
            caches.commit()


def _loads(names: int) -> Iterator[Event]:
    """Yield the events of jobs that write 100 tables each."""
    for first in range(0, names, 100):
        numbers = range(first, first + 100)
        yield _event(first, [], [_dataset(f"shop_{n % 50:02d}.table_{n:07d}") for n in numbers])


def _event(number: int, inputs: list[Event], outputs: list[Event]) -> Event:
    return {
        "eventTime": moment_of(lakehouse.BEGIN + number).isoformat(),
        "eventType": "COMPLETE",
        "producer": "bench://large",
        "schemaURL": lakehouse.SCHEMA,
        "run": {"runId": f"00000000-0000-4000-8000-{number:012d}"},
        "job": {"namespace": "bench", "name": f"load_{number:07d}"},
        "inputs": inputs,
        "outputs": outputs,
    }


def _dataset(name: str) -> Event:
    return {"namespace": NAMESPACE, "name": name}


def _node(name: str) -> str:
    return f"dataset:{NAMESPACE}:{name}"
