"""A reader of plans that knows its answers, and the events of Spark that go with it, as values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from strandline_spark.extraction.aligned_outputs import AlignedOutput
from strandline_spark.model.statement import Dataset, Statement
from strandline_spark.runs.batch_queries import Ended, Started

QUERY = "33333333-3333-4333-8333-333333333333"
RUN = "44444444-4444-4444-8444-444444444444"


@dataclass
class Plan:
    """What a QueryExecution stands for: the statement at its start, and at its end."""

    start: Statement | Exception
    end: Statement | Exception | None = None
    earlier: dict[int, Statement] = field(default_factory=dict)
    checkpoints: dict[int, Statement] = field(default_factory=dict)
    sources: Sequence[Dataset] = ()


class Answers:
    """Reads such plans."""

    def at_start(self, qe: Plan, planned: Plan | None = None) -> Statement:
        """The statement as analysed."""
        return _given(qe.start)

    def at_end(self, qe: Plan, commits: Sequence[Any]) -> Statement:
        """The statement with what it did."""
        return _given(qe.end if qe.end is not None else qe.start)

    def micro_batch(self, qe: Plan, planned: Plan | None, commits: Sequence[Any]) -> Statement:
        """The micro-batch with what it did."""
        return _given(qe.end if qe.end is not None else qe.start)

    def earlier_batch(
        self, qe: Plan, batch: tuple[str, int], offsets: Sequence[Any], planned: Plan | None = None
    ) -> Statement:
        """An earlier micro-batch."""
        return qe.earlier[batch[1]]

    def consumed(self, qe: Plan, offsets: Sequence[Any]) -> Sequence[Dataset]:
        """The query's sources."""
        return qe.sources

    def checkpoints(self, qe: Plan, written: AlignedOutput, query_id: str, after: int) -> dict[int, Statement]:
        """What the table of an aligned job knows of its micro-batches."""
        return {number: made for number, made in qe.checkpoints.items() if number > after}


def _given(answer: Statement | Exception) -> Statement:
    if isinstance(answer, Exception):
        raise answer
    return answer


class Handle:
    """A running query as the JVM would know it."""

    def __init__(
        self,
        ends_by_itself: bool = False,
        name: str | None = None,
        committed: int | None = None,
        own: int | None = None,
        found: bool = True,
    ) -> None:
        self.found = found
        self.begun = -1 if committed is None else committed  # the newest micro-batch in the offset log
        self.ends_by_itself = ends_by_itself
        self.name = name
        self.checkpoint = "file:/checkpoints/credits"
        self.plan: Plan | None = None
        self._committed = committed
        self._own = own

    def last_committed(self) -> int | None:
        """The newest micro-batch in the commit log."""
        return self._committed

    def first_own(self) -> int | None:
        """The oldest micro-batch of this driver."""
        return self._own

    def as_query_execution(self) -> Plan | None:
        """The query's own plan."""
        return self.plan

    def initial_offsets(self, sources: int) -> list[str | None]:
        """It does not end by itself."""
        return [None] * sources

    def offsets(self, batch_id: int) -> list[tuple[str, str | None, str | None]]:
        """One source."""
        if batch_id > self.begun:
            return []
        return [("transfers", f'{{"position":{batch_id + 1}}}', f'{{"position":{batch_id}}}' if batch_id else None)]


def started(
    number: int, plan: Plan | None, root: int | None = None, batch: int | None = None, at: float = 0
) -> Started:
    """Execution `number` begins; `batch`: as a micro-batch of the query."""
    description = f"credits<br/>id = {QUERY}<br/>runId = {RUN}<br/>batch = {batch}" if batch is not None else "save"
    return Started(number, number if root is None else root, at or number * 1000.0, description, plan)


def ended(number: int, plan: Plan | None, error: str | None = None, at: float = 0) -> Ended:
    """Execution `number` ends."""
    return Ended(number, at or number * 1000.0 + 500, error, plan)
