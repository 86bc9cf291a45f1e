"""The thread in which a server drops what is older than STRANDLINE_RETENTION_DAYS: a day at a time, never more often."""

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from sqlalchemy import Engine, func, select

from strandline.core.times import micros_of
from strandline.store.retention import Expired, expire
from strandline.store.tables import raw_events

LOOK_SECONDS = 3600.0
A_DAY = timedelta(days=1)


def expire_old(engine: Engine, days: int, now: datetime) -> Expired | None:
    """Drop what is older than so many days, unless there is less than a day of it: then None."""
    before = now - timedelta(days=days)
    with engine.begin() as connection:
        oldest = connection.scalar(select(func.min(raw_events.c.received_at)))
        if oldest is None or oldest >= micros_of(before - A_DAY):
            return None
        return expire(connection, before)


class Expiring:
    """Looks every hour until stopped; whatever goes wrong is told to `complain` and tried again."""

    def __init__(self, engine: Engine, days: int | None, complain: Callable[[str], None]) -> None:
        self._engine = engine
        self._days = days
        self._complain = complain
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="expiring", daemon=True)

    def start(self) -> None:
        """Start the thread, if anything is ever to be dropped."""
        if self._days is not None:
            self._thread.start()

    def stop(self) -> None:
        """End the thread; what it does at the moment is finished first."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(timeout=30)

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                expire_old(self._engine, self._days or 0, datetime.now(UTC))
            except Exception as error:  # noqa: BLE001 - whatever it is, the next look tries again
                self._complain(f"{type(error).__name__}: {error}".partition("\n")[0])
            self._stopping.wait(LOOK_SECONDS)
