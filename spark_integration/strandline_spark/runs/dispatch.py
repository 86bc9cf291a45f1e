"""The meaning of each element of the JVM's queue.

Executions and queries that begin and end, commits, the application's end.

Knows which execution belongs to which.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import islice
from typing import Any

from strandline_spark.conf_keys import JOB_NAME
from strandline_spark.extraction.unreported_statements import Unreported
from strandline_spark.formats.done import begun_at
from strandline_spark.jvm.client import Jvm, known, simple_name
from strandline_spark.jvm.event_queue import EventQueue
from strandline_spark.jvm.iceberg_snapshot import Commit, Scan
from strandline_spark.jvm.notices import (
    ApplicationEnded,
    ExecutionEnded,
    ExecutionStarted,
    Notice,
    QueryEnded,
    QueryStarted,
    Wake,
    completes_of,
    failed_in_planning,
    job_name_of,
    session_setting,
)
from strandline_spark.listeners.notifier import Notices
from strandline_spark.openlineage.events import EventContent, RunOf
from strandline_spark.runs.announcer import Announcer
from strandline_spark.runs.batch_queries import Actions, Arrivals, Ended, Execution, Started
from strandline_spark.runs.micro_batches import MicroBatch, micro_batch_of
from strandline_spark.runs.streaming_queries import Streams

_OPEN_EXECUTIONS = 10_000  # more than that have lost their ends
_LOST_MILLISECONDS = 30_000.0  # after which an execution that Spark has forgotten has lost its end
_LOOKED_AT = 100  # open executions at one time
_QUIET_MILLISECONDS = 500.0  # without an event: then none waits


class Watch:
    """The emitter thread's work on each element of the queue. Used by that thread only."""

    def __init__(
        self,
        queue: EventQueue,
        application: RunOf,
        actions: Actions,
        streams: Streams,
        announcer: Announcer,
        notices: Notices | None = None,
        forget: Callable[[Any], None] = lambda qe: None,
    ) -> None:
        jvm = queue.gateway.jvm
        self._jvm = Jvm(jvm)
        self._query_execution = jvm.org.apache.spark.sql.execution.SQLExecution.getQueryExecution
        self._application = application
        self._actions = actions
        self._streams = streams
        self._announcer = announcer
        self._notices = notices
        self._forget = forget  # a QueryExecution whose end is lost
        self._arrivals = Arrivals()
        self._taken_at = self._looked_at = 0.0  # milliseconds since 1970
        self._over: set[int] = (
            set()
        )  # executions that Spark has forgotten, and whose end has not come
        self._open: dict[int, Execution] = {}
        self._batches: dict[MicroBatch, Execution] = {}
        self.ended_at: float | None = None  # the application's end, when Spark has reported it

    def take(self, notice: Notice) -> None:
        """One element of the queue."""
        match notice:
            case ExecutionStarted():
                self._execution_started(notice)
            case ExecutionEnded():
                self._execution_ended(notice)
            case Commit() | Scan():
                self._arrive(notice)
            case QueryStarted():
                at = _milliseconds(notice.at)
                self._streams.query_started(notice.id, notice.run, notice.name, at)
            case QueryEnded():
                self._streams.query_terminated(notice.run, time.time() * 1000, notice.error)
            case ApplicationEnded():
                self.ended_at = notice.at
            case Wake():
                pass
        self._taken_at = time.time() * 1000

    def _arrive(self, arrival: Commit | Scan) -> None:
        self._arrivals.add(arrival, time.time() * 1000)
        if isinstance(arrival, Commit) and self._notices is not None:
            self._notices.committed(
                self._qualified(arrival.table), arrival.snapshot_id, arrival.operation
            )

    def _qualified(self, table: str) -> str:
        """catalog.database.table.

        Iceberg leaves the catalog out in a CREATE TABLE AS, whose START knows it.
        """
        begun = [
            execution.begun for execution in self._open.values() if execution.begun is not None
        ]
        names = (output.dataset.table or "" for statement in begun for output in statement.outputs)
        return next((name for name in names if name.endswith("." + table)), table)

    def unreported(self, statement: Unreported) -> None:
        """Report a statement of which Spark reports nothing."""
        commits = self._arrivals.since(self._arrivals.taken_since(statement.at))
        self._actions.unreported(statement, commits)

    def idle(self, now: float) -> None:
        """Do what is due, at least once a second; `now` is milliseconds since 1970."""
        self._streams.announce_idle(now)
        while len(self._open) > _OPEN_EXECUTIONS:
            self._let_go(next(iter(self._open)))
        if (
            self._open
            and now - self._taken_at > _QUIET_MILLISECONDS
            and now - self._looked_at > _LOST_MILLISECONDS
        ):
            self._looked_at = now
            self._let_lost_go(now)

    def _let_lost_go(self, now: float) -> None:
        """Nothing may hold the plan of an execution that is over: Spark itself has let go of it.

        Its end may be on its way from Spark's bus, so only the second look counts.
        """
        old = (
            number
            for number, query in self._open.items()
            if now - query.started.at > _LOST_MILLISECONDS
        )
        over = {
            number for number in islice(old, _LOOKED_AT) if self._query_execution(number) is None
        }
        for number in over & self._over:
            self._let_go(number)
        self._over = over

    def _let_go(self, number: int) -> None:
        lost = self._open.pop(number)
        if lost.run is not None:
            self._announcer.let_go(lost.run)
        if lost.started.qe is not None:
            self._forget(lost.started.qe)
        self._batches = {
            batch: batch_ for batch, batch_ in self._batches.items() if batch_ is not lost
        }
        self._announcer.missed += 1

    def finish(self, at: float, lives_on: bool = False) -> None:
        """End every run that is still open.

        But for streams that another process of the JVM reports from now on.
        """
        if not lives_on:
            self._streams.abandon(at)
        for run in self._announcer.alive():
            if run != self._application and not (lives_on and run.kind == "STREAMING"):
                self._announcer.say(
                    "ABORT", run, at, EventContent(error="the application ended before it")
                )

    def _execution_started(self, notice: ExecutionStarted) -> None:
        if notice.fetches_result:
            return
        execution_id = notice.id
        qe = known(self._query_execution(execution_id))
        started = Started(
            execution_id=execution_id,
            root_id=notice.root,
            at=notice.at,
            description=notice.description,
            qe=qe,
            job_name=job_name_of(notice, qe),
            completes=completes_of(notice, qe),
        )
        execution = self._open[execution_id] = Execution(
            started, self._arrivals.taken_since(self._begun(started))
        )
        batch = micro_batch_of(started.description)
        if batch is not None:
            if started.root_id != execution_id:
                self._streams.begin(batch, execution)
            elif _is_whole(qe):
                if qe is not None or batch not in self._batches:
                    self._batches[batch] = execution
                self._streams.begin(batch, execution)
        elif self._root_of(execution) is execution:
            self._actions.begin(execution)

    def _begun(self, started: Started) -> float:
        """Return when the statement began.

        It may have been planned, and even have committed, before Spark reported it.
        """
        if started.qe is None or not self._arrivals.next:
            return started.at
        begun = begun_at(started.qe)
        return started.at if begun is None else min(begun, started.at)

    def _execution_ended(self, notice: ExecutionEnded) -> None:
        execution_id = notice.id
        ended = Ended(execution_id, notice.at, notice.error, notice.execution)
        execution = self._open.get(execution_id)
        if execution is None:  # it began before the emitter did, or its start was dropped
            if failed_in_planning(notice, self._jvm):
                self._end_unplanned(ended)
            return
        commits = self._arrivals.since(execution.since)
        root = self._root_of(execution)
        batch = micro_batch_of(execution.started.description)
        if root is execution:
            self._end_lost_parts(root, ended.error or "", commits)
        if root is not execution:
            self._actions.part(root, ended, commits)
        elif batch is None:
            self._actions.end(execution, ended, commits)
        elif execution.started.root_id == execution_id and _is_whole(
            execution.started.qe or ended.qe
        ):
            self._batches.pop(batch, None)
            self._streams.end(batch, execution, ended, commits)
        del self._open[execution_id]
        self._arrivals.forget_before(
            min((e.since for e in self._open.values()), default=self._arrivals.next)
        )

    def _end_unplanned(self, ended: Ended) -> None:
        """Report a statement that could not be planned: Spark reports its end only."""
        begun = begun_at(ended.qe)
        started = Started(
            execution_id=ended.execution_id,
            root_id=ended.execution_id,
            at=ended.at if begun is None else begun,
            description="",
            qe=ended.qe,
            job_name=session_setting(ended.qe, JOB_NAME),
        )
        execution = Execution(started, self._arrivals.next)
        self._actions.begin(execution)
        self._actions.end(execution, replace(ended, qe=None), ())

    def _end_lost_parts(self, root: Execution, error: str, commits: Sequence[Any]) -> None:
        """End the open parts below a root that ends: their ends are lost, but not their plans."""
        root_id = root.started.execution_id
        lost = [e for e in self._open.values() if e.started.root_id == root_id and e is not root]
        for execution in lost:
            del self._open[execution.started.execution_id]
            if not error:
                ended = Ended(
                    execution.started.execution_id, root.started.at, None, execution.started.qe
                )
                self._actions.part(root, ended, commits)

    def _root_of(self, execution: Execution) -> Execution:
        """The action that caused it.

        By Spark's root id, or the micro-batch that its description names.
        """
        root = self._open.get(execution.started.root_id, execution)
        if root is execution:
            batch = micro_batch_of(execution.started.description)
            return self._batches.get(batch, execution) if batch is not None else execution
        return root


def _is_whole(qe: Any) -> bool:
    """Return true if an execution of a micro-batch, nested in none, may be all of the micro-batch.

    A source that looks at its own log (Delta) does so under that description, before the
    micro-batch. And what is nested in the micro-batch may be over before Spark tells that the
    micro-batch began.
    """
    return qe is None or simple_name(qe) == "IncrementalExecution"


def _milliseconds(text: str) -> float:
    """Spark's "2026-11-21T11:58:02.123Z" as milliseconds since 1970."""
    try:
        return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() * 1000
    except ValueError:
        return time.time() * 1000
