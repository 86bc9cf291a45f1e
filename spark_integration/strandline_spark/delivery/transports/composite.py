"""Several transports as one.

Each gets every event, and an event counts as sent only when all have it.

A transport that failed is left out for a while, so that the others go on; then it gets only what it
still lacks.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256

from strandline_spark.delivery.circuit_breaker import Circuit
from strandline_spark.delivery.transport import Delivery, Message, Transport, TransportConfError
from strandline_spark.delivery.transports.destinations import parts_of

_LOG = logging.getLogger("strandline")


class CompositeTransport:
    """Sends to all of them.

    The time of one attempt is shared, so that one that hangs leaves the others some.
    """

    def __init__(self, transports: Mapping[str, Transport], first_pause: float = 0.5) -> None:
        self._parts = {
            name: _Part(name, transport, first_pause) for name, transport in transports.items()
        }
        self._lacking: dict[
            bytes, frozenset[str]
        ] = {}  # an event's digest -> transports without it

    def send(self, messages: Sequence[Message], seconds: float) -> Delivery:
        """Try every transport once, those that failed last."""
        digests = {m.body: sha256(m.body).digest() for m in messages}
        deliveries: dict[str, Delivery] = {}
        for part in sorted(self._parts.values(), key=lambda part: part.circuit.failing):
            due = [
                m for m in messages if part.name in self._lacking.get(digests[m.body], self._parts)
            ]
            deliveries[part.name] = (
                part.send(due, seconds / len(self._parts)) if due else Delivery()
            )
        lacking: dict[bytes, set[str]] = {}
        for name, delivery in deliveries.items():
            for message in delivery.unsent:
                lacking.setdefault(message.body, set()).add(name)
        self._remember(digests, lacking)
        return _joined([message for message in messages if message.body in lacking], deliveries)

    def _remember(self, digests: Mapping[bytes, bytes], lacking: Mapping[bytes, set[str]]) -> None:
        for digest in digests.values():
            self._lacking.pop(digest, None)
        self._lacking |= {digests[body]: frozenset(names) for body, names in lacking.items()}
        while (
            len(self._lacking) > 10_000
        ):  # forgotten ones are sent to all again: an event twice is one event
            self._lacking.pop(next(iter(self._lacking)))

    def close(self) -> None:
        """Close each."""
        for part in self._parts.values():
            part.transport.close()


class _Part:
    """One of the transports, and whether it makes sense to try it."""

    def __init__(self, name: str, transport: Transport, first_pause: float) -> None:
        self.name = name
        self.transport = transport
        self.circuit = Circuit(first_pause)
        self._reason = ""

    def send(self, messages: Sequence[Message], seconds: float) -> Delivery:
        """Try it, unless it has just failed."""
        if self.circuit.is_open(time.monotonic()):
            return Delivery(tuple(messages), reason=self._reason)
        try:
            delivery = self.transport.send(messages, seconds)
        except Exception as error:  # a fault of ours, which must not silence the others
            delivery = Delivery(tuple(messages), reason=type(error).__name__)
        if len(delivery.unsent) < len(messages):
            self.circuit.succeeded()
        else:
            self._reason = delivery.reason
            self.circuit.failed(time.monotonic())
        return delivery


Make = Callable[[Mapping[str, str]], Transport]


def composite_of(conf: Mapping[str, str], transport_of: Make) -> CompositeTransport:
    """The transport for type `composite`: `transports.NAME.type`, `transports.NAME.url`, ....

    `transport_of` makes each.
    """
    parts = parts_of(conf)
    if not parts:
        raise TransportConfError("transport.transports: the composite transport needs at least one")
    transports, faults = _each_of(parts, transport_of)
    if not transports:
        raise TransportConfError("; ".join(faults))
    for fault in faults:
        _LOG.warning("strandline: %s: the other transports get all events", fault)
    return CompositeTransport(transports)


def _each_of(
    parts: Mapping[str, Mapping[str, str]], transport_of: Make
) -> tuple[dict[str, Transport], list[str]]:
    """The transports whose conf can be used, and what is wrong with the others'."""
    transports: dict[str, Transport] = {}
    faults = []
    for name, part in parts.items():
        try:
            transports[name] = transport_of(part)
        except ValueError as error:  # TransportConfError, or a number that is none
            faults.append(f"transport.transports.{name}: {error}")
    return transports, faults


def _joined(unsent: Sequence[Message], deliveries: Mapping[str, Delivery]) -> Delivery:
    """The deliveries of all transports as one."""
    return Delivery(
        tuple(unsent),
        tuple({m.body: m for delivery in deliveries.values() for m in delivery.refused}.values()),
        "; ".join(
            f"{name}: {delivery.reason}" for name, delivery in deliveries.items() if delivery.reason
        ),
        partly=bool(unsent) and any(not delivery.unsent for delivery in deliveries.values()),
    )
