"""What may leave the driver, and how much of it."""

from __future__ import annotations

from typing import Any

from strandline_spark.announcer import compact_json
from strandline_spark.conf import Conf


class Finish:
    """Turns a finished event into the bytes that leave the driver."""

    def __init__(self, conf: Conf) -> None:
        self._conf = conf

    def __call__(self, event: dict[str, Any]) -> bytes:
        """The event's bytes."""
        return compact_json(event)
