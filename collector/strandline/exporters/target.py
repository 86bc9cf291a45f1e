"""The protocol of a target, which makes items of changes and sends them, and its errors.

A further target of OpenLineage events is a `Dialect`; any other is a class with the members of
`ExportTarget`. Each has a line in `registry`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from hashlib import sha256
from typing import Any, NamedTuple, Protocol

import orjson
from sqlalchemy import Connection


class Change(NamedTuple):
    """A change that waits: an entity with another state, as of a number of the outbox."""

    seq: int
    kind: int
    entity_id: int
    group_id: int
    at: int
    hash: bytes | None
    body: bytes | None


Key = tuple[int, int]  # of an item: its kind and entity


@dataclass(frozen=True, slots=True)
class Namespaces:
    """The namespaces that are exported: of jobs, or of datasets by themselves.

    Each is a pattern; one with `!` excludes.

    >>> Namespaces(("bank*", "!bank.test")).allow("bank.test"), Namespaces(("!test",)).allow("bank")
    (False, True)
    >>> Namespaces().allow("bank")
    True
    """

    patterns: tuple[str, ...] = ()

    def allow(self, namespace: str) -> bool:
        """Return whether a namespace is exported."""
        refused = [pattern[1:] for pattern in self.patterns if pattern.startswith("!")]
        allowed = [pattern for pattern in self.patterns if not pattern.startswith("!")]
        if any(fnmatchcase(namespace, pattern) for pattern in refused):
            return False
        return not allowed or any(fnmatchcase(namespace, pattern) for pattern in allowed)


@dataclass(frozen=True, slots=True)
class Item:
    """One entity's newest state for one target.

    `shape` is a hash of what people see, `detail` of everything. An item whose shape the target has
    is sent again for another detail only if it is `slow`, once in a while. `run` is the run whose
    changes it follows.
    """

    kind: int
    entity_id: int
    change: Change
    about: str
    content: tuple[Any, ...]
    shape: bytes
    detail: bytes
    run: int = 0
    live: bool = False
    slow: bool = False  # a new detail alone may wait
    first: tuple[Any, ...] = ()  # goes before the content if the target has nothing of the entity

    @property
    def key(self) -> Key:
        """The kind and id of the entity."""
        return self.kind, self.entity_id

    def with_beginning(self) -> "Item":
        """Return the item for a target that has nothing of the entity."""
        return replace(self, content=(*self.first, *self.content))


def digest(value: Any) -> bytes:
    """Return a hash of a value's JSON."""
    return sha256(
        orjson.dumps(value, option=orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS)
    ).digest()[:16]


class ExportTarget(Protocol):
    """A catalog, an endpoint, a topic or a file that gets what Strandline knows."""

    @property
    def name(self) -> str:
        """The name in settings, commands and the store; no secret."""

    @property
    def kinds(self) -> str:
        """The kind of its changes: runs, events or alerts."""

    @property
    def at_once(self) -> int:
        """The number of items in one request."""

    def items(self, connection: Connection, changes: Sequence[Change], now: float) -> list[Item]:
        """Return the newest state of what changed, in the order in which it has to arrive."""

    def send(self, items: Sequence[Item]) -> None:
        """Send these items, all or none.

        Raises UnavailableError or RefusedItemError if they were not taken. If several are refused
        together, the caller sends them one by one.
        """

    def close(self) -> None:
        """Close its connections."""
