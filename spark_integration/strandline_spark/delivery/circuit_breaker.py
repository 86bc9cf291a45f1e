"""A circuit breaker: it decides when to try again.

A circuit breaker with growing pauses, for one way out of the driver.
"""

from __future__ import annotations


class Circuit:
    """Open after a failure, for a pause that doubles with each one.

    From half a second to half a minute.
    """

    def __init__(self, first_pause: float) -> None:
        self._first_pause = first_pause
        self._pause = 0.0
        self._until = 0.0

    @property
    def failing(self) -> bool:
        """True if the last attempt failed."""
        return self._pause > 0

    def is_open(self, now: float) -> bool:
        """Return whether sending makes no sense now."""
        return now < self._until

    def wait(self, now: float) -> float:
        """Seconds until the next attempt."""
        return max(0.0, self._until - now)

    def failed(self, now: float) -> None:
        """An attempt failed."""
        self._pause = min(30.0, self._pause * 2 or self._first_pause)
        self._until = now + self._pause

    def succeeded(self) -> None:
        """An attempt went through."""
        self._pause = self._until = 0.0
