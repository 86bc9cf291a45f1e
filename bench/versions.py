"""Consistent versions: the upkeep of a commit, strong answers and expiry, in process.

Components have 100 tables each: one base table, ten below it, nine below each of these.
"""

import gc
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path

from sqlalchemy import Engine, Table, Text, insert

from bench import _components as world
from bench.lineage import quantile
from bench.report import record
from strandline.core.openlineage.names import id_of
from strandline.core.versions.apply import apply
from strandline.core.versions.expirable import pins
from strandline.core.versions.facts import Fact
from strandline.core.versions.model import Model
from strandline.core.versions.strong_weak import strong
from strandline.runtime.follower import Follower
from strandline.store.schema.dataset_tables import datasets
from strandline.store.schema.snapshot_tables import snapshots
from strandline.store.sql.engine import make_engine, migrate, reading
from strandline.store.versions.answers import expiry_of
from strandline.store.versions.fact_log import append, lock_head

FEW, MANY = 1, 100  # components
COMMITS = 10_000  # measured together
TRANSACTION = 100  # commits
SNAPSHOTS = 100_000


def run(short: bool) -> None:
    """Measure and record; short: few turns."""
    upkeep(2 if short else 12)
    strong_answers(FEW, tables=10, barriers=2, most=1, turns=100 if short else 5_000)
    strong_answers(MANY, tables=10, barriers=2, most=1, turns=100 if short else 5_000)
    strong_answers(FEW, tables=50, barriers=200, most=5, turns=20 if short else 1_000)
    expiry(3 if short else 30)


def upkeep(rounds: int) -> None:
    """CPU of a server that reads commits from the log and folds them, with 100 tables and with
    10,000, in turn.
    """
    taken: dict[int, list[float]] = {FEW: [], MANY: []}
    with tempfile.TemporaryDirectory() as folder:
        servers = {components: Followed(Path(folder), components) for components in taken}
        with unwalked():
            for _ in range(rounds):
                for components, server in servers.items():
                    taken[components].append(server.follow_commits())
        for server in servers.values():
            server.engine.dispose()
    for components, micros in taken.items():
        name = f"versions.upkeep.{components * world.TABLES}_tables"
        record(name, statistics.median(micros), "us/commit", note="CPU")
    pairs = zip(taken[FEW], taken[MANY], strict=True)
    growth = statistics.median(many / few for few, many in pairs)
    record("versions.upkeep.growth", growth, "x", "<= 1.2", growth <= 1.2, "10,000 tables to 100")


class Followed:
    """A store with so many components, and the versions of a server on it."""

    def __init__(self, folder: Path, components: int) -> None:
        self.engine = make_engine(f"sqlite:///{folder / f'{components}.db'}")
        migrate(self.engine)
        self._follower = Follower(self.engine)
        self._commits = chain.from_iterable(
            world.round_of(components, barrier) for barrier in range(1, 10**6)
        )
        self._follow(list(world.started(components)))

    def follow_commits(self) -> float:
        """Follow the next commits, a transaction at a time; microseconds of CPU for each."""
        taken = sum(
            self._follow(list(islice(self._commits, TRANSACTION)))
            for _ in range(COMMITS // TRANSACTION)
        )
        return taken / COMMITS / 1000

    def _follow(self, facts: Sequence[Fact]) -> int:
        with self.engine.begin() as connection:
            append(connection, lock_head(connection), facts, 1)
        began = time.process_time_ns()
        self._follower.follow()
        return time.process_time_ns() - began


def strong_answers(components: int, *, tables: int, barriers: int, most: float, turns: int) -> None:
    """Record the CPU of a strong answer over random tables of one component."""
    model, chance = Model(), random.Random(7)
    for fact in world.started(components):
        apply(model, fact)
    for barrier in range(1, barriers + 1):
        for fact in world.round_of(components, barrier):
            apply(model, fact)
    with unwalked():
        taken = []
        for _ in range(turns):
            component = chance.randrange(components)
            chosen = chance.sample(range(world.TABLES), tables)
            query = [world.table(component, number) for number in chosen]
            taken.append(millis(lambda query=query: strong(model, query)))  # type: ignore[misc]
    p99 = quantile(taken, 99)
    name = f"versions.strong.{tables}_tables_{barriers}_barriers.{components * world.TABLES}"
    record(f"{name}.p99", p99, "ms", f"<= {most} ms", p99 <= most, "CPU, in process")


def expiry(turns: int) -> None:
    """Record the CPU of an expiry plan of one table with its history in SQLite."""
    model, named = Model(), world.table(0, 1)
    for fact in chain(world.started(1), world.round_of(1, 1), world.round_of(1, 2)):
        apply(model, fact)
    with (
        tempfile.TemporaryDirectory() as folder,
        stored_history(Path(folder), named) as engine,
        reading(engine).connect() as connection,
    ):
        taken = [
            millis(lambda: expiry_of(connection, named, pins(model, named, 1), world.START))
            for _ in range(turns)
        ]
    median = quantile(taken, 50)
    note = f"{SNAPSHOTS:,} snapshots, CPU"
    record("versions.expiry.sqlite", median, "ms", "<= 100 ms", median <= 100, note)


@contextmanager
def stored_history(folder: Path, named: tuple[str, str]) -> Iterator[Engine]:
    """A store in which a table has many snapshots, each the parent of the next."""
    engine = make_engine(f"sqlite:///{folder / 'bench.db'}")
    migrate(engine)
    key = id_of("dataset", *named)
    history = [str(number) for number in range(1, SNAPSHOTS + 1)]
    dataset: dict[str, object] = {
        "id": key,
        "canonical_id": key,
        "namespace": named[0],
        "name": named[1],
    }
    rows: list[dict[str, object]] = [
        {"dataset_id": key, "snapshot_id": snapshot, "parent_id": parent, "at": int(snapshot)}
        for parent, snapshot in zip([None, *history], history, strict=False)
    ]
    with engine.begin() as connection:
        connection.execute(insert(datasets), [row_of(datasets, dataset)])
        connection.execute(insert(snapshots), [row_of(snapshots, row) for row in rows])
    yield engine
    engine.dispose()


def row_of(table: Table, known: dict[str, object]) -> dict[str, object]:
    """A row with something in every column."""
    empty = {
        column.name: "" if isinstance(column.type, Text) else 0
        for column in table.c
        if not column.nullable
    }
    return empty | known


@contextmanager
def unwalked() -> Iterator[None]:
    """Keep what is there now out of the garbage collector's way, as a server does."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def millis(work: Callable[[], object]) -> float:
    """Milliseconds of CPU that a call takes."""
    began = time.thread_time_ns()
    work()
    return (time.thread_time_ns() - began) / 1e6
