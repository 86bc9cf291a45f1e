"""The cost of events when a store takes them in, without a client or a broker.

Processor time, statements a batch, rows, bytes and write-ahead log an event, bytes a run.
"""

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, event, text

from bench._machine import cpu_micros, stored_bytes
from strandline.settings import Settings
from strandline.store.ingest.take import Caches, Record, take

BATCH = Settings().batch_records


@dataclass
class Counted:
    """Statements and the rows that they wrote: inserted, changed or deleted."""

    statements: int = 0
    rows: int = 0


@dataclass(frozen=True)
class Written:
    """The writes for events: in the mean of the batches, events and runs."""

    statements: float
    rows: float
    wal: float
    stored: float
    per_run: float


def written(engine: Engine, warm: Iterable[bytes], events: Sequence[bytes]) -> Written:
    """Take the events in, on caches that `warm` has filled."""
    caches, counted, url = Caches(), Counted(), engine.url.render_as_string(hide_password=False)
    with engine.connect() as connection:
        _take(connection, list(warm), caches, Counted())
        _empty_log(connection)
        log, size, runs = _log(connection), stored_bytes(url), _runs(connection)
        batches = _take(connection, events, caches, counted)
        log, runs = _log(connection) - log, _runs(connection) - runs
    size = stored_bytes(url) - size
    return Written(
        statements=counted.statements / batches,
        rows=counted.rows / len(events),
        wal=log / len(events),
        stored=size / len(events),
        per_run=size / max(1, runs),
    )


def micros_an_event(
    engine: Engine, roots: Sequence[int], warm: Iterable[bytes], events: Sequence[bytes]
) -> float:
    """Processor time of this thread and of the database's processes (`roots`) for an event.

    The caches were filled by `warm`.
    """
    caches = Caches()
    with engine.connect() as connection:
        _take(connection, list(warm), caches, Counted())
        return _micros(connection, roots, events, caches)


def growth(
    engine: Engine,
    roots: Sequence[int],
    events: Iterator[bytes],
    sizes: Sequence[int],
    window: int,
) -> list[float]:
    """Processor time an event for the `window` of events before each size of the store."""
    caches, found, done = Caches(), [], 0
    with engine.connect() as connection:
        for size in sizes:
            while done < size - window:
                taken = list(islice(events, min(BATCH, size - window - done)))
                _take(connection, taken, caches, Counted())
                done += len(taken)
            found.append(_micros(connection, roots, list(islice(events, window)), caches))
            done = size
    return found


def _micros(
    connection: Connection, roots: Sequence[int], events: Sequence[bytes], caches: Caches
) -> float:
    before, own = cpu_micros(*roots), time.thread_time()
    _take(connection, events, caches, Counted())
    spent = (time.thread_time() - own) * 1e6 + cpu_micros(*roots) - before
    return spent / len(events)


def _take(connection: Connection, events: Sequence[bytes], caches: Caches, counted: Counted) -> int:
    """Take the events in, a batch a transaction; gives how many batches that were."""
    starts = range(0, len(events), BATCH)
    for start in starts:
        now = datetime.now(UTC)  # each batch has its moment of receipt, as an array over HTTP has
        before = _rows(connection)
        with _counting(connection, counted):
            take(connection, [Record(one, now) for one in events[start : start + BATCH]], caches)
        counted.rows += _rows(connection) - before
        connection.commit()
        caches.commit()
    return len(starts)


@contextmanager
def _counting(connection: Connection, counted: Counted) -> Iterator[None]:
    def note(*_: Any) -> None:
        counted.statements += 1

    event.listen(connection, "after_cursor_execute", note)
    try:
        yield
    finally:
        event.remove(connection, "after_cursor_execute", note)


def _rows(connection: Connection) -> int:
    """Count the rows that the transaction has written so far, or on SQLite the connection."""
    if connection.dialect.name == "sqlite":
        driver: Any = connection.connection.driver_connection
        return int(driver.total_changes)
    written_rows = "SELECT sum(n_tup_ins + n_tup_upd + n_tup_del) FROM pg_stat_xact_user_tables"
    return int(connection.scalar(text(written_rows)) or 0)


def _empty_log(connection: Connection) -> None:
    """Let SQLite's log grow from here on without an end; PostgreSQL numbers its bytes."""
    if connection.dialect.name == "sqlite":
        driver: Any = connection.connection.driver_connection
        driver.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        driver.execute("PRAGMA wal_autocheckpoint = 0")


def _log(connection: Connection) -> int:
    """Return the bytes of the log."""
    if connection.dialect.name == "sqlite":
        return Path(f"{connection.engine.url.database}-wal").stat().st_size
    position = connection.scalar(text("SELECT pg_current_wal_lsn() - '0/0'::pg_lsn"))
    connection.commit()
    return int(position or 0)


def _runs(connection: Connection) -> int:
    found = connection.scalar(text("SELECT count(*) FROM runs"))
    connection.commit()
    return int(found or 0)
