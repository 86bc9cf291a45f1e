"""The thread in which a server does what is due by itself (see coordinator.py), while it serves."""

import threading
import time
from collections.abc import Callable

from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError

from strandline.errors import StrandlineError
from strandline.store.coordinator import Intervals, attend
from strandline.store.follower import Follower

TICK_SECONDS = 0.5


class Attendance:
    """Attends until stopped; whatever goes wrong is told to `complain` and tried again."""

    def __init__(
        self, engine: Engine, follower: Follower, intervals: Intervals, complain: Callable[[str], None]
    ) -> None:
        self._engine = engine
        self._follower = follower
        self._intervals = intervals
        self._complain = complain
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="attendance", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread; what it does at the moment is finished first."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(timeout=30)

    def _run(self) -> None:
        while not self._stopping.wait(TICK_SECONDS):
            try:
                attend(self._engine, self._follower, self._intervals, time.time())
            except (StrandlineError, DBAPIError) as error:
                self._complain(str(error).partition("\n")[0])
