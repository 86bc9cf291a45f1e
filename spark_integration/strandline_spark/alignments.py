"""What the aligned jobs of this process write, by the name of their query.

A micro-batch of such a job is only a clock: neither its plan nor its checkpoint folder tells what it made, the table does.
"""

from __future__ import annotations

from dataclasses import dataclass

from strandline_spark.statement import Operation


@dataclass(frozen=True, slots=True)
class AlignedOutput:
    """The table that a job writes, how, and the inputs of which it reads the changes only; all as catalog.database.table."""

    table: str
    operation: Operation
    changes: frozenset[str]


_by_query: dict[str, AlignedOutput] = {}


def note_aligned(query: str, output: AlignedOutput) -> None:
    """An aligned job of that query's name is about to start."""
    _by_query[query] = output


def aligned_output(query: str | None) -> AlignedOutput | None:
    """What the job of that query writes, if it is an aligned one."""
    return _by_query.get(query) if query is not None else None
