"""States of a run, ranked: the greatest of all events counts, so their order does not matter."""

from typing import Literal

NONE, START, RUNNING, ABORT, COMPLETE, FAIL = range(6)
LOST = -1  # never stored: it follows from the other states and the time

State = Literal["NONE", "START", "RUNNING", "LOST", "ABORT", "COMPLETE", "FAIL"]
NAMES: tuple[State, ...] = ("NONE", "START", "RUNNING", "ABORT", "COMPLETE", "FAIL")
STATES = ("START", "RUNNING", "COMPLETE", "FAIL", "ABORT", "LOST")
"""The states that a list of runs can be narrowed to."""
STATES_LISTED = ", ".join(STATES).replace("ABORT", "ABORT (stopped)")
_RANKS: dict[str, int] = {name: rank for rank, name in enumerate(NAMES)}


def rank_of(event_type: str | None) -> int:
    """Return the rank of an event's type: OTHER and none change no state.

    >>> [rank_of(type_) for type_ in ("FAIL", "COMPLETE", "ABORT", "RUNNING", None)]
    [5, 4, 3, 2, 0]
    """
    return _RANKS.get(event_type or "", NONE)


def runs(rank: int) -> bool:
    """Return whether the event says that the run really runs."""
    return rank in (START, RUNNING)


def is_terminal(rank: int) -> bool:
    """Return whether the event ends the run."""
    return rank >= ABORT


def state_of(rank: int, silent_at: int, now: int) -> State:
    """Return the state of a run at a moment.

    A run that started and did not end is LOST once its heartbeat timeout is over.

    >>> state_of(RUNNING, silent_at=10, now=11), state_of(COMPLETE, silent_at=10, now=11)
    ('LOST', 'COMPLETE')
    """
    return "LOST" if runs(rank) and silent_at < now else NAMES[rank]
