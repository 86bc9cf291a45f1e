"""Counts of events that an emitter could not deliver."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Losses:
    """The losses since the driver started."""

    dropped: int = 0  # given up: memory was full, or neither backend nor disk took it
    refused: int = 0  # the backend refused for good
    damaged: int = 0  # lines of a spool file that were not whole
