"""Single questions over stores of one large kind, over REST, each with its target.

A job of 1,000 inputs and outputs, wide column graphs, the map of 20,000 datasets, the search of
300,000 names, and 15,000 jobs as one graph; on both databases. Each is asked of a server that has
just started, and then again. `.cpu` is the processor time of server and sender, without that of
PostgreSQL; `.memory` is by how much the server's peak grew.
"""

import http.client
import os
import time
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlencode

from bench._machine import PATIENCE, cpu_micros, get, peak_mebibytes, serving
from bench._stores import (
    HUB,
    KINDS,
    LAYERS,
    Event,
    dataset,
    event,
    lakehouse,
    node,
    store,
)
from bench.report import record

ASKED_AGAIN = 5  # times, of which the median counts
ALL = {"limit": 50_000}


def run(short: bool) -> None:
    """Measure and record; short: stores of a fiftieth."""
    part = 50 if short else 1
    for kind in KINDS:
        _wide_job(kind, 1_000 // part)
        _columns(kind, 3_000 // part, 3, 0.5)
        _columns(kind, 20_000 // part, 1, 3)
        _map(kind, 20_000 // part)
        _search(kind, 300_000 // part)
        _whole_graph(kind, 15_000 // part)


def _wide_job(kind: str, width: int) -> None:
    """Ask for one step from one of a job's inputs."""
    inputs = [dataset(f"in_{number}") for number in range(width)]
    outputs = [dataset(f"out_{number}") for number in range(width)]
    with store(kind, [event(0, inputs, outputs)]) as url:
        question = {"node": node("in_0"), "depth": 1} | ALL
        figure = f"large.{kind}.wide_job.{width}"
        _ask(figure, url, "/api/v2/lineage", question, seconds=0.5, mebibytes=100)


def _columns(kind: str, columns: int, sources: int, seconds: float) -> None:
    """Ask for all columns of a table, each made from so many columns of another."""
    fields = {
        f"column_{number}": {
            "inputFields": [
                dataset("wide_in") | {"field": f"column_{(number + beside) % columns}"}
                for beside in range(sources)
            ]
        }
        for number in range(columns)
    }
    facet = {"_producer": "bench://large", "_schemaURL": "bench://large", "fields": fields}
    output = dataset("wide_out") | {"facets": {"columnLineage": facet}}
    with store(kind, [event(0, [dataset("wide_in")], [output])]) as url:
        question = {"node": node("wide_out"), "granularity": "column"} | ALL
        figure = f"large.{kind}.columns.{columns}x{sources}"
        _ask(figure, url, "/api/v2/lineage", question, seconds=seconds)


def _map(kind: str, size: int) -> None:
    with store(kind, lakehouse(size)) as url:
        _ask(f"large.{kind}.map.{size}", url, "/api/v2/lineage/map", {}, seconds=0.3)


def _search(kind: str, names: int) -> None:
    """Ask for one name, for one letter, and for a word that nothing has."""
    with store(kind, _loads(names)) as url:
        for what, word in (("name", "table_0001234"), ("letter", "e"), ("no_hit", "zebra")):
            figure = f"large.{kind}.search.{names}.{what}"
            _ask(figure, url, "/api/v2/search", {"q": word, "limit": 50}, seconds=0.1)


def _loads(names: int) -> Iterator[Event]:
    """Yield the events of jobs that write 100 tables each."""
    for first in range(0, names, 100):
        numbers = range(first, first + 100)
        yield event(first, [], [dataset(f"shop_{n % 50:02d}.table_{n:07d}") for n in numbers])


def _whole_graph(kind: str, jobs: int) -> None:
    """Ask for all that hangs on a hub."""
    asks: dict[str, tuple[str, dict[str, Any]]] = {
        "lineage": ("/api/v2/lineage", {"node": HUB} | ALL),
        "impact": ("/api/v2/impact", {"node": HUB} | ALL),
        "v1_lineage": ("/api/v1/lineage", {"nodeId": HUB, "depth": LAYERS}),
    }
    with store(kind, lakehouse(jobs * LAYERS // (LAYERS - 1))) as url:
        for what, (path, question) in asks.items():
            _ask(f"large.{kind}.graph_of_jobs.{jobs}.{what}", url, path, question, cpu=2)


def _ask(
    figure: str,
    url: str,
    path: str,
    question: Mapping[str, Any],
    *,
    seconds: float | None = None,
    cpu: float | None = None,
    mebibytes: float | None = None,
) -> None:
    """Ask a server that has just started, and again, and record both with their targets."""
    full = f"{path}?{urlencode(question)}"
    with serving(url) as (port, pid):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        before = peak_mebibytes(pid)
        first, first_cpu, answer = _timed(connection, full)
        grown = peak_mebibytes(pid) - before
        again = sorted(_timed(connection, full) for _ in range(ASKED_AGAIN))[ASKED_AGAIN // 2]
    cut = ", cut" if b'"complete":false' in answer else ""
    note = f"{len(answer) >> 10} KiB{cut}"
    record(figure, first, "s", most=seconds, note=note)
    record(f"{figure}.again", again[0], "s", most=seconds, note=note)
    record(f"{figure}.cpu", first_cpu, "s", most=cpu, note=note)
    record(f"{figure}.again.cpu", again[1], "s", most=cpu, note=note)
    record(f"{figure}.memory", grown, "MiB", most=mebibytes, note=note)


def _timed(connection: http.client.HTTPConnection, path: str) -> tuple[float, float, bytes]:
    """Return the seconds, the seconds of processor time and an answer."""
    began, cpu = time.perf_counter(), cpu_micros(os.getpid())
    answer = get(connection, path)
    return time.perf_counter() - began, (cpu_micros(os.getpid()) - cpu) / 1e6, answer
