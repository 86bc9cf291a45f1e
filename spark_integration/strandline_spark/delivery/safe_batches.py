"""The micro-batch of each streaming query that is known to be safe.

With the collector, or in the spool.

Kept as one small file per query beside the spool, so that the next driver tells exactly the
micro-batches that a killed one committed and could not tell. It is a hint: without it the newest
few are reported again, which changes nothing.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections import deque
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from strandline_spark.delivery.transport import Message


class SafeBatches:
    """The newest safe micro-batch by query id."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._last: dict[str, int] = {}

    def note(self, message: Message) -> None:
        """A message is safe: if it reports a micro-batch, that one is."""
        if message.micro_batch is None:
            return
        query_id, batch_id = message.micro_batch
        if batch_id <= self._last.get(query_id, -1) or not re.fullmatch(r"[0-9a-f-]{36}", query_id):
            return
        self._last[query_id] = batch_id
        with contextlib.suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            path = self._folder / f"{query_id}.told"
            path.with_suffix(f".{os.getpid()}").write_text(f"{batch_id}\n", encoding="ascii")
            path.with_suffix(f".{os.getpid()}").replace(path)

    def last(self, query_id: str) -> int | None:
        """The newest micro-batch of a query that is known to be safe."""
        try:
            return int((self._folder / f"{query_id}.told").read_text(encoding="ascii"))
        except (OSError, ValueError):
            return None


def safe_of(
    messages: Sequence[Message], others: Sequence[Message], gaps: Collection[str]
) -> list[Message]:
    """Those that count as safe.

    No micro-batch that follows one of the others, or that is of a query with a gap.
    """
    older = [message.micro_batch for message in others if message.micro_batch is not None]
    return [
        message
        for message in messages
        if message.micro_batch is None or _is_next(message.micro_batch, older, gaps)
    ]


def _is_next(
    micro_batch: tuple[str, int], older: Sequence[tuple[str, int]], gaps: Collection[str]
) -> bool:
    query, batch = micro_batch
    return query not in gaps and not any(
        other == query and number < batch for other, number in older
    )


def without(messages: Iterable[Message], gone: Iterable[Message]) -> deque[Message]:
    """The messages but for those: each is itself, also where another one is equal."""
    left_out = {id(message) for message in gone}
    return deque(message for message in messages if id(message) not in left_out)
