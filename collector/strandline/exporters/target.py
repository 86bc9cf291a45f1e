"""What a target is: it makes items of changes and sends them.

And the two ways in which sending fails.

A further target is one file: a class with these members, and its line in `registry`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, NamedTuple, Protocol

import orjson
from sqlalchemy import Connection

from strandline.errors import StrandlineError


class UnavailableError(StrandlineError):
    """The target did not take anything, and nobody is to blame but the target.

    The same again later.

    `doubtful`: it answered, with a fault of its own. Where it takes others meanwhile, this one item
    is to blame.
    """

    code = "unavailable"

    def __init__(
        self, reason: str, retry_after: float | None = None, *, doubtful: bool = False
    ) -> None:
        super().__init__(reason)
        self.retry_after = retry_after
        self.doubtful = doubtful


class RefusedItemError(StrandlineError):
    """The target declined this item for good: it is parked with the reason, and others go on."""

    code = "refused_item"


class Change(NamedTuple):
    """A change that waits: which entity has another state, as of a number of the outbox."""

    seq: int
    kind: int
    entity_id: int
    group_id: int
    at: int
    hash: bytes | None
    body: bytes | None


Key = tuple[int, int]  # of an item: its kind and entity


@dataclass(frozen=True, slots=True)
class Item:
    """One entity's newest state for one target.

    shape: what makes it another entity to people; detail: all of it. An item whose shape the target
    has is not sent again, except for its detail, and that not more often than once in a while. run:
    the run whose news it goes by.
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
    first: tuple[
        Any, ...
    ] = ()  # what goes before the content where the target has nothing of the entity

    @property
    def key(self) -> Key:
        """What it is known by."""
        return self.kind, self.entity_id


def digest(value: Any) -> bytes:
    """A hash of a value's JSON."""
    return sha256(
        orjson.dumps(value, option=orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS)
    ).digest()[:16]


class ExportTarget(Protocol):
    """Whatever takes what Strandline knows."""

    @property
    def name(self) -> str:
        """What it is called in settings, commands and the store; no secret."""

    @property
    def kinds(self) -> str:
        """What it wants to hear of: runs, events or alerts."""

    @property
    def at_once(self) -> int:
        """How many items one request may hold."""

    def items(self, connection: Connection, changes: Sequence[Change], now: float) -> list[Item]:
        """The newest state of what changed, in the order in which it has to arrive."""

    def send(self, items: Sequence[Item]) -> None:
        """Send these items, all or none.

        UnavailableError or RefusedItemError where they were not taken.

        Where several are refused together the caller sends them one by one.
        """

    def close(self) -> None:
        """Let go of connections."""
