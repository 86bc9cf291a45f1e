"""What a dead target costs intake.

Batches of events with no target and beside one that never answers, in turn on one store.

The target has been dead for half an hour, so it is asked every ten minutes. Both kinds alternate,
so that whatever else the machine does meets both. Batches are of 100 events, as senders over HTTP
make.
"""

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice
from statistics import median, quantiles

from sqlalchemy import Engine

from bench.databases import NAMES, database, opened
from bench.events import events
from bench.report import record
from deploy.kafka import free_port
from strandline.exporters.exporting import Exporting
from strandline.exporters.registry import targets_of
from strandline.settings import Settings
from strandline.store.ingest.take import Record
from strandline.store.ingest.transactions import Batches
from strandline.store.sql.shared_settings import agree

BATCH, TURN = 100, 10
TURNS, SHORT_TURNS = 20, 2
DEAD_SECONDS = 1800


def run(short: bool) -> None:
    """Measure on both databases."""
    for name in NAMES:
        with database(name) as url, opened(url) as engine:
            _measure(name, engine, SHORT_TURNS if short else TURNS, judged=not short)


def _measure(name: str, engine: Engine, turns: int, *, judged: bool) -> None:
    """Seconds of each batch without a target, and beside a dead one."""
    bodies = events((2 * turns + 2) * TURN * BATCH)
    batches = Batches(engine)
    for _ in range(2):
        _turn(batches, bodies)  # what is new costs more
    alone: list[float] = []
    beside: list[float] = []
    settings = Settings(marquez_url=f"http://127.0.0.1:{free_port()}")
    dead = Exporting(engine, targets_of(settings), lambda why: None)
    now = time.time()
    dead.register(now)
    _turn(batches, bodies)
    for second in range(-DEAD_SECONDS, 0, 30):
        dead.deliver(now + second)
    for _ in range(turns):
        with engine.begin() as connection:
            agree(connection, "exports", "")
        alone += _turn(batches, bodies)
        with Exporting(engine, targets_of(settings), lambda why: None):
            with engine.begin() as connection:
                agree(connection, "exports", "runs")
            beside += _turn(batches, bodies)
    for what, ratio in (
        ("median", median(beside) / median(alone)),
        ("p99", _p99(beside) / _p99(alone)),
    ):
        met = ratio <= 1.05 if judged else None
        note = f"{1000 * median(alone):.0f} ms a batch of {BATCH} alone"
        record(f"exports.dead_target.{name}.{what}", ratio, "x", "<= 1.05", met, note)


def _turn(batches: Batches, bodies: Iterator[bytes]) -> list[float]:
    taken = []
    for _ in range(TURN):
        now = datetime.now(UTC)
        records = [Record(body, now) for body in islice(bodies, BATCH)]
        began = time.perf_counter()
        batches.write(records)
        taken.append(time.perf_counter() - began)
    return taken


def _p99(values: list[float]) -> float:
    return quantiles(values, n=100)[-1]
