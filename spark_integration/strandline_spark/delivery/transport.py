"""The transport of events out of the driver.

One method, `send`, that tries once within a time and says what did not go.

A transport may block, up to the time it is given; it runs on the outbox's thread and never on
Spark's. It never raises for anything the network does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Message:
    """One event as bytes, its Kafka key, and if it must reach the collector whatever it takes."""

    key: str
    body: bytes
    vital: bool = False
    micro_batch: tuple[str, int] | None = (
        None  # (streaming query id, micro-batch) that this event reports
    )
    heartbeat: bool = False  # says only that a run is alive now: worth nothing later


@dataclass(frozen=True, slots=True)
class Delivery:
    """The outcome of some messages: `unsent` may be tried again, `refused` never will be accepted.

    `partly`: of several ways out at least one took all of them; only the others lack what is
    unsent.
    """

    unsent: tuple[Message, ...] = ()
    refused: tuple[Message, ...] = ()
    reason: str = ""
    partly: bool = False


class Transport(Protocol):
    """A way out of the driver."""

    def send(self, messages: Sequence[Message], seconds: float) -> Delivery:
        """Try each message once, in order, within `seconds`."""
        ...

    def close(self) -> None:
        """Give connections back. Never blocks for long."""
        ...


class TransportConfError(ValueError):
    """The transport's conf cannot be used: it says which key and why."""
