"""Processor time from bytes to commit, stage by stage, and the floor.

Nothing but the compressed bytes by COPY.

Both run on the same events in batches of the same size; collector and database are counted
together. A stage's time is its own, without the stages inside it; what the database's other
processes do (WAL, checkpoints) is `background`.
"""

import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from typing import Any

import zstandard
from sqlalchemy import Connection, Engine, text

from bench._machine import cpu_micros, running_micros
from strandline.settings import Settings
from strandline.store.ingest import take as intake
from strandline.store.ingest.take import Caches, Record, take

BATCH = Settings().batch_records
# Function of the pipeline -> its stage, and whether the database works in it.
STAGES = (
    ("content_hash", "decode", False),
    ("decoded", "decode", False),
    ("_interpret", "raw", False),
    ("changes_of", "changes", False),
    ("claim", "raw", True),
    ("insert_events", "raw", True),
    ("compact", "compact", False),
    ("only_news", "compact", False),
    ("store", "apply", True),
)


@dataclass
class Clock:
    """Processor time by stage, in microseconds, of this thread and of the database's process that works for it."""

    backend: int = 0
    spent: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    _inner: list[float] = field(default_factory=lambda: [0.0])

    @contextmanager
    def stage(self, name: str, *, database: bool) -> Iterator[None]:
        """Count what happens inside, less the stages within."""
        self._inner.append(0.0)
        started = self._now(database)
        try:
            yield
        finally:
            whole = self._now(database) - started
            self.spent[name] += whole - self._inner.pop()
            self._inner[-1] += whole

    def _now(self, database: bool) -> float:
        return time.thread_time() * 1e6 + (
            running_micros(self.backend) if database and self.backend else 0
        )


def by_stage(
    engine: Engine, server: int, warm: Iterable[bytes], events: Sequence[bytes], size: int = BATCH
) -> dict[str, float]:
    """Microseconds an event by stage, and `total`, on caches that `warm` has filled.

    The total is that of the first half of the events, without clocks: to look at them four times an
    event takes 15 us.
    """
    caches, half = Caches(), len(events) // 2
    with engine.connect() as connection:
        clock = Clock(_backend(connection))
        for batch in _batches(warm):
            _take(connection, batch, caches, Clock())
        roots = (server,) if server else ()
        total = _whole(connection, events[:half], caches, Clock(), roots, size)
        with _timed(clock):
            clocked = _whole(connection, events[half:], caches, clock, roots, size)
    clock.spent["background"] = clocked - sum(clock.spent.values())
    return {name: spent / (len(events) - half) for name, spent in clock.spent.items()} | {
        "total": total / half
    }


def _whole(
    connection: Connection,
    events: Sequence[bytes],
    caches: Caches,
    clock: Clock,
    roots: tuple[int, ...],
    size: int,
) -> float:
    before, own = cpu_micros(*roots), time.thread_time()
    for batch in _batches(events, size):
        _take(connection, batch, caches, clock)
    return (time.thread_time() - own) * 1e6 + cpu_micros(*roots) - before


def floor(engine: Engine, server: int, events: Sequence[bytes]) -> float:
    """Microseconds an event for its compressed bytes alone."""
    pack = zstandard.ZstdCompressor(level=3).compress
    with engine.connect() as connection:
        connection.execute(text("CREATE TABLE floor (id bigint, body bytea STORAGE EXTERNAL)"))
        connection.commit()
        before, own = cpu_micros(server), time.thread_time()
        for batch in _batches(events):
            cursor = connection.connection.cursor()
            with cursor.copy("COPY floor FROM STDIN (FORMAT binary)") as copy:
                copy.set_types(["int8", "bytea"])
                for number, record in enumerate(batch):
                    copy.write_row((number, pack(record.value)))
            connection.commit()
        total = (time.thread_time() - own) * 1e6 + cpu_micros(server) - before
    return total / len(events)


def growth(
    engine: Engine, events: Iterator[bytes], sizes: Sequence[int], window: int
) -> list[float]:
    """Microseconds an event, in the median of the batches, for the `window` of events before each size of the store."""
    caches, found, done = Caches(), [], 0
    with engine.connect() as connection:
        for size in sizes:
            for batch in _batches(islice(events, size - window - done)):
                _take(connection, batch, caches, Clock())
            batches = [
                _cost(connection, batch, caches) for batch in _batches(islice(events, window))
            ]
            found.append(statistics.median(batches))
            done = size
    return found


def _cost(connection: Connection, batch: list[Record], caches: Caches) -> float:
    clock = Clock(_backend(connection))
    with clock.stage("all", database=True):
        _take(connection, batch, caches, Clock())
    return clock.spent["all"] / len(batch)


def _take(connection: Connection, batch: list[Record], caches: Caches, clock: Clock) -> None:
    with clock.stage("other", database=True):
        take(connection, batch, caches)
    with clock.stage("commit", database=True):
        connection.commit()
    caches.commit()


def _batches(events: Iterable[bytes], size: int = BATCH) -> Iterator[list[Record]]:
    remaining = iter(events)
    while batch := list(islice(remaining, size)):
        now = datetime.now(UTC)
        yield [Record(event, now) for event in batch]


def _backend(connection: Connection) -> int:
    if connection.dialect.name == "sqlite":
        return 0
    pid: int = connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one()
    connection.commit()
    return pid


@contextmanager
def _timed(clock: Clock) -> Iterator[None]:
    """The functions of the pipeline with a clock around each."""
    before = {name: getattr(intake, name) for name, _, _ in STAGES}
    for name, stage, database in STAGES:
        setattr(intake, name, _clocked(before[name], clock, stage, database))
    try:
        yield
    finally:
        for name, function in before.items():
            setattr(intake, name, function)


def _clocked(
    function: Callable[..., Any], clock: Clock, stage: str, database: bool
) -> Callable[..., Any]:
    def timed(*arguments: Any) -> Any:
        with clock.stage(stage, database=database):
            return function(*arguments)

    return timed
