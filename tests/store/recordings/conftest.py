"""Recordings that a store has taken in, each once for the session; tests only read them."""

import gzip
import json
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import cache, partial

import pytest
from sqlalchemy import Engine

import recordings
from fixtures.stores import SQLITE_FIRST
from strandline.store.sql.engine import make_engine
from worlds import recorded as others
from worlds.builders import store
from worlds.stock_recorded import Recorded, recorded

RecordedEngine = Callable[[str, str, str], Engine]
Take = Callable[[str, str], Recorded]
Heard = Callable[[str], list[tuple[datetime, Engine, Engine]]]
OTHERS = recordings.FILES.parent / "others"
MOMENTS = 4  # a recording is cut so many times less one


@pytest.fixture(scope="session")
def recorded_engine(new_store: Callable[[str], str]) -> Iterator[RecordedEngine]:
    """Give a function that returns a store with a recording of another producer than Spark."""
    engines: list[Engine] = []

    @cache
    def take(name: str, database: str, order: str) -> Engine:
        engine = make_engine(new_store(database))
        engines.append(engine)
        others.take(engine, name, order)
        return engine

    yield take
    for engine in engines:
        engine.dispose()


@pytest.fixture(scope="session")
def take_recording(new_store: Callable[[str], str]) -> Iterator[Take]:
    """Give a function that returns a store with a recording of Spark's listener."""
    engines: list[Engine] = []

    @cache
    def take(name: str, order: str) -> Recorded:
        engine = make_engine(new_store("sqlite"))
        engines.append(engine)
        return recorded(name, order, engine)

    yield take
    for engine in engines:
        engine.dispose()


@pytest.fixture(scope="session")
def heard_on(
    new_store: Callable[[str], str],
) -> Iterator[Callable[[str, str], list[tuple[datetime, Engine, Engine]]]]:
    """Give a function that returns moments of a recording, each with a store of then and the store of the end.

    The stores of then, on SQLite, have heard of the events up to the moment. The store of the end has heard of all.
    """
    engines: list[Engine] = []

    @cache
    def heard_until(database: str, name: str, moment: datetime) -> Engine:
        engine = make_engine(new_store(database))
        engines.append(engine)
        store(engine, [line for at, line in events_of(name) if at <= moment])
        return engine

    def heard(database: str, name: str) -> list[tuple[datetime, Engine, Engine]]:
        times = sorted({moment for moment, _ in events_of(name)})
        cuts = [times[len(times) * part // MOMENTS] for part in range(1, MOMENTS)]
        whole = heard_until(database, name, times[-1])
        return [(moment, heard_until("sqlite", name, moment), whole) for moment in cuts]

    yield heard
    for engine in engines:
        engine.dispose()


@pytest.fixture(params=SQLITE_FIRST)
def heard(
    heard_on: Callable[[str, str], list[tuple[datetime, Engine, Engine]]],
    request: pytest.FixtureRequest,
) -> Heard:
    """Give `heard_on` for one database."""
    return partial(heard_on, request.param)


def events_of(name: str) -> list[tuple[datetime, bytes]]:
    """Return the events of a recording with their times, the oldest first."""
    folder = recordings.FILES if (recordings.FILES / f"{name}.json").exists() else OTHERS
    lines = gzip.decompress((folder / f"{name}.jsonl.gz").read_bytes()).splitlines()
    return sorted((datetime.fromisoformat(json.loads(line)["eventTime"]), line) for line in lines)
