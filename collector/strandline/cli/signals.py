"""Stop signals for commands that run until they are stopped."""

import signal
from collections.abc import Callable
from types import FrameType


def end_on_signals(end: Callable[[], object]) -> None:
    """Call `end` on SIGTERM and SIGINT, between two instructions of the main thread.

    `end` may only set a flag.
    """

    def on_signal(_number: int, _frame: FrameType | None) -> None:
        end()

    signal.signal(signal.SIGTERM, on_signal)
    signal.signal(signal.SIGINT, on_signal)
