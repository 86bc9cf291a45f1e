"""Questions of a large graph: 100,000 jobs, 200,000 tables, a million edges, five million edges between columns.

Lineage by depth from random tables and from the hub, a column's way, impact, paths and search; on both databases, in process
and over REST. Beside each stands its floor: one plain SELECT of as many rows as the answer has edges or items, in the same run.
"""

import http.client
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from random import Random
from typing import Any
from urllib.parse import urlencode

import orjson
from sqlalchemy import Engine

from bench import _wide_lakehouse as lakehouse
from bench._serving import PATIENCE, get, serving
from bench.databases import NAMES, database, opened
from bench.lineage import plain_select, quantile
from bench.report import record
from strandline.core.openlineage.times import micros_of
from strandline.runtime.lineage_graph import LineageGraph
from strandline.store.catalog.search import search_page
from strandline.store.lineage.relations import View
from strandline.store.questions.asked import ANSWERS, question_of
from strandline.store.sql.engine import reading

JOBS, JOBS_SHORT = 100_000, 100
DEPTHS = (1, 3, 5)
MOST = 5_000
MEMORY = 2 << 30  # bytes for the entries of the graph that is kept
TARGETS = {"random.depth_5": 5.0, "hub.depth_5": 15.0, "search": 50.0}  # ms, p99, in process

Answer = dict[str, Any]
Asked = Mapping[str, Any]
Ask = Callable[[str, Asked], Answer | bytes]


def run(short: bool) -> None:
    """Measure and record; short: few jobs, and few questions."""
    jobs, times = (JOBS_SHORT, 3) if short else (JOBS, 200)
    for name in NAMES:
        with database(name) as url, opened(url) as engine:
            lakehouse.fill(engine, jobs)
            with serving(url) as port:
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
                asks = {
                    "in_process": _in_process(engine),
                    "in_memory": _in_memory(engine),
                    "rest": _over_rest(connection),
                }
                for how, ask in asks.items():
                    for what, (path, questions) in _questions(jobs, times).items():
                        if how == "in_memory" and "depth" not in what:
                            continue
                        _measure(f"query.{name}.{jobs}.{what}.{how}", engine, ask, path, questions)


def _questions(jobs: int, times: int) -> dict[str, tuple[str, list[Asked]]]:
    """What is asked, by the name of its figure."""
    chance = Random(11)
    tables = [lakehouse.node_of(chance.randrange(jobs * lakehouse.WRITES)) for _ in range(times)]
    hub = lakehouse.node_of(0)
    found: dict[str, tuple[str, list[Asked]]] = {}
    for depth in DEPTHS:
        limits = {"depth": depth, "limit": MOST}
        found[f"random.depth_{depth}"] = "/lineage", [{"node": table} | limits for table in tables]
        found[f"hub.depth_{depth}"] = "/lineage", [{"node": hub} | limits] * max(3, times // 20)
    by_column = {"granularity": "column", "column": "column_07", "direction": "upstream", "limit": MOST}
    found["column"] = "/lineage", [{"node": table} | by_column for table in tables]
    found["impact"] = "/impact", [{"node": table, "column": "column_07", "depth": 3, "limit": MOST} for table in tables]
    ends = zip(tables, reversed(tables), strict=True)
    found["paths"] = "/lineage/paths", [{"from": one, "to": other, "limit": MOST} for one, other in ends]
    words = [f"table_{chance.randrange(jobs):07d}"[:-1] for _ in range(max(3, times // 10))]
    found["search"] = "/search", [{"q": word, "limit": 50} for word in words]
    return found


def _in_process(engine: Engine) -> Ask:
    def ask(path: str, asked: Asked) -> Answer:
        with reading(engine).connect() as connection:
            if path == "/search":
                return search_page(connection, asked["q"], asked["limit"], None)
            return ANSWERS[path](connection, asked, View(micros_of(datetime.now(UTC))))

    return ask


def _in_memory(engine: Engine) -> Ask:
    """The same where lineage between tables comes from entries that are kept; what no entry answers is nobody's."""
    graph = LineageGraph(MEMORY)

    def ask(path: str, asked: Asked) -> Answer | bytes:
        with reading(engine).connect() as connection:
            found = graph.answer(connection, question_of(connection, asked, View(micros_of(datetime.now(UTC)))))
        assert found is not None, asked
        return found

    return ask


def _over_rest(connection: http.client.HTTPConnection) -> Ask:
    def ask(path: str, asked: Asked) -> Answer:
        answer: Answer = orjson.loads(get(connection, f"/api/v2{path}?{urlencode(asked)}"))
        return answer

    return ask


def _measure(name: str, engine: Engine, ask: Ask, path: str, questions: list[Asked]) -> None:
    taken, rows = [], 0
    for asked in questions:
        began = time.perf_counter()
        answer = ask(path, asked)
        taken.append((time.perf_counter() - began) * 1000)
        answer = orjson.loads(answer) if isinstance(answer, bytes) else answer
        rows += len(answer.get("edges") or answer.get("items") or ())
    rows = max(1, rows // len(questions))
    floor = quantile([plain_select(engine, rows) for _ in questions], 50)
    what = name.split(".", 3)[3]
    ways = ("in_process", "in_memory")
    target = next((limit for of, limit in TARGETS.items() for way in ways if what == f"{of}.{way}"), None)
    p99 = quantile(taken, 99)
    met = None if target is None else p99 <= target
    note = f"{rows} rows, floor {floor:.2f} ms"
    record(f"{name}.p50", quantile(taken, 50), "ms", note=note)
    record(f"{name}.p99", p99, "ms", f"<= {target:g}" if target else "", met, note)
