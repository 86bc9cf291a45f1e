"""Questions of a large graph.

100,000 jobs, 200,000 tables, a million edges, five million edges between columns.

Lineage by depth from random tables and from the hub, a column's way, impact, paths and search; on
both databases, in process and over REST. Beside each stands its floor: one plain SELECT of as many
rows as the answer has edges or items, in the same run. Questions by depth are asked twice with jobs
in memory, as most of these are read from the database the first time; and all of that once more of
as many jobs in areas, as a company has them. Then how many answers of 200 nodes a second a server
gives. `python -m bench query=20000` is of so many jobs.
"""

import http.client
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from random import Random
from typing import Any
from urllib.parse import urlencode

import orjson
from sqlalchemy import Engine

from bench import _senders
from bench import _wide_lakehouse as lakehouse
from bench._serving import PATIENCE, get, serving
from bench.databases import NAMES, database, opened
from bench.lineage import plain_select, quantile
from bench.report import record
from strandline.core.openlineage.times import micros_of
from strandline.runtime.job_memory import JobMemory
from strandline.store.catalog.search import search_page
from strandline.store.ingest.following import follow_graph
from strandline.store.lineage.relations import View
from strandline.store.lineage.table_lineage import lineage_of
from strandline.store.questions.asked import ANSWERS, question_of
from strandline.store.sql.engine import reading

JOBS, JOBS_SHORT = 100_000, 100
DEPTHS = (1, 3, 5)
MOST = 5_000
AREA = 200  # jobs that read nothing of others but the hub
MEMORY = 2 << 30  # bytes for the jobs that are kept
TARGETS = {"random.depth_5": 5.0, "hub.depth_5": 15.0, "search_again": 50.0}  # ms, p99, in process
SECONDS = 60  # for which a figure is measured where its questions take long, after the first three
SENDERS = 16  # connections
ANSWERS_A_SECOND = 800  # of 200 nodes, over REST, on two cores

Answer = dict[str, Any]
Asked = Mapping[str, Any]
Ask = Callable[[str, Asked], Answer]


def run(short: bool, sizes: Sequence[int] = ()) -> None:
    """Measure and record; short: few questions, and few jobs if no sizes say how many."""
    for jobs in sizes or ((JOBS_SHORT,) if short else (JOBS,)):
        _run(jobs, 3 if short else 200)
        _run_areas(jobs, 3 if short else 200)


def _run(jobs: int, times: int) -> None:
    for name in NAMES:
        with database(name) as url, opened(url) as engine:
            lakehouse.fill(engine, jobs)
            with serving(url) as port:
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
                asks = {"in_process": _in_process(engine), "rest": _over_rest(connection)}
                for how, ask in asks.items():
                    for what, (path, questions) in _questions(jobs, times).items():
                        _measure(f"query.{name}.{jobs}.{what}.{how}", engine, ask, path, questions)
                _measure_in_memory(f"query.{name}.{jobs}", engine, _questions(jobs, times))
            _measure_rate(f"query.{name}.{jobs}.answers_of_200_nodes", url, jobs, times)


def _run_areas(jobs: int, times: int) -> None:
    """Memory alone, where jobs keep to areas, so that a table leads to hundreds of nodes by depth 5, and not to most of the graph."""
    for name in NAMES:
        with database(name) as url, opened(url) as engine:
            lakehouse.fill(engine, jobs, AREA)
            with engine.begin() as connection:
                follow_graph(connection)
            _measure_in_memory(f"query.{name}.{jobs}.areas", engine, _questions(jobs, times))


def _measure_in_memory(
    name: str, engine: Engine, questions: Mapping[str, tuple[str, list[Asked]]]
) -> None:
    """Measure questions by depth, each again once all of its kind were asked."""
    ask = _in_memory(engine, JobMemory(MEMORY))
    for what, (path, every) in questions.items():
        if "depth" in what:
            asked = _measure(f"{name}.{what}.in_memory", engine, ask, path, every)
            _measure(f"{name}.{what}.in_memory_again", engine, ask, path, every[:asked])


def _questions(jobs: int, times: int) -> dict[str, tuple[str, list[Asked]]]:
    """Return the questions by the names of their figures."""
    chance = Random(11)
    tables = [lakehouse.node_of(chance.randrange(jobs * lakehouse.WRITES)) for _ in range(times)]
    hub = lakehouse.node_of(0)
    found: dict[str, tuple[str, list[Asked]]] = {}
    for depth in DEPTHS:
        limits = {"depth": depth, "limit": MOST}
        found[f"random.depth_{depth}"] = "/lineage", [{"node": table} | limits for table in tables]
        found[f"hub.depth_{depth}"] = "/lineage", [{"node": hub} | limits] * max(3, times // 20)
    by_column = {
        "granularity": "column",
        "column": "column_07",
        "direction": "upstream",
        "limit": MOST,
    }
    found["column"] = "/lineage", [{"node": table} | by_column for table in tables]
    found["impact"] = (
        "/impact",
        [{"node": table, "column": "column_07", "depth": 3, "limit": MOST} for table in tables],
    )
    ends = zip(tables, reversed(tables), strict=True)
    found["paths"] = (
        "/lineage/paths",
        [{"from": one, "to": other, "limit": MOST} for one, other in ends],
    )
    words = [f"table_{chance.randrange(jobs):07d}"[:-1] for _ in range(times)]
    found["search"] = (
        "/search",
        [{"q": words[0], "limit": 50}],
    )  # reads the pages of the index, once a process
    found["search_again"] = "/search", [{"q": word, "limit": 50} for word in words]
    return found


def _in_process(engine: Engine) -> Ask:
    def ask(path: str, asked: Asked) -> Answer:
        with reading(engine).connect() as connection:
            now = micros_of(datetime.now(UTC))
            if path == "/search":
                return search_page(connection, asked["q"], asked["limit"], None, now)
            return ANSWERS[path](connection, asked, View(now))

    return ask


def _in_memory(engine: Engine, memory: JobMemory) -> Ask:
    """Ask for lineage between tables with jobs that are kept."""

    def ask(path: str, asked: Asked) -> Answer:
        view = View(micros_of(datetime.now(UTC)))
        with reading(engine).connect() as connection:
            question = question_of(connection, asked, view)
            return lineage_of(connection, question, memory.view(connection, view))

    return ask


def _over_rest(connection: http.client.HTTPConnection) -> Ask:
    def ask(path: str, asked: Asked) -> Answer:
        answer: Answer = orjson.loads(get(connection, f"/api/v2{path}?{urlencode(asked)}"))
        return answer

    return ask


def _measure(name: str, engine: Engine, ask: Ask, path: str, questions: list[Asked]) -> int:
    """Ask one after the other, for `SECONDS`; how many were asked."""
    taken: list[float] = []
    rows = 0
    for asked in questions:
        if len(taken) >= 3 and sum(taken) > SECONDS * 1000:
            break
        began = time.perf_counter()
        answer = ask(path, asked)
        taken.append((time.perf_counter() - began) * 1000)
        rows += len(answer.get("edges") or answer.get("items") or ())
    rows = max(1, rows // len(taken))
    floor = quantile([plain_select(engine, rows) for _ in taken], 50)
    what = name.split(".", 3)[3].removeprefix("areas.")
    ways = ("in_process", "in_memory_again")
    target = next(
        (limit for of, limit in TARGETS.items() for way in ways if what == f"{of}.{way}"), None
    )
    p99 = quantile(taken, 99)
    met = None if target is None else p99 <= target
    note = f"{len(taken)} questions of {rows} rows, floor {floor:.2f} ms"
    record(f"{name}.p50", quantile(taken, 50), "ms", note=note)
    record(f"{name}.p99", p99, "ms", f"<= {target:g}" if target else "", met, note)
    return len(taken)


def _measure_rate(name: str, url: str, jobs: int, times: int) -> None:
    """Record the answers a second of senders that each wait for the one before.

    Each table was asked for before.
    """
    chance = Random(13)
    tables = [lakehouse.node_of(chance.randrange(jobs * lakehouse.WRITES)) for _ in range(times)]
    paths = [
        f"/api/v2/lineage?{urlencode({'node': table, 'depth': 3, 'limit': 200})}"
        for table in tables
    ]
    with serving(url) as port:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        nodes = sum(get(connection, path).count(b',"distance":') for path in paths)
        seen = _senders.ask(port, paths * 10, SENDERS)
    rate = seen.per_second()
    target = f">= {ANSWERS_A_SECOND}"
    note = f"{nodes / times:.0f} nodes each; {seen.cpu / 1000 / len(seen.waits):.2f} ms of the senders' own"
    record(name, rate, "answers/s", target, rate >= ANSWERS_A_SECOND and not seen.refused, note)
