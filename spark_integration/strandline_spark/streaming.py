"""Streaming queries: one run each, one RUNNING per committed micro-batch, one terminal event.

A micro-batch is committed when its root execution ended without error. Whether an end was a failure, a stop() or a
finished availableNow is decided by the exception, the trigger and the way in which the last micro-batch ended.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from strandline_spark.announcer import Announcer
from strandline_spark.conf import Conf
from strandline_spark.events import RunOf, Told, iso_time
from strandline_spark.executions import Ended, Execution, Reader
from strandline_spark.facets import SourceOffsets, StrandlineBarrierRunFacet
from strandline_spark.jvm_streams import StreamHandle
from strandline_spark.naming import job_name, output_name, without_path_noise
from strandline_spark.statement import Statement

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


@dataclass(slots=True)
class Query:
    """A streaming query that runs."""

    query_id: str
    run_id: str
    name: str | None
    started_at: float
    handle: StreamHandle
    run: RunOf | None = None
    interrupted: bool = False
    told: set[int] = field(default_factory=set)


class Streams:
    """The application's streaming queries, by the id of their run."""

    def __init__(
        self, conf: Conf, reader: Reader, announcer: Announcer, find: Callable[[Any, str], StreamHandle]
    ) -> None:
        self._conf = conf
        self._reader = reader
        self._announcer = announcer
        self._find = find  # (QueryExecution or None, query id) -> the running query
        self._queries: dict[str, Query] = {}

    def query_started(self, query_id: str, run_id: str, name: str | None, at: float) -> None:
        """Spark says that a query started. Its START waits for the first plan, which names its output."""
        self._queries[run_id] = Query(query_id, run_id, name, at, self._find(None, query_id))

    def begin(self, batch: MicroBatch, execution: Execution) -> None:
        """The root execution of a micro-batch began: START of the query if it is the first."""
        query = self._of(batch, execution)
        if query.run is not None or execution.started.qe is None:
            return
        try:
            statement = self._clean(self._reader.at_start(execution.started.qe))
        except Exception:  # the end of the micro-batch tells more
            return
        if statement.outputs:
            self._announce(query, [statement])

    def end(self, batch: MicroBatch, execution: Execution, ended: Ended, commits: Sequence[Any]) -> None:
        """The root execution of a micro-batch ended: if it did so well, the micro-batch is committed."""
        query = self._of(batch, execution)
        query.interrupted = ended.error is not None and "InterruptedException" in ended.error
        if ended.error is not None:
            return
        statements, unreadable = self._done(execution, ended, commits)
        if query.run is None:
            self._announce(query, statements)
        self._tell(query, batch, execution, ended, statements, unreadable)

    def query_terminated(self, run_id: str, at: float, error: str | None) -> None:
        """Spark says that a query ended."""
        query = self._queries.pop(run_id, None)
        if query is None:
            return
        if query.run is None:
            self._announce(query, [])
        assert query.run is not None
        self._announcer.say(self._final(query, error), query.run, at, Told(error=error))

    def abandon(self, at: float) -> None:
        """The application is over and said nothing more of these queries."""
        for run_id in list(self._queries):
            self.query_terminated(run_id, at, None)

    def announce_idle(self, now: float) -> None:
        """A query that had nothing to do for a second after its start is announced from its own logical plan."""
        for query in self._queries.values():
            if query.run is None and now - query.started_at > 1000:
                self._announce(query, self._planned(query))

    def _planned(self, query: Query) -> list[Statement]:
        try:
            return [self._clean(self._reader.at_start(query.handle.as_query_execution()))]
        except Exception:
            return []

    def _final(self, query: Query, error: str | None) -> str:
        if error is not None:
            return "FAIL"
        return "COMPLETE" if query.handle.ends_by_itself and not query.interrupted else "ABORT"

    def _of(self, batch: MicroBatch, execution: Execution) -> Query:
        query = self._queries.get(batch.run_id)
        if query is None:
            handle = self._find(execution.started.qe, batch.query_id)
            query = Query(batch.query_id, batch.run_id, handle.name, execution.started.at, handle)
            self._queries[batch.run_id] = query
        return query

    def _done(self, execution: Execution, ended: Ended, commits: Sequence[Any]) -> tuple[list[Statement], str | None]:
        try:
            statement = self._clean(self._reader.micro_batch(ended.qe, None, commits))
        except Exception as error:
            return list(execution.parts), f"{type(error).__name__}: {error}"
        own = {(output.dataset.namespace, output.dataset.name) for output in statement.outputs}
        parts = [p for p in execution.parts if not own & {(o.dataset.namespace, o.dataset.name) for o in p.outputs}]
        return [statement, *parts] if statement.inputs or statement.outputs else parts, None

    def _announce(self, query: Query, statements: Sequence[Statement]) -> None:
        output = query.name or output_name(statements) or f"query-{query.query_id}"
        query.run = RunOf(query.run_id, job_name(self._conf.job_name, self._conf.app_name, output), "STREAMING")
        self._announcer.say("START", query.run, query.started_at, Told(statements))

    def _tell(
        self,
        query: Query,
        batch: MicroBatch,
        execution: Execution,
        ended: Ended,
        statements: Sequence[Statement],
        unreadable: str | None,
    ) -> None:
        assert query.run is not None
        facet = StrandlineBarrierRunFacet(
            barrierId=barrier_of(statements, batch.batch_id),
            queryId=batch.query_id,
            batchId=batch.batch_id,
            phase="committed",
            domain=self._conf.domain,
            checkpointLocation=query.handle.checkpoint,
            startedAt=iso_time(execution.started.at),
            committedAt=iso_time(ended.at),
            sources=[SourceOffsets(*source) for source in query.handle.offsets(batch.batch_id)] or None,
        )
        told = Told(statements, barrier=facet, unreadable=unreadable, snapshot=True)
        self._announcer.say("RUNNING", query.run, ended.at, told)

    def _clean(self, statement: Statement) -> Statement:
        return without_path_noise(statement, self._conf.remove_path)


def barrier_of(statements: Sequence[Statement], batch_id: int) -> int:
    """The barrier that the written snapshots carry, else the micro-batch's own: N + 1."""
    carried = [
        snapshot.barrier_id
        for statement in statements
        for output in statement.outputs
        for snapshot in output.dataset.snapshots
        if snapshot.barrier_id is not None
    ]
    return max(carried, default=batch_id + 1)
