"""Several transports as one: each gets every event, and an event counts as sent only when all have it.

A transport that failed gets, at the next attempt, only what it still lacks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from strandline_spark.transports import Delivery, Message, Transport, TransportConfError, transport_of


class CompositeTransport:
    """Sends to all of them. The time of one attempt is shared, so that one that hangs leaves the others some."""

    def __init__(self, transports: Mapping[str, Transport]) -> None:
        self._transports = dict(transports)
        self._lacking: dict[bytes, frozenset[str]] = {}  # event -> transports that have not got it yet

    def send(self, messages: Sequence[Message], seconds: float) -> Delivery:
        """Tries every transport once."""
        refused: dict[bytes, Message] = {}
        reasons: list[str] = []
        lacking: dict[bytes, set[str]] = {}
        for name, transport in self._transports.items():
            due = [m for m in messages if name in self._lacking.get(m.body, self._transports)]
            delivery = transport.send(due, seconds / len(self._transports)) if due else Delivery()
            reasons += [f"{name}: {delivery.reason}"] if delivery.reason else []
            refused |= {message.body: message for message in delivery.refused}
            for message in delivery.unsent:
                lacking.setdefault(message.body, set()).add(name)
        self._remember(messages, lacking)
        unsent = tuple(message for message in messages if message.body in lacking)
        return Delivery(unsent, tuple(refused.values()), "; ".join(reasons))

    def _remember(self, messages: Sequence[Message], lacking: Mapping[bytes, set[str]]) -> None:
        for message in messages:
            self._lacking.pop(message.body, None)
        self._lacking |= {body: frozenset(names) for body, names in lacking.items()}
        while len(self._lacking) > 10_000:  # forgotten ones are sent to all again: an event twice is one event
            self._lacking.pop(next(iter(self._lacking)))

    def close(self) -> None:
        """Closes each."""
        for transport in self._transports.values():
            transport.close()


def composite_of(conf: Mapping[str, str]) -> CompositeTransport:
    """The transport for type `composite`: `transports.NAME.type`, `transports.NAME.url`, ..."""
    parts: dict[str, dict[str, str]] = {}
    for key, value in conf.items():
        if key.startswith("transports."):
            name, _, rest = key.removeprefix("transports.").partition(".")
            parts.setdefault(name, {})[rest] = value
    if not parts:
        raise TransportConfError("transport.transports: the composite transport needs at least one")
    return CompositeTransport({name: transport_of(part) for name, part in parts.items()})
