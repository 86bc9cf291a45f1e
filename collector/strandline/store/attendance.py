"""The thread in which a server does what is due by itself (see coordinator.py), while it serves."""

import time
from collections.abc import Callable
from itertools import count

from sqlalchemy import Engine

from strandline.store.coordinator import Intervals, Part, attend
from strandline.store.follower import Follower
from strandline.store.turns import Turns

TICK_SECONDS = 0.5
PARTS = 10  # each tick asks the store of a tenth of the running jobs


def attendance(engine: Engine, follower: Follower, intervals: Intervals, complain: Callable[[str], None]) -> Turns:
    """Attends until stopped."""
    turn = count()

    def attend_to_a_part() -> None:
        attend(engine, follower, intervals, time.time(), Part(next(turn), PARTS))

    return Turns("attendance", attend_to_a_part, TICK_SECONDS, complain)
