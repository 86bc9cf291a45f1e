"""The micro-batch of an execution, and the observed part of a committed one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from strandline_spark.model.statement import Statement
from strandline_spark.openlineage.facets import SourceOffsets
from strandline_spark.swallowed import swallowed

_IN_DESCRIPTION = re.compile(
    r"\bid = (?P<id>[0-9a-f-]{36})(?:<br/>|\s)+runId = "
    r"(?P<run>[0-9a-f-]{36})(?:<br/>|\s)+batch = (?P<batch>\d+)"
)


@dataclass(frozen=True, slots=True)
class MicroBatch:
    """The micro-batch and query of an execution, as its description tells."""

    query_id: str
    run_id: str
    batch_id: int


def micro_batch_of(description: str) -> MicroBatch | None:
    """The micro-batch that an execution's description names.

    >>> micro_batch_of("collect at job.py:3")
    """
    match = _IN_DESCRIPTION.search(description or "")
    if match is None and "runId = " in (description or ""):
        swallowed(
            "a micro-batch is taken for a statement",
            ValueError("its description is not as it was seen"),
        )
    return MicroBatch(match["id"], match["run"], int(match["batch"])) if match else None


@dataclass(frozen=True, slots=True)
class CommittedBatch:
    """A committed micro-batch: when it ran, if that was seen, and what it did."""

    batch_id: int
    started_at: float | None
    ended_at: float | None
    statements: Sequence[Statement]
    unreadable: str | None


def with_parts(statement: Statement, parts: Sequence[Statement]) -> list[Statement]:
    """Return a micro-batch's own statement, and those of its parts that write elsewhere."""
    own = {(output.dataset.namespace, output.dataset.name) for output in statement.outputs}
    others = [
        part
        for part in parts
        if not own & {(o.dataset.namespace, o.dataset.name) for o in part.outputs}
    ]
    return [statement, *others] if statement.inputs or statement.outputs or not others else others


def offsets_of(
    sources: Sequence[tuple[str, str | None, str | None]], initial: Sequence[str | None]
) -> list[SourceOffsets]:
    """Return the offsets of a micro-batch's sources as the event has them.

    Each with where its query began.
    """
    return [SourceOffsets(*source, begun) for source, begun in zip(sources, initial, strict=True)]
