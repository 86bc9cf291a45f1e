"""The moment and the kind of state that a question is about."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class View:
    """The moment of a question in microseconds, and which runs of a job count at it.

    By default the job's recent runs count. With `live` only running ones do, with `newest` only
    the latest. `past` says that the moment is not now. `runs` is the number of recent runs before
    the latest application; None stands for the store's setting.
    """

    at: int
    live: bool = False
    past: bool = False
    newest: bool = False
    runs: int | None = None
