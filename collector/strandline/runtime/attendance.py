"""The thread in which a server does what is due by itself (see coordinator.py), while it serves."""

import time
from collections.abc import Callable
from itertools import count

from sqlalchemy import Engine

from strandline.runtime.coordinator import Intervals, attend
from strandline.runtime.follower import Follower
from strandline.runtime.periodic import Turns

TICK_SECONDS = 0.5


def attendance(
    engine: Engine, follower: Follower, intervals: Intervals, complain: Callable[[str], None]
) -> Turns:
    """Attends until stopped."""
    turn = count()

    def attend_in_turn() -> None:
        attend(engine, follower, intervals, time.time(), next(turn))

    return Turns("attendance", attend_in_turn, TICK_SECONDS, complain)
