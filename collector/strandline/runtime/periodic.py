"""A thread that does one piece of work again and again until it is stopped.

An error is logged, and the work is tried again.
"""

import threading
from collections.abc import Callable

from strandline.logs import Sparing


class Turns:
    """Work and pause in turn, while in a `with` or between start and stop.

    `complain` gets what went wrong, in a line, but the same line once a minute only.
    """

    def __init__(
        self,
        name: str,
        work: Callable[[], object],
        pause: float,
        complain: Callable[[str], None],
        *,
        at_once: bool = False,
    ) -> None:
        self._work = work
        self._pause = pause
        self._complain = Sparing(complain)
        self._at_once = at_once
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Start the thread: with a pause, unless it is to begin at once."""
        self._thread.start()

    def stop(self, seconds: float = 30) -> None:
        """End the thread.

        What it does at the moment is finished first, if that takes no longer than so many seconds.
        """
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(timeout=seconds)

    def __enter__(self) -> None:
        self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _run(self) -> None:
        if self._at_once:
            self._turn()
        while not self._stopping.wait(self._pause):
            self._turn()

    def _turn(self) -> None:
        try:
            self._work()
        except Exception as error:  # noqa: BLE001 - whatever it is, the next turn tries again
            self._complain(f"{type(error).__name__}: {error}".partition("\n")[0])
