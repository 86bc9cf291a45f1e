"""Repeated log lines are written sparingly."""

import threading

import pytest

from strandline.logs import Sparing
from strandline.runtime.periodic import Turns


def test_repeated_log_line_is_written_once_a_minute_with_its_count() -> None:
    written: list[str] = []
    seconds = [0.0]
    say = Sparing(written.append, clock=lambda: seconds[0])

    for seconds[0] in (0, 0.5, 1, 59, 60, 60.5):
        say("refused")
    say("too many clients")

    assert written == [
        "refused",
        "refused (3 times more since it was written last)",
        "too many clients",
    ]


@pytest.mark.parametrize("at_once", [True, False])
def test_repeated_failure_is_logged_once(at_once: bool) -> None:
    told: list[str] = []
    turns, enough = [0], threading.Event()

    def fail() -> None:
        turns[0] += 1
        if turns[0] == 20:
            enough.set()
        raise ConnectionError("refused\nat some length")

    with Turns("failing", fail, 0.001, told.append, at_once=at_once):
        assert enough.wait(60)

    assert told == ["ConnectionError: refused"]
