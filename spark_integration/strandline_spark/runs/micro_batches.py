"""Which micro-batch an execution belongs to: its description says so."""

from __future__ import annotations

import re
from dataclasses import dataclass

_IN_DESCRIPTION = re.compile(
    r"\bid = (?P<id>[0-9a-f-]{36})(?:<br/>|\s)+runId = (?P<run>[0-9a-f-]{36})(?:<br/>|\s)+batch = (?P<batch>\d+)"
)


@dataclass(frozen=True, slots=True)
class MicroBatch:
    """Which micro-batch of which query an execution belongs to, as its description tells."""

    query_id: str
    run_id: str
    batch_id: int


def micro_batch_of(description: str) -> MicroBatch | None:
    """The micro-batch that an execution's description names.

    >>> micro_batch_of("collect at job.py:3")
    """
    found = _IN_DESCRIPTION.search(description or "")
    return MicroBatch(found["id"], found["run"], int(found["batch"])) if found else None
