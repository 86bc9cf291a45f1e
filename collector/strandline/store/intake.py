"""Taking records in: bytes -> decode -> changes -> compact -> rows, all in the caller's transaction.

The caller opens the transaction, moves its offsets in it, and only after the commit calls `caches.commit()`
(`caches.discard()` after a rollback). Taking the same records again, or in another order, leaves the same rows.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal


@dataclass(frozen=True, slots=True)
class Record:
    """One message as received. received_at: Kafka's log append time, or the server's clock."""

    value: bytes
    received_at: datetime
    topic: str | None = None
    partition: int | None = None
    offset: int | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a record; `reason` says why a dead one is dead, with the place."""

    kind: Literal["stored", "duplicate", "dead"]
    hash: bytes
    reason: str | None = None
