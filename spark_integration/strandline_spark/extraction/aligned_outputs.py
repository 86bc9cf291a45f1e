"""The outputs of this process's aligned jobs, by their queries.

A micro-batch of such a job is only a clock: neither its plan nor its checkpoint folder tells what
it made, the table does.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from strandline_spark.model.statement import Operation


@dataclass(frozen=True, slots=True)
class AlignedOutput:
    """The table that a job writes, how, and the inputs of which it reads the changes only.

    All as catalog.database.table.
    """

    table: str
    operation: Operation
    changes: frozenset[str]


_starting: dict[
    str, AlignedOutput
] = {}  # by the query's name: its first events may come before its id is known
_by_query: dict[str, AlignedOutput] = {}  # by the query's id
_finished: set[str] = (
    set()
)  # ids of queries that are stopped because all that was asked for is made


@contextmanager
def starting(name: str, output: AlignedOutput) -> Iterator[None]:
    """While a query of that name is started, it is an aligned job's."""
    _starting[name] = output
    try:
        yield
    finally:
        _starting.pop(name, None)


def note_aligned(query_id: str, output: AlignedOutput) -> None:
    """The query of that id is an aligned job's, whenever it runs."""
    _by_query[query_id] = output
    note_running(query_id)


def note_running(query_id: str) -> None:
    """The query runs again, with work to do."""
    _finished.discard(query_id)


def note_finished(query_id: str) -> None:
    """The job has made all that was asked for, and its query is stopped for that."""
    _finished.add(query_id)


def is_finished(query_id: str) -> bool:
    """Return whether the query was stopped because its work was done, not by somebody else."""
    return query_id in _finished


def aligned_output(query_id: str, name: str | None) -> AlignedOutput | None:
    """Return the output of that query's job, if it is an aligned one."""
    return _by_query.get(query_id) or (_starting.get(name) if name is not None else None)
