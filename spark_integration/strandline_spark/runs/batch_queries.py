"""SQL executions of an application.

Nested ones folded into the action of the user that caused them.

An action is one run: START with its plan, then COMPLETE with what it did, FAIL with its error, or
ABORT if it was cancelled. What only reads is reported when the conf asks for it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Any, Protocol

from strandline_spark.conf import Conf
from strandline_spark.extraction.aligned_outputs import AlignedOutput
from strandline_spark.extraction.unreported_statements import Unreported
from strandline_spark.listeners.graphs import with_edges
from strandline_spark.listeners.shaping import shaped
from strandline_spark.listeners.user_edges import any_waiting, edges_of_action
from strandline_spark.model.flip314 import LineageEdge
from strandline_spark.model.job_names import job_name, output_name, unread_output_name, whole_name
from strandline_spark.model.statement import Dataset, Output, Snapshot, Statement, apart
from strandline_spark.openlineage.consumption import of_group
from strandline_spark.openlineage.events import EventContent, RunOf, run_id_of
from strandline_spark.priority import let_pass
from strandline_spark.runs.announcer import Announcer
from strandline_spark.swallowed import swallowed

# What an error begins with, or a cause of it: a message that merely holds such words is another
# error's.
_CANCELLED = re.compile(
    r"(?:\A|^Caused by: )(?:[\w.$]+\.\w+: "
    r")?(?:\[(?:SPARK_JOB_CANCELLED|JOB_CANCELLED|OPERATION_CANCELED)[\].]|Job \d+ (?:was "
    r")?cancelled\b|SparkContext has been shutdown|Cannot call methods on a stopped "
    r"SparkContext)|(?:\A|^Caused by: "
    r")(?:java\.lang\.InterruptedException|java\.nio\.channels\.ClosedByInterruptException)\b",
    re.MULTILINE,
)


class Reader(Protocol):
    """Reads plans: `plans.PlanReader`."""

    def at_start(self, qe: Any, planned: Any = None) -> Statement:
        """Return the content of the analysed plan; `planned`.

        Of a micro-batch, what holds its query's own plan.
        """
        ...

    def at_end(self, qe: Any, commits: Sequence[Any]) -> Statement:
        """Return the executed statement."""
        ...

    def micro_batch(self, qe: Any, planned: Any, commits: Sequence[Any]) -> Statement:
        """Return the executed micro-batch."""
        ...

    def earlier_batch(
        self,
        qe: Any,
        batch: tuple[str, int],
        offsets: Sequence[tuple[str | None, str | None]],
        planned: Any = None,
    ) -> Statement:
        """Return an earlier micro-batch of the same query.

        It is read from the table and the offset log.
        """
        ...

    def unreported(self, statement: Unreported, happened: Sequence[Any]) -> Statement:
        """Return what a statement did, or was to do, of which Spark reports nothing."""
        ...

    def consumed(
        self, qe: Any, offsets: Sequence[tuple[str | None, str | None]]
    ) -> Sequence[Dataset]:
        """Every source of a query with where a micro-batch ended in it."""
        ...

    def checkpoints(
        self, qe: Any, written: AlignedOutput, query_id: str, after: int
    ) -> dict[int, Statement]:
        """Return the commits of an aligned job's micro-batches after one, as its table has them."""
        ...


@dataclass(frozen=True, slots=True)
class Started:
    """A SparkListenerSQLExecutionStart as a value.

    `qe` is the JVM's QueryExecution, None if it is over already.

    `job_name` and `completes`: the template of names and the assertion of completeness that its
    session had then, where these are not the application's.
    """

    execution_id: int
    root_id: int
    at: float
    description: str
    qe: Any = None
    job_name: str | None = None
    completes: bool | None = None


@dataclass(frozen=True, slots=True)
class Ended:
    """A SparkListenerSQLExecutionEnd as a value; error is None for success."""

    execution_id: int
    at: float
    error: str | None
    qe: Any = None


@dataclass(slots=True)
class Execution:
    """An execution that has begun and not ended."""

    started: Started
    since: int  # commits that arrived before this number are not its own
    run: RunOf | None = None
    begun: Statement | None = None
    edges: tuple[LineageEdge, ...] = ()  # the user's own
    parts: list[Statement] = field(default_factory=list)  # what its nested executions wrote


class Arrivals:
    """Commits and scans in the order in which they came.

    They are kept as long as an open execution may own them. They arrive at once, the start of their
    execution over Spark's bus. On a busy machine they come before it, and what is scanned while a
    statement is planned always does. So the newest few are kept in any case, each with the time at
    which it was taken, which is never before it happened. An execution whose end was lost is open
    for ever: no more than the newest `most` are kept for any.
    """

    def __init__(self, at_least: int = 64, most: int = 4096) -> None:
        self._kept = at_least
        self._most = most
        self._first = 0
        self._items: list[tuple[float, Any]] = []

    def add(self, item: Any, at: float = 0.0) -> None:
        """One more, taken at a time in milliseconds since 1970."""
        self._items.append((at, item))
        self.forget_before(self.next - self._most)

    @property
    def next(self) -> int:
        """The number that the next one will have."""
        return self._first + len(self._items)

    def taken_since(self, at: float) -> int:
        """The number of the first that may have happened at that time or later."""
        late = sum(1 for _ in takewhile(lambda arrival: arrival[0] >= at, reversed(self._items)))
        return self.next - late

    def since(self, number: int) -> list[Any]:
        """All from that number on."""
        return [item for _, item in self._items[max(0, number - self._first) :]]

    def forget_before(self, number: int) -> None:
        """No open execution needs those; one that is still to be reported may need the newest."""
        gone = min(max(0, number - self._first), len(self._items) - self._kept)
        if gone > 0:
            del self._items[:gone]
            self._first += gone


class Actions:
    """The application's ordinary (not streaming) actions."""

    def __init__(
        self, conf: Conf, application: RunOf, reader: Reader, announcer: Announcer
    ) -> None:
        self._conf = conf
        self._application = application
        self._reader = reader
        self._announcer = announcer

    def begin(self, execution: Execution) -> None:
        """Report the begin of a root execution: START if its plan says that it writes."""
        started = execution.started
        if started.qe is None:
            return
        try:
            execution.begun = self._clean(self._reader.at_start(started.qe))
        except Exception as error:  # it may be readable at its end
            swallowed("a statement is reported at its end only", error)
            return
        execution.edges = _user_edges(execution)
        self._announce(execution, self._overridden(execution, (execution.begun,)))

    def end(self, execution: Execution, ended: Ended, commits: Sequence[Any]) -> None:
        """Report the end of a root execution: COMPLETE, FAIL or ABORT.

        START before it, if the plan could not be read then.
        """
        statements, unreadable = self._done(execution, ended, commits)
        statements = self._overridden(execution, statements)
        if ended.error is not None:
            statements = [_without_renames(statement) for statement in statements]
        asserted = execution.started.completes
        if self._conf.completes if asserted is None else asserted:
            statements = completing(statements)
        if execution.run is None:
            self._announce(execution, statements)
        if execution.run is None:
            return
        barrier = of_group(self._conf.group, statements) if ended.error is None else None
        content = EventContent(
            statements, error=ended.error, unreadable=unreadable, barrier=barrier
        )
        let_pass(ended.at)
        self._announcer.say(state_of(ended.error), execution.run, ended.at, content)

    def unreported(self, statement: Unreported, commits: Sequence[Any]) -> None:
        """Report a statement of which Spark made no execution: START and its end."""
        try:
            statements = [self._clean(self._reader.unreported(statement, commits))]
        except Exception as error:  # its target's name cannot be parsed, say
            swallowed("a statement without an execution is not reported", error)
            return
        name = self._name(statement.job_name, statements)
        if name is None:
            return
        at, message = statement.at, statement.message
        run_id = run_id_of(self._application.run_id, "unreported", statement.number, at=at)
        run = RunOf(run_id, name, "BATCH")
        self._announcer.say("START", run, at, EventContent(statements))
        content = EventContent(statements, error=message)
        self._announcer.say(state_of(message), run, statement.until, content)

    def part(self, root: Execution, ended: Ended, commits: Sequence[Any]) -> None:
        """Keep what an ended nested execution wrote: it belongs to its root."""
        if ended.error is not None or ended.qe is None:
            return
        statement = self._part(ended.qe, commits)
        if statement is not None and (
            statement.outputs or any(dataset.snapshots for dataset in statement.inputs)
        ):
            root.parts.append(statement)

    def _part(self, qe: Any, commits: Sequence[Any]) -> Statement | None:
        """Return the part's statement.

        Or its plan, if the statement cannot be read (the catalog is busy, say).
        """
        try:
            return self._clean(self._reader.at_end(qe, commits))
        except Exception as error:
            swallowed("what a nested execution did is reported as it was planned", error)
            return self._meant(qe)

    def _meant(self, qe: Any) -> Statement | None:
        try:
            return self._clean(self._reader.at_start(qe))
        except (
            Exception
        ) as error:  # mostly a format's own housekeeping; the root's plan is the fact
            swallowed("a nested execution is not reported", error)
            return None

    def _done(
        self, execution: Execution, ended: Ended, commits: Sequence[Any]
    ) -> tuple[list[Statement], str | None]:
        begun = [execution.begun] if execution.begun is not None else []
        if ended.qe is None:
            return [*begun, *writing(execution.parts)], None
        try:
            statement = self._clean(self._reader.at_end(ended.qe, commits))
        except Exception as error:
            reason = swallowed("what a statement did is reported as it was planned", error)
            return [*begun, *writing(execution.parts)], reason
        if statement.if_filled and ended.error is None and not _is_filled(statement, execution):
            return [], None
        return folded(statement, execution.parts), None

    def _overridden(self, execution: Execution, statements: Sequence[Statement]) -> list[Statement]:
        return with_edges(statements, execution.edges) if execution.edges else apart(statements)

    def _announce(self, execution: Execution, statements: Sequence[Statement]) -> None:
        name = self._name(execution.started.job_name, statements)
        if name is None:
            return
        started = execution.started
        run_id = run_id_of(self._application.run_id, started.execution_id, at=started.at)
        execution.run = RunOf(run_id, name, "BATCH")
        self._announcer.say(
            "START",
            execution.run,
            started.at,
            EventContent(statements, barrier=of_group(self._conf.group, statements)),
        )

    def _name(self, template: str | None, statements: Sequence[Statement]) -> str | None:
        output = output_name(statements) or unread_output_name(statements)
        if output is None:
            inputs = [dataset for statement in statements for dataset in statement.inputs]
            if not (self._conf.reads and inputs):
                return None
            output = f"read.{whole_name(inputs[0])}"
        return job_name(template or self._conf.job_name, self._conf.app_name, output)

    def _clean(self, statement: Statement) -> Statement:
        return shaped(statement, self._conf)


def folded(statement: Statement, parts: Sequence[Statement]) -> list[Statement]:
    """A root's statement and what its nested executions add to it.

    Where the root itself writes, a part counts only for the same output (the append inside a CREATE
    TABLE AS, which knows the snapshot). Parts that write elsewhere are a format's housekeeping.
    Where it does not, the parts are it. A part that only reads knows at which snapshots.
    """
    written = writing(parts)
    if not statement.outputs:
        return [*([statement] if statement.inputs or not written else []), *written]
    statement = _as_read(statement, [part for part in parts if not part.outputs])
    own = _names_written(statement)
    same = [part for part in written if _names_written(part) <= own]
    resolved = bool(statement.columns or statement.indirect)
    return [
        statement,
        *(replace(part, columns=(), indirect=()) if resolved else part for part in same),
    ]


def _is_filled(statement: Statement, execution: Execution) -> bool:
    """Return whether a nested execution wrote what a statement would have made."""
    own = _names_written(statement)
    return any(_names_written(part) & own for part in execution.parts)


def _without_renames(statement: Statement) -> Statement:
    """Return a statement that failed: what it was to rename has the name that it had."""
    outputs = tuple(
        replace(output, dataset=output.before or output.dataset, before=None, renamed={})
        for output in statement.outputs
    )
    return replace(statement, outputs=outputs)


def _names_written(statement: Statement) -> set[tuple[str, str]]:
    return {(output.dataset.namespace, output.dataset.name) for output in statement.outputs}


def completing(statements: Sequence[Statement]) -> list[Statement]:
    """Return the statements, each of whose snapshots shows the state of all inputs."""
    return [
        replace(statement, outputs=tuple(_completing(output) for output in statement.outputs))
        for statement in statements
    ]


def _completing(output: Output) -> Output:
    snapshots = tuple(replace(snapshot, completes=True) for snapshot in output.dataset.snapshots)
    return replace(output, dataset=replace(output.dataset, snapshots=snapshots))


def writing(parts: Sequence[Statement]) -> list[Statement]:
    """Those that write something."""
    return [part for part in parts if part.outputs]


def informed(parts: Sequence[Statement]) -> list[Statement]:
    """Return the outputs of nested executions, with the read snapshots on which all agree."""
    reading, written = [part for part in parts if not part.outputs], writing(parts)
    snapshots = _snapshots_read(reading)
    sure = [
        part
        for part in reading
        if all(len(snapshots.get((d.namespace, d.name), ())) < 2 for d in part.inputs)
    ]
    return [_as_read(part, sure) for part in written]


def _snapshots_read(parts: Sequence[Statement]) -> dict[tuple[str, str], set[tuple[Snapshot, ...]]]:
    """The snapshots that executions read of each dataset, where they know them."""
    snapshots: dict[tuple[str, str], set[tuple[Snapshot, ...]]] = {}
    for part in parts:
        for dataset in part.inputs:
            if dataset.snapshots:
                snapshots.setdefault((dataset.namespace, dataset.name), set()).add(
                    dataset.snapshots
                )
    return snapshots


def _as_read(statement: Statement, reading: Sequence[Statement]) -> Statement:
    """Return the statement with the snapshots that its nested executions read.

    Only where it has none of its own. The last try of a statement that had to begin again
    counts.
    """
    read = {
        (dataset.namespace, dataset.name): dataset.snapshots
        for part in reading
        for dataset in part.inputs
    }
    inputs = (
        dataset
        if dataset.snapshots
        else replace(dataset, snapshots=read.get((dataset.namespace, dataset.name), ()))
        for dataset in statement.inputs
    )
    return replace(statement, inputs=tuple(inputs))


def state_of(error: str | None) -> str:
    """The terminal state that an execution's error stands for.

    >>> cancelled = "[SPARK_JOB_CANCELLED] Job 3 cancelled"
    >>> state_of(None), state_of("[DIVIDE_BY_ZERO] ..."), state_of(cancelled)
    ('COMPLETE', 'FAIL', 'ABORT')
    """
    if error is None:
        return "COMPLETE"
    return "ABORT" if _CANCELLED.search(error) else "FAIL"


def _user_edges(execution: Execution) -> tuple[LineageEdge, ...]:
    """The edges that the user gave for this session's next action.

    Commands that touch no data are no action.
    """
    begun = execution.begun
    if not any_waiting() or begun is None or not (begun.inputs or begun.outputs):
        return ()
    session = int(execution.started.qe.sparkSession().hashCode())
    return edges_of_action(session, execution.started.at)
