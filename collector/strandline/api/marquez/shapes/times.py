"""Moments and states as Marquez writes them."""

from functools import lru_cache

from strandline.core.openlineage.times import moment_of

# Marquez has no state for a run that fell silent; it has ended without success.
STATES = {
    "NONE": "NEW", "START": "RUNNING", "RUNNING": "RUNNING", "COMPLETE": "COMPLETED",
    "FAIL": "FAILED", "ABORT": "ABORTED", "LOST": "ABORTED",
}  # fmt: skip


@lru_cache(10_000)
def time_text(at: int) -> str:
    """Return a moment, to the millisecond at least.

    >>> time_text(1_500_000)
    '1970-01-01T00:00:01.500Z'
    """
    moment = moment_of(at).replace(tzinfo=None)
    return f"{moment.isoformat(timespec='microseconds' if at % 1000 else 'milliseconds')}Z"


def time_or_none(at: int | None) -> str | None:
    """Return the same, or null where Marquez' page expects that there may be none."""
    return None if at is None else time_text(at)
