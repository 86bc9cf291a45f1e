"""Streaming queries: one run each, one RUNNING per committed micro-batch, one terminal event.

A micro-batch is committed when its root execution ended without error. Whether an end was a
failure, a stop() or a finished availableNow is decided by the exception, the trigger and the way in
which the last micro-batch ended.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from strandline_spark.conf import Conf
from strandline_spark.conf_keys import JOB_NAME
from strandline_spark.extraction.aligned_outputs import AlignedOutput, aligned_output, is_finished
from strandline_spark.jvm.iceberg_snapshot import Commit
from strandline_spark.jvm.streaming_query import StreamHandle
from strandline_spark.listeners.graphs import with_edges
from strandline_spark.listeners.shaping import shaped
from strandline_spark.listeners.user_edges import edges_of_query
from strandline_spark.model.flip314 import LineageEdge
from strandline_spark.model.job_names import job_name, output_name
from strandline_spark.model.statement import VERSIONED, Dataset, Statement, apart
from strandline_spark.openlineage.consumption import (
    as_committed,
    certain,
    committed_at,
    doubted,
    group_of,
    lookups_of,
    named_inputs,
    numbered,
    reads_exactly,
    streamed_tables,
    with_sources,
    written_by,
)
from strandline_spark.openlineage.events import EventContent, RunOf, iso_time
from strandline_spark.openlineage.facets import StrandlineBarrierRunFacet
from strandline_spark.runs.announcer import Announcer
from strandline_spark.runs.batch_queries import (
    Ended,
    Execution,
    Reader,
    informed,
    state_of,
    writing,
)
from strandline_spark.runs.micro_batches import CommittedBatch, MicroBatch, offsets_of, with_parts
from strandline_spark.swallowed import swallowed

T = TypeVar("T")
_MOMENT_SECONDS = 0.5
_CATCH_UP = 1000  # a query's commit log keeps 100 micro-batches


@dataclass(slots=True)
class Query:
    """A streaming query that runs."""

    query_id: str
    run_id: str
    name: str | None
    started_at: float
    handle: StreamHandle
    template: str | None = None  # of its name, where its session has another than the application
    run: RunOf | None = None
    interrupted: bool = False
    last_told: int | None = None  # the newest micro-batch that this driver announced
    noted: int | None = (
        None  # the newest that was announced before (`safe_batches`); a rollback may have undone it
    )
    searched: bool = (
        False  # an aligned job's table was asked for what drivers before this one committed
    )
    edges: tuple[LineageEdge, ...] = ()  # the user's own
    begun: dict[int, Execution] = field(
        default_factory=dict
    )  # micro-batches that began and have not been reported
    look_again: float = 0.0  # when its plan is read anew, as long as no plan has named its output
    sources: frozenset[tuple[str, str]] | None = (
        None  # those with snapshots, once they were asked for
    )
    patience: int = 3  # look-ups that are tried once more: a catalog may be busy

    @property
    def aligned(self) -> AlignedOutput | None:
        """The output as an aligned job, if it is one's."""
        return aligned_output(self.query_id, self.name)

    def patiently(self, ask: Callable[[], T]) -> T:
        """The answer; tried again after a moment where that fails, but a few times in all."""
        while True:
            try:
                return ask()
            except Exception:
                self.patience -= 1
                if self.patience < 0:
                    raise
                time.sleep(_MOMENT_SECONDS)

    def overridden(self, statements: Sequence[Statement]) -> Sequence[Statement]:
        """The statements, with the user's edges in place of what was found."""
        return with_edges(statements, self.edges) if self.edges else apart(statements)


class Streams:
    """The application's streaming queries, by the id of their run."""

    def __init__(
        self,
        conf: Conf,
        reader: Reader,
        announcer: Announcer,
        find: Callable[[Any, str], StreamHandle],
        last_told: Callable[[str], int | None],
    ) -> None:
        self._conf = conf
        self._reader = reader
        self._announcer = announcer
        self._find = find  # (QueryExecution or None, query id) -> the running query
        self._last_told = last_told
        self._queries: dict[str, Query] = {}

    def query_started(self, query_id: str, run_id: str, name: str | None, at: float) -> None:
        """Spark says that a query started.

        Its START waits for the first plan, which names its output.
        """
        handle = self._find(None, query_id)
        self._queries[run_id] = Query(
            query_id, run_id, name, at, handle, noted=self._last_told(query_id)
        )

    def begin(self, batch: MicroBatch, execution: Execution) -> None:
        """Note the begin of an execution of a micro-batch: its root, or a write in foreachBatch.

        START, if a plan says more.
        """
        query = self._of(batch, execution, execution.started.qe)
        query.begun.setdefault(batch.batch_id, execution)
        if query.run is not None or execution.started.qe is None:
            return
        try:
            statement = self._clean(
                self._reader.at_start(execution.started.qe, query.handle.as_query_execution())
            )
        except Exception as error:  # the end of the micro-batch tells more
            swallowed("a streaming query is reported after its first micro-batch only", error)
            return
        if statement.outputs:
            self._announce(query, [statement])
            self._catch_up(query, execution.started.qe, batch.batch_id)

    def end(
        self, batch: MicroBatch, execution: Execution, ended: Ended, commits: Sequence[Any]
    ) -> None:
        """Note the end of the root execution of a micro-batch.

        If it did so well, the micro-batch is committed.

        So is one that was stopped, or failed, after its sink had committed for it: when it runs
        again, which may be never, that sink does nothing more.
        """
        query = self._of(batch, execution, ended.qe)
        query.interrupted = state_of(ended.error) == "ABORT"
        if ended.error is not None and not any(_is_of(commit, query, batch) for commit in commits):
            query.begun.pop(batch.batch_id, None)
            self._tell_failed(query, execution, ended, commits)
            return
        statements, unreadable = self._done(query, execution, ended, commits)
        if not written_by(statements):
            statements = self._with_checkpoint(query, batch, ended, statements)
        if ended.error is not None and not written_by(statements):
            return
        if query.aligned is not None and writing(statements):
            statements = self._as_committed(query, ended.qe, batch, statements, commits)
        if query.run is None:
            self._announce(query, statements)
        self._catch_up(query, ended.qe, batch.batch_id)
        committed = CommittedBatch(
            batch.batch_id, execution.started.at, ended.at, statements, unreadable
        )
        self._tell(query, committed, at=ended.at)

    def _tell_failed(
        self, query: Query, execution: Execution, ended: Ended, commits: Sequence[Any]
    ) -> None:
        """Report what a micro-batch wrote inside foreachBatch before it failed.

        Its snapshots stay in their tables. It is no checkpoint: the micro-batch runs again.
        """
        if query.aligned is not None or not written_by(writing(execution.parts)):
            return
        statements, unreadable = self._done(query, execution, ended, commits)
        run = query.run or self._announce(query, statements)
        content = EventContent(
            query.overridden(certain(statements)), unreadable=unreadable, snapshot=True
        )
        self._announcer.say("RUNNING", run, ended.at, content)

    def query_terminated(self, run_id: str, at: float, error: str | None) -> None:
        """Spark says that a query ended."""
        query = self._queries.pop(run_id, None)
        if query is None:
            return
        query.patience = 0  # the driver may wait for this end
        run = query.run or self._announce(query, self._planned(query))
        self._catch_up_to_the_last(query, over=True)
        self._look_ahead(query)
        self._announcer.say(self._final(query, error), run, at, EventContent(error=error))

    def abandon(self, at: float) -> None:
        """End the queries of which the application, now over, reported no end."""
        for run_id, query in list(self._queries.items()):
            query.interrupted = query.interrupted or not query.handle.found
            self.query_terminated(run_id, at, None)

    def announce_idle(self, now: float) -> None:
        """Announce a query with nothing to do for a second after its start.

        It is announced from its own logical plan. One whose plan names no output (foreachBatch) and
        that has no name waits for its first write. Its plan is read again after ever longer pauses,
        not at each event of any query.
        """
        for query in self._queries.values():
            if query.run is None and now - query.started_at > 1000 and now >= query.look_again:
                query.look_again = now + (now - query.started_at)
                statements = self._planned(query)
                if query.name or output_name(statements):
                    self._announce(query, statements)
                    self._catch_up_to_the_last(query)

    def _planned(self, query: Query) -> list[Statement]:
        try:
            return [self._clean(self._reader.at_start(query.handle.as_query_execution()))]
        except Exception as error:  # not planned yet, or gone
            if query.handle.found:
                swallowed("the plan of a streaming query that does nothing is not read", error)
            return []

    def _final(self, query: Query, error: str | None) -> str:
        if error is not None:
            return state_of(error)
        # A query that had ended before the driver's events said that it began cannot be asked for
        # its trigger. So short a life is that of availableNow, not of a stop().
        by_itself = query.handle.ends_by_itself or not query.handle.found
        finished = is_finished(query.query_id) or (by_itself and not query.interrupted)
        return "COMPLETE" if finished else "ABORT"

    def _of(self, batch: MicroBatch, execution: Execution, qe: Any) -> Query:
        query = self._queries.get(batch.run_id)
        if query is None:
            handle = self._find(qe, batch.query_id)
            noted = self._last_told(batch.query_id)
            query = Query(
                batch.query_id, batch.run_id, handle.name, execution.started.at, handle, noted=noted
            )
            self._queries[batch.run_id] = query
        elif not query.handle.found:  # its micro-batch knows a session
            query.handle = self._find(qe, batch.query_id)
        query.template = query.template or execution.started.job_name
        return query

    def _done(
        self, query: Query, execution: Execution, ended: Ended, commits: Sequence[Any]
    ) -> tuple[list[Statement], str | None]:
        try:
            planned = query.handle.as_query_execution()
            statement = self._clean(self._reader.micro_batch(ended.qe, planned, commits))
        except Exception as error:
            return writing(execution.parts), swallowed(
                "what a micro-batch did is reported in part", error
            )
        return with_parts(statement, informed(execution.parts)), None

    def _announce(self, query: Query, statements: Sequence[Statement]) -> RunOf:
        output = query.name or output_name(statements) or f"query-{query.query_id}"
        template = query.template or query.handle.setting(JOB_NAME) or self._conf.job_name
        name = job_name(template, self._conf.app_name, output)
        query.run = RunOf(query.run_id, name, "STREAMING")
        query.edges = edges_of_query(query.name)
        self._announcer.say(
            "START", query.run, query.started_at, EventContent(query.overridden(statements))
        )
        return query.run

    def _catch_up_to_the_last(self, query: Query, over: bool = False) -> None:
        """Report what was committed, up to this driver's own first micro-batch.

        Of a query that is not over, what this driver itself has committed is reported when its end
        is taken.
        """
        committed, own = query.handle.last_committed(), None if over else query.handle.first_own()
        if committed is not None:
            before = committed + 1 if own is None else min(committed + 1, own)
            self._catch_up(query, query.handle.as_query_execution(), before)

    def _catch_up(self, query: Query, qe: Any, before: int) -> None:
        """Report micro-batches that were committed and not reported.

        Their driver was killed, or events were dropped.

        What one wrote inside foreachBatch only this driver can know, if it saw that, but for an
        aligned job's.
        """
        if query.aligned is not None:
            self._find_checkpoints(query, query.aligned, qe, before)
            return
        noted = (
            min(query.noted, before - 1)
            if query.noted is not None and query.noted <= before
            else None
        )
        newest = query.last_told if query.last_told is not None else noted
        last = newest if newest is not None else before - self._conf.recover_batches - 1
        for batch_id in range(max(last + 1, before - _CATCH_UP, 0), before):
            self._tell(query, self._earlier(query, qe, batch_id), at=query.started_at)

    def _find_checkpoints(self, query: Query, written: AlignedOutput, qe: Any, before: int) -> None:
        """Report what earlier drivers of an aligned job committed, and what this one missed.

        What was committed is read from the table.
        """
        last = query.last_told if query.searched else query.noted
        if query.searched and last is not None and last >= before - 1:
            return
        try:
            checkpoints = self._reader.checkpoints(
                qe, written, query.query_id, -1 if last is None else last
            )
        except (
            Exception
        ) as error:  # the catalog is busy, say: the end of the next micro-batch asks again
            swallowed("checkpoints of an earlier driver are reported later", error)
            return
        query.searched = True
        most = self._conf.recover_batches if last is None else _CATCH_UP
        for batch_id, statement in list(checkpoints.items())[-most:] if most else ():
            self._tell(
                query,
                CommittedBatch(batch_id, None, None, [self._clean(statement)], None),
                at=query.started_at,
            )

    def _look_ahead(self, query: Query) -> None:
        """Report the micro-batch after the last known one, if its sink has committed for it.

        Its driver was killed then, or was stopped, and this run has ended before it came to that
        one again.
        """
        committed = query.handle.last_committed()
        numbers = [number for number in (query.last_told, committed) if number is not None]
        batch_id = max(numbers, default=-1) + 1
        if query.aligned is not None:
            self._find_checkpoints(
                query, query.aligned, query.handle.as_query_execution(), batch_id
            )
        elif query.handle.offsets(batch_id):
            earlier = self._earlier(query, query.handle.as_query_execution(), batch_id)
            if written_by(earlier.statements):
                self._tell(query, earlier, at=query.started_at)

    def _earlier(self, query: Query, qe: Any, batch_id: int) -> CommittedBatch:
        """Return a micro-batch that was over before it was seen, or whose end was not reported."""
        begun = query.begun.get(batch_id)
        parts = writing(begun.parts) if begun is not None else []
        offsets = [(start, end) for _, end, start in query.handle.offsets(batch_id)]
        planned = query.handle.as_query_execution()
        ask = partial(self._reader.earlier_batch, qe, (query.query_id, batch_id), offsets, planned)
        try:
            statement = query.patiently(ask)
        except Exception as error:
            reason = swallowed("an earlier micro-batch is reported in part", error)
            return CommittedBatch(batch_id, None, None, parts, reason)
        return CommittedBatch(batch_id, None, None, with_parts(self._clean(statement), parts), None)

    def _with_checkpoint(
        self, query: Query, batch: MicroBatch, ended: Ended, statements: list[Statement]
    ) -> list[Statement]:
        """Return a micro-batch's commit as its table has it.

        Only where its own statements name no snapshot.
        """
        if ended.error is None and not writing(statements):
            return statements
        return self._checkpoint(query, ended.qe, batch.batch_id) or statements

    def _checkpoint(self, query: Query, qe: Any, batch_id: int) -> list[Statement]:
        """Return what a micro-batch of an aligned job committed, as its table knows it."""
        if query.aligned is None:
            return []
        ask = partial(self._reader.checkpoints, qe, query.aligned, query.query_id, batch_id - 1)
        try:
            checkpoint = query.patiently(ask).get(batch_id)
        except Exception as error:  # the table is gone, or the session is
            swallowed(
                "what an aligned job's micro-batch committed is not asked of its table", error
            )
            return []
        return [self._clean(checkpoint)] if checkpoint is not None else []

    def _as_committed(
        self,
        query: Query,
        qe: Any,
        batch: MicroBatch,
        statements: list[Statement],
        commits: Sequence[Any],
    ) -> list[Statement]:
        """Return what an aligned job's checkpoint read, as its own commit names it.

        What is seen of scans may be another job's.
        """
        named = named_inputs(commits, (query.query_id, batch.batch_id))
        if reads_exactly(statements, named):
            return statements
        exact = self._checkpoint(query, qe, batch.batch_id)
        return as_committed(statements, exact[0]) if exact else doubted(statements)

    def _tell(self, query: Query, batch: CommittedBatch, at: float) -> None:
        if query.run is None:
            return
        query.last_told = max(batch.batch_id, -1 if query.last_told is None else query.last_told)
        query.begun.pop(batch.batch_id, None)
        if query.aligned is not None and not writing(batch.statements):
            return  # its barrier is the one that it made, if it made one
        sources = query.handle.offsets(batch.batch_id)
        statements = batch.statements
        if query.aligned is None:
            statements = certain(with_sources(statements, self._idle(query, statements, sources)))
        barrier, statements = numbered(statements, batch.batch_id)
        facet = self._facet(query, batch, barrier, statements, sources)
        content = EventContent(
            query.overridden(statements), barrier=facet, unreadable=batch.unreadable, snapshot=True
        )
        self._announcer.say("RUNNING", query.run, at, content)

    def _facet(
        self,
        query: Query,
        batch: CommittedBatch,
        barrier: int | None,
        statements: Sequence[Statement],
        sources: Sequence[tuple[str, str | None, str | None]],
    ) -> StrandlineBarrierRunFacet:
        return StrandlineBarrierRunFacet(
            barrierId=barrier,
            queryId=query.query_id,
            batchId=batch.batch_id,
            phase="committed",
            group=group_of(statements) or self._conf.group,
            generation=max(
                (s.generation for s in written_by(statements) if s.generation), default=None
            ),
            checkpointLocation=query.handle.checkpoint,
            startedAt=iso_time(batch.started_at) if batch.started_at is not None else None,
            committedAt=iso_time(batch.ended_at)
            if batch.ended_at is not None
            else committed_at(statements),
            sources=offsets_of(sources, query.handle.initial_offsets(len(sources))) or None,
            lookups=lookups_of(statements) if barrier is None else None,
        )

    def _idle(
        self,
        query: Query,
        statements: Sequence[Statement],
        offsets: Sequence[tuple[str, str | None, str | None]],
    ) -> Sequence[Dataset]:
        """Return the query's sources with where the micro-batch ended in them.

        Only where its plan does not name them all.
        """
        named = streamed_tables(statements)
        if (
            not offsets
            or not writing(statements)
            or (query.sources is not None and query.sources <= named)
        ):
            return ()
        try:
            reads = self._reader.consumed(
                query.handle.as_query_execution(), [(start, end) for _, end, start in offsets]
            )
        except (
            Exception
        ) as error:  # the query is over: the collector knows where the micro-batch before it ended
            swallowed("a micro-batch is reported without its idle sources", error)
            return ()
        query.sources = frozenset(
            (read.namespace, read.name) for read in reads if read.format in VERSIONED
        )
        return reads

    def _clean(self, statement: Statement) -> Statement:
        return shaped(statement, self._conf)


def _is_of(commit: Any, query: Query, batch: MicroBatch) -> bool:
    return isinstance(commit, Commit) and commit.batch == (query.query_id, batch.batch_id)
