"""Strong answers in process, over a component of 100 tables.

One base table, ten below it, nine below each of these.
"""

import gc
import random
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from uuid import NAMESPACE_URL, uuid5

from bench.lineage import quantile
from bench.report import record
from strandline.core.versions import facts
from strandline.core.versions.apply import apply
from strandline.core.versions.facts import Fact, Job, Table
from strandline.core.versions.model import Model
from strandline.core.versions.strong_weak import strong

TABLES = 100
GROUP = "bench"
START = datetime(2026, 11, 1, tzinfo=UTC).timestamp()


def run(short: bool) -> None:
    """Measure and record; short: few turns."""
    strong_answers(tables=10, barriers=2, most=1, turns=100 if short else 5_000)
    strong_answers(tables=50, barriers=200, most=5, turns=20 if short else 1_000)


def strong_answers(*, tables: int, barriers: int, most: float, turns: int) -> None:
    """Record the CPU of a strong answer over random tables."""
    model, chance = Model(), random.Random(7)
    for number in range(TABLES):
        apply(model, _started(number))
    for barrier in range(1, barriers + 1):
        for number in range(TABLES):
            apply(model, _committed(number, barrier))
    gc.collect()
    gc.freeze()  # as a server does with what it keeps
    millis = []
    for query in _queries(chance, tables, turns):
        began = time.thread_time_ns()
        strong(model, query)
        millis.append((time.thread_time_ns() - began) / 1e6)
    gc.unfreeze()
    name = f"versions.strong.{tables}_tables_{barriers}_barriers"
    record(f"{name}.p99", quantile(millis, 99), "ms", most=most, note="CPU, in process")


def _queries(chance: random.Random, tables: int, turns: int) -> Iterator[list[Table]]:
    for _ in range(turns):
        yield [_table(number) for number in chance.sample(range(TABLES), tables)]


def _started(number: int) -> Fact:
    source = _source(number)
    reads = () if source is None else (_table(source),)
    writes = (_table(number),)
    return facts.RunStarted(_job(number), _run_id(number), START, GROUP, reads, writes)


def _committed(number: int, barrier: int) -> Fact:
    """A job commits a barrier."""
    at, source = START + 10.0 * barrier, _source(number)
    return facts.BarrierCommitted(
        _job(number),
        _run_id(number),
        GROUP,
        barrier,
        at,
        at + 0.01 * number,
        (facts.WrittenSnapshot(_table(number), str(barrier)),),
        () if source is None else (facts.Used(_table(source), str(barrier)),),
        barrier - 1,
    )


def _source(number: int) -> int | None:
    """The number of the table from which a table is made; 0 is the base table."""
    if number == 0:
        return None
    return (number - 1) // 10 if number > 10 else 0


def _table(number: int) -> Table:
    return ("iceberg://lake", f"bench.t{number}")


def _job(number: int) -> Job:
    return ("bench", f"j{number}")


def _run_id(number: int) -> str:
    return str(uuid5(NAMESPACE_URL, str(number)))
