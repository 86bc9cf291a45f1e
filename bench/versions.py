"""Consistent versions with 10,000 tables in 100 components.

In process, and over REST while 1,000 events/s come in.

In process: strong answers, upkeep per commit from 100 to 10,000 tables, expiry of a table with
100,000 snapshots.
"""

import gc
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, islice
from pathlib import Path

import msgspec
from sqlalchemy import Engine, Table, Text, insert

from bench import _components as world
from bench._versions_rest import over_rest
from bench.report import record
from strandline.core.openlineage.names import id_of
from strandline.core.versions.apply import apply
from strandline.core.versions.expirable import expiry, pins
from strandline.core.versions.facts import BarrierCommitted, Fact
from strandline.core.versions.model import Model
from strandline.core.versions.strong_weak import strong
from strandline.runtime.follower import Follower
from strandline.store.schema.dataset_tables import datasets
from strandline.store.schema.snapshot_tables import snapshots
from strandline.store.sql.engine import make_engine, migrate, reading
from strandline.store.versions.answers import expiry_of
from strandline.store.versions.fact_log import append, lock_head

SIZES = (1, 10, 100)  # components
BATCH = 100  # commits of one transaction
SNAPSHOTS = 100_000
DECODER = msgspec.json.Decoder(BarrierCommitted)


def run(short: bool) -> None:
    """Measure and record; short: a tenth of the tables over REST, fewer turns everywhere."""
    with frozen():
        _upkeep(3 if short else 12)
    _strong(2_000 if short else 50_000)
    with frozen():
        _expiry(5 if short else 30)
    over_rest(short)


class frozen:  # noqa: N801 - reads as a word
    """Keep live objects out of the garbage collector's way, as in a server."""

    def __enter__(self) -> None:
        gc.collect()
        gc.freeze()

    def __exit__(self, *_: object) -> None:
        gc.unfreeze()


def _built(components: int) -> Model:
    model = Model()
    for fact in _beginning(components):
        apply(model, fact)
    return model


def _beginning(components: int) -> Iterator[Fact]:
    return chain(
        world.started(components), *(world.round_of(components, barrier) for barrier in (1, 2))
    )


def _upkeep(rounds: int) -> None:
    """CPU microseconds a commit with so many tables, the sizes in turn.

    Rounds of 10,000 commits for each of them.

    A server's upkeep is to read what was committed from the log, to decode and to fold it; `fold`
    is the last alone.
    """
    followed: dict[int, list[float]] = {components: [] for components in SIZES}
    folded: dict[int, list[float]] = {components: [] for components in SIZES}
    with tempfile.TemporaryDirectory() as folder:
        servers = {components: _Server(Path(folder), components) for components in SIZES}
        models = {components: _built(components) for components in SIZES}
        gc.collect()
        gc.freeze()
        for turn in range(rounds):
            for components in SIZES:
                commits = _commits(components, 3 + turn * (SIZES[-1] // components))
                followed[components].append(_per_commit(servers[components].follow, commits))
                commits = _commits(components, 3 + turn * (SIZES[-1] // components))
                folded[components].append(_per_commit(partial(_fold, models[components]), commits))
        for server in servers.values():
            server.engine.dispose()
    _tell_upkeep("versions.upkeep", followed, "read from the log, decode and fold it, CPU", 1.2)
    _tell_upkeep("versions.fold", folded, "fold it, CPU", None)


def _tell_upkeep(
    name: str, found: Mapping[int, Sequence[float]], what: str, bound: float | None
) -> None:
    for components, micros in found.items():
        record(
            f"{name}.{components * world.TABLES}_tables",
            statistics.median(micros),
            "us/commit",
            note=what,
        )
    growth = statistics.median(
        many / few for few, many in zip(found[SIZES[0]], found[SIZES[-1]], strict=True)
    )
    met = growth <= bound if bound else None
    note = "10,000 tables against 100, round by round"
    record(f"{name}.growth", growth, "x", f"<= {bound}" if bound else "", met, note)


class _Server:
    """The versions of a server, and the log that it follows."""

    def __init__(self, folder: Path, components: int) -> None:
        self.engine = make_engine(f"sqlite:///{folder / f'{components}.db'}")
        migrate(self.engine)
        self._follower = Follower(self.engine)
        self.follow(list(_beginning(components)))

    def follow(self, facts: Sequence[Fact]) -> int:
        """Nanoseconds of CPU to follow these commits."""
        with self.engine.begin() as connection:
            append(connection, lock_head(connection), facts, 1)
        began = time.process_time_ns()
        self._follower.follow()
        return time.process_time_ns() - began


def _fold(model: Model, facts: Sequence[Fact]) -> int:
    told = [DECODER.decode(msgspec.json.encode(fact)) for fact in facts]
    began = time.process_time_ns()
    for fact in told:
        apply(model, fact)
    return time.process_time_ns() - began


def _commits(components: int, barrier: int) -> Iterator[Fact]:
    """10,000 commits."""
    return chain.from_iterable(
        world.round_of(components, barrier + n) for n in range(SIZES[-1] // components)
    )


def _per_commit(take: Callable[[Sequence[Fact]], int], commits: Iterator[Fact]) -> float:
    """Microseconds a commit; they come a batch at a time."""
    taken = 0
    while batch := list(islice(commits, BATCH)):
        taken += take(batch)
    return taken / (world.TABLES * SIZES[-1]) / 1000


def _strong(turns: int) -> None:
    """Two tables of one component at random, commits coming in between."""
    model, random_ = _built(SIZES[-1]), random.Random(7)
    commits = [fact for barrier in (3, 4, 5) for fact in world.round_of(SIZES[-1], barrier)]
    taken = []
    for turn in range(turns):
        apply(model, commits[turn % len(commits)])
        component = random_.randrange(SIZES[-1])
        query = [
            world.table(component, number) for number in random_.sample(range(world.TABLES), 2)
        ]
        taken.append(_micros(lambda query=query: strong(model, query)))  # type: ignore[misc]
    p99 = percentile(taken, 99) / 1000
    record("versions.strong.p99", p99, "ms", "<= 2 ms", p99 <= 2, "10,000 tables, in process")


def _expiry(turns: int) -> None:
    """One table with 100,000 snapshots.

    The split alone, and with reading its history from SQLite.
    """
    model, named = _built(1), world.table(0, 1)
    history = [str(number) for number in range(1, SNAPSHOTS + 1)]
    alone = (
        percentile(
            [_micros(lambda: expiry(history, pins(model, named, 1))) for _ in range(turns)], 50
        )
        / 1000
    )
    record(
        "versions.expiry.split",
        alone,
        "ms",
        "<= 100 ms",
        alone <= 100,
        "100,000 snapshots, in process",
    )
    with tempfile.TemporaryDirectory() as folder:
        engine = make_engine(f"sqlite:///{Path(folder) / 'bench.db'}")
        migrate(engine)
        _store_history(engine, named, history)
        with reading(engine).connect() as connection:
            taken = [
                _micros(lambda: expiry_of(connection, named, pins(model, named, 1), world.START))
                for _ in range(turns)
            ]
        engine.dispose()
    whole = percentile(taken, 50) / 1000
    record(
        "versions.expiry.sqlite",
        whole,
        "ms",
        "<= 100 ms",
        whole <= 100,
        "with the history from the store",
    )


def _store_history(engine: Engine, named: tuple[str, str], history: Sequence[str]) -> None:
    key = id_of("dataset", *named)
    with engine.begin() as connection:
        named_so = {"id": key, "canonical_id": key, "namespace": named[0], "name": named[1]}
        connection.execute(insert(datasets), [_row(datasets, named_so)])
        rows = [
            _row(
                snapshots,
                {"dataset_id": key, "snapshot_id": one, "parent_id": before, "at": int(one)},
            )
            for before, one in zip([None, *history], history, strict=False)
        ]
        connection.execute(insert(snapshots), rows)


def _row(table: Table, known: dict[str, object]) -> dict[str, object]:
    """A row with something in every column."""
    empty = {
        column.name: "" if isinstance(column.type, Text) else 0
        for column in table.c
        if not column.nullable
    }
    return empty | known


def _micros(work: Callable[[], object]) -> float:
    began = time.perf_counter_ns()
    work()
    return (time.perf_counter_ns() - began) / 1000


def percentile(taken: Sequence[float], rank: int) -> float:
    """The value that `rank` per cent do not pass."""
    return sorted(taken)[min(len(taken) - 1, len(taken) * rank // 100)]
