"""The thread in which a server does what is due by itself (see coordinator.py), while it serves."""

import threading
import time
from collections.abc import Callable
from itertools import count

from sqlalchemy import Engine

from strandline.store.coordinator import Intervals, Part, attend
from strandline.store.follower import Follower

TICK_SECONDS = 0.5
PARTS = 10  # each tick asks the store of a tenth of the running jobs


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
        for turn in count():
            if self._stopping.wait(TICK_SECONDS):
                return
            try:
                attend(self._engine, self._follower, self._intervals, time.time(), Part(turn, PARTS))
            except Exception as error:  # noqa: BLE001 - whatever it is, the next tick tries again
                self._complain(f"{type(error).__name__}: {error}".partition("\n")[0])
