"""The table that a stream over several tables waits for.

A warning that names it, and an end to the wait where one was asked for.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping

from strandline_spark.consistency.aligned.inputs import InputsLateError

_LOG = logging.getLogger("strandline")
WARNED_AFTER = 30.0  # seconds: a table that is merely slower than the others gets no warning

Barriers = Mapping[str, Mapping[int, str]]


class LateTables:
    """The time that a stream has waited for late tables.

    One without new data on any table does not wait.
    """

    def __init__(self, timeout: float | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._timeout = timeout
        self._clock = clock
        self._since: float | None = None
        self._warned = False

    def check(self, done: Barriers, position: int) -> None:
        """Note that the stream stays at a barrier.

        Raises InputsLateError when the wait has been too long.
        """
        reason = reason_to_wait(done, position)
        if reason is None:
            self.end()
            return
        now = self._clock()
        self._since = now if self._since is None else self._since
        waited = now - self._since
        text = f"strandline_aligned has waited {waited:.0f} s after barrier {position}: {reason}"
        if self._timeout is not None and waited > self._timeout:
            raise InputsLateError(f"{text} (option timeout: {self._timeout:g} s)")
        if waited >= WARNED_AFTER and not self._warned:
            self._warned = True
            _LOG.warning(text)

    def end(self) -> None:
        """The stream goes on, or has nothing to wait for."""
        self._since, self._warned = None, False


def reason_to_wait(done: Barriers, position: int) -> str | None:
    """Return why no table goes on from a barrier, by the barriers that each completed.

    None if nothing new is anywhere.

    >>> reason_to_wait({"lake.a.b": {1: "10"}, "lake.a.c": {}}, 0)
    'none of the snapshots of lake.a.c states a barrier (no job with barriers writes it)'
    >>> reason_to_wait({"lake.a.b": {1: "10"}, "lake.a.c": {1: "20"}}, 1)
    """
    newest = {table: max(barriers, default=0) for table, barriers in done.items()}
    bare = [table for table, barrier in newest.items() if barrier == 0]
    if bare:
        return (
            f"none of the snapshots of {', '.join(bare)} states a barrier (no job "
            "with barriers writes it)"
        )
    if max(newest.values()) <= position:
        return None
    listed = ", ".join(
        f"{table} has barrier {barrier} as its newest" for table, barrier in newest.items()
    )
    late = [table for table, barrier in newest.items() if barrier <= position]
    return (
        f"{', '.join(late)} is late ({listed})"
        if late
        else f"no barrier is common to all tables ({listed})"
    )
