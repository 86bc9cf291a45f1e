"""Walks over lineage while events come in, on both databases, in process and over REST.

From random tables, five jobs deep, and from a hub that every tenth job reads; the floor of each is
one plain SELECT of as many rows as the answer has edges, in the same run.
"""

import http.client
import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from random import Random
from typing import Any
from urllib.parse import urlencode

import orjson
from sqlalchemy import Engine, select

from bench._machine import PATIENCE, get, opened, serving
from bench._stores import HUB, KINDS, LAYERS, lakehouse, node, store, table
from bench.events import events
from bench.report import record
from strandline.core.openlineage.times import micros_of
from strandline.core.walk import Direction
from strandline.runtime.job_memory import JobMemory
from strandline.store.lineage.lookup import node_called
from strandline.store.lineage.run_state import View
from strandline.store.lineage.table_graph import Question
from strandline.store.lineage.table_lineage import lineage_of
from strandline.store.schema.dataset_tables import datasets
from strandline.store.schema.relation_tables import job_relations
from strandline.store.schema.run_tables import jobs
from strandline.store.sql.engine import reading

DEPTH = 5
RATE = 200  # events a second
AT_ONCE = 20
MEMORY = 1 << 30  # bytes for the jobs that are kept
Answer = dict[str, Any]


def run(short: bool) -> None:
    """Measure and record; short: few datasets, and few walks."""
    for size in (4_000,) if short else (10_000, 100_000):
        for kind in KINDS:
            with store(kind, lakehouse(size)) as url, opened(url) as engine:
                _measure(f"lineage.{kind}.{size}", url, engine, size, walks=30 if short else 500)


def _measure(name: str, url: str, engine: Engine, size: int, walks: int) -> None:
    chance = Random(7)
    numbers = [chance.randrange(size // LAYERS, size) for _ in range(walks)]
    tables = [node(table(number, size)) for number in numbers]
    with serving(url) as (port, _), _events_coming_in(port):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        asks: dict[str, Callable[[str, int], Answer]] = {
            "in_process": partial(_in_process, engine, None),
            "in_memory": partial(_in_process, engine, JobMemory(MEMORY)),
            "rest": partial(_over_rest, connection),
        }
        for how, ask in asks.items():
            _tell(f"{name}.random.{how}", engine, [partial(ask, one, DEPTH) for one in tables])
            _tell(f"{name}.hub.{how}", engine, [partial(ask, HUB, 1)] * (walks // 5))


@contextmanager
def _events_coming_in(port: int) -> Iterator[None]:
    """A thread posts `RATE` Spark events a second, as far as they are taken."""
    bodies = [b"[" + b",".join(events(AT_ONCE, seed)) + b"]" for seed in range(10)]
    stop = threading.Event()
    thread = threading.Thread(target=_post, args=(port, bodies, stop), daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(PATIENCE)


def _post(port: int, bodies: list[bytes], stop: threading.Event) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    turn = 0
    while not stop.wait(AT_ONCE / RATE):
        fresh = bodies[turn % len(bodies)].replace(b'"rowCount": ', b'"rowCount": %d' % (turn + 1))
        connection.request(
            "POST", "/api/v1/lineage/batch", fresh, {"Content-Type": "application/json"}
        )
        answer = json.loads(connection.getresponse().read() or b"{}")
        if "results" in answer:
            raise RuntimeError(f"events were refused: {str(answer)[:300]}")
        turn += 1


def _in_process(engine: Engine, memory: JobMemory | None, node_id: str, depth: int) -> Answer:
    """Return the answer, with jobs that are kept in step with the server's writer, or without."""
    with reading(engine).connect() as connection:
        now = View(micros_of(datetime.now(UTC)))
        question = Question(node_called(connection, node_id), now, Direction.BOTH, depth, 50_000)
        return lineage_of(connection, question, memory.view(connection, now) if memory else None)


def _over_rest(connection: http.client.HTTPConnection, node_id: str, depth: int) -> Answer:
    query = urlencode({"node": node_id, "depth": depth, "limit": 50_000})
    answer: Answer = orjson.loads(get(connection, f"/api/v2/lineage?{query}"))
    return answer


def _tell(name: str, engine: Engine, walks: Sequence[Callable[[], Answer]]) -> None:
    millis, edges = [], 0
    for walk in walks:
        began = time.perf_counter()
        answer = walk()
        millis.append((time.perf_counter() - began) * 1000)
        edges += len(answer["edges"])
    rows = max(1, edges // len(walks))
    floor = quantile([_plain_select(engine, rows) for _ in walks], 50)
    note = f"{rows} edges, {RATE} events/s come in, floor {floor:.2f} ms"
    record(f"{name}.p50", quantile(millis, 50), "ms", note=note)
    record(f"{name}.p99", quantile(millis, 99), "ms", note=note)


def _plain_select(engine: Engine, rows: int) -> float:
    """Milliseconds to select as many relations with the names at both ends."""
    query = (
        select(jobs.c.namespace, jobs.c.name, datasets.c.namespace, datasets.c.name, job_relations)
        .join_from(job_relations, jobs, jobs.c.id == job_relations.c.job_id)
        .join(datasets, datasets.c.id == job_relations.c.dataset_id)
        .limit(rows)
    )
    began = time.perf_counter()
    with reading(engine).connect() as connection:
        connection.execute(query).all()
    return (time.perf_counter() - began) * 1000


def quantile(values: Sequence[float], percent: int) -> float:
    """The figure that so many percent stay below."""
    return sorted(values)[len(values) * percent // 100]
