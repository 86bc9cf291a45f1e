"""Walks over lineage while events come in, on both databases, in process and over REST.

From random tables, five jobs deep, and from a hub that every tenth job reads; the floor of each is
one plain SELECT of as many rows as the answer has edges, in the same run.
"""

import http.client
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from random import Random
from typing import Any
from urllib.parse import urlencode

import orjson
from sqlalchemy import Engine, select

from bench import _lakehouse as lakehouse
from bench._serving import PATIENCE, events_coming_in, get, serving
from bench.databases import NAMES, database, opened
from bench.report import record
from strandline.core.openlineage.times import micros_of
from strandline.core.walk import Direction
from strandline.runtime.job_memory import JobMemory
from strandline.store.lineage.lookup import node_called
from strandline.store.lineage.relations import View
from strandline.store.lineage.table_lineage import Question, lineage_of
from strandline.store.schema.dataset_tables import datasets
from strandline.store.schema.relation_tables import job_relations
from strandline.store.schema.run_tables import jobs
from strandline.store.sql.engine import reading

DEPTH = 5
RATE = 200  # events a second
Answer = dict[str, object]
Ask = Callable[[str, int | None], Answer]
MEMORY = 1 << 30  # bytes for the entries of the graph that is kept


def run(short: bool) -> None:
    """Measure and record; short: few datasets, and few walks."""
    for size in (4_000,) if short else (10_000, 100_000):
        for name in NAMES:
            with database(name) as url, opened(url) as engine:
                lakehouse.fill(engine, size)
                _measure(f"lineage.{name}.{size}", url, engine, size, walks=30 if short else 500)


def _measure(name: str, url: str, engine: Engine, size: int, walks: int) -> None:
    chance = Random(7)
    tables = [_node(chance.randrange(size // lakehouse.LAYERS, size), size) for _ in range(walks)]
    with serving(url) as port, events_coming_in(port, RATE):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        asks: dict[str, Ask] = {
            "in_process": partial(_in_process, engine),
            "in_memory": partial(_in_memory, engine, JobMemory(MEMORY)),
            "rest": partial(_over_rest, connection),
        }
        for how, ask in asks.items():
            _tell(f"{name}.random.{how}", engine, [partial(ask, table, DEPTH) for table in tables])
            _tell(f"{name}.hub.{how}", engine, [partial(ask, lakehouse.HUB, 1)] * (walks // 5))


def _node(number: int, size: int) -> str:
    return f"dataset:{lakehouse.NAMESPACE}:{lakehouse.name_of(number, size)}"


def _in_process(engine: Engine, node: str, depth: int | None) -> Answer:
    with reading(engine).connect() as connection:
        now = View(micros_of(datetime.now(UTC)))
        return lineage_of(
            connection, Question(node_called(connection, node), now, Direction.BOTH, depth, 50_000)
        )


def _in_memory(engine: Engine, memory: JobMemory, node: str, depth: int | None) -> Answer:
    """Return the answer with jobs that are kept, in step with the server's writer."""
    with reading(engine).connect() as connection:
        now = View(micros_of(datetime.now(UTC)))
        question = Question(node_called(connection, node), now, Direction.BOTH, depth, 50_000)
        return lineage_of(connection, question, memory.view(connection, now))


def _over_rest(connection: http.client.HTTPConnection, node: str, depth: int | None) -> Answer:
    asked = urlencode({"node": node, "depth": depth, "limit": 50_000})
    answer: Answer = orjson.loads(get(connection, f"/api/v2/lineage?{asked}"))
    return answer


def _tell(name: str, engine: Engine, walks: Sequence[Callable[[], Answer]]) -> None:
    taken, edges = [], 0
    for walk in walks:
        began = time.perf_counter()
        answer = walk()
        taken.append((time.perf_counter() - began) * 1000)
        document: Any = answer
        edges += len(document["edges"])
    rows = max(1, edges // len(walks))
    floor = quantile([plain_select(engine, rows) for _ in walks], 50)
    note = f"{rows} edges, {RATE} events/s come in, floor {floor:.2f} ms"
    record(f"{name}.p50", quantile(taken, 50), "ms", note=note)
    record(f"{name}.p99", quantile(taken, 99), "ms", note=note)


def plain_select(engine: Engine, rows: int) -> float:
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


def quantile(taken: Sequence[float], percent: int) -> float:
    """The figure that so many percent stay below."""
    return sorted(taken)[len(taken) * percent // 100]
