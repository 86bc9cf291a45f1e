"""What the JVM's queue holds, as values: one class for each kind of event that is looked at.

Events of other classes, also what others post on Spark's bus, do not enter the queue.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from strandline_spark.conf import is_on
from strandline_spark.conf_keys import COMPLETES, JOB_NAME
from strandline_spark.jvm.class_names import APPLICATION_END, SQL_EVENT, STREAM_EVENT, UTILS
from strandline_spark.jvm.client import JavaObject, Jvm, Known, optional, optional_text
from strandline_spark.jvm.iceberg_snapshot import EVENTS, Commit, Scan
from strandline_spark.jvm.probe import answers_in
from strandline_spark.swallowed import swallowed

_FETCH = "CommandResult"  # what collects the result of a command that has run
_HIDDEN = "*********(redacted)"  # what Spark writes for a value that looks like a secret
# In the trace of an error: Spark shows a plan for its start; an execution; a micro-batch.
_SHOWING_PLAN, _EXECUTED = "QueryExecution.explainString(", "SQLExecution$.withNewExecutionId("
_STREAMED = ".execution.streaming."
_OTHER_TRACE = re.compile(r"^(?:Caused by|\s+Suppressed): ", re.MULTILINE)

QUESTIONS: Mapping[str, Mapping[str, str]] = {
    f"{SQL_EVENT}Start": {
        "id": "executionId",
        "root": "rootExecutionId",
        "at": "time",
        "description": "description",
        "plan": "sparkPlanInfo.nodeName",
        JOB_NAME: f"modifiedConfigs[{JOB_NAME}]",
        COMPLETES: f"modifiedConfigs[{COMPLETES}]",
    },
    f"{SQL_EVENT}End": {
        "id": "executionId",
        "at": "time",
        "error": "errorMessage",
        "execution": "qe.getClass.getName",
        "number": "qe.id",
    },
    f"{STREAM_EVENT}StartedEvent": {
        "id": "id",
        "run": "runId",
        "name": "name",
        "at": "timestamp",
    },
    f"{STREAM_EVENT}TerminatedEvent": {"run": "runId", "error": "exception"},
    APPLICATION_END: {"at": "time"},
    f"{EVENTS}CreateSnapshotEvent": {
        "table": "tableName",
        "operation": "operation",
        "snapshot": "snapshotId",
        "number": "sequenceNumber",
        "summary": "summary",
    },
    f"{EVENTS}ScanEvent": {"table": "tableName", "snapshot": "snapshotId"},
    f"{EVENTS}IncrementalScanEvent": {
        "table": "tableName",
        "snapshot": "toSnapshotId",
        "from": "fromSnapshotId",
        "inclusive": "isFromSnapshotInclusive",
    },
}


@dataclass(frozen=True, slots=True)
class ExecutionStarted:
    """An execution has begun; `root` is the one that it is a part of, or itself.

    `fetches_result`: it only fetches the result of a command that has run. `spark.sql("INSERT ..")`
    runs the command; collecting what it returns is another execution, whose analysed plan is the
    command's. `settings`: those that the session had then, where they are not the application's.
    """

    id: int
    root: int
    at: float
    description: str
    fetches_result: bool = False
    settings: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ExecutionEnded:
    """An execution has ended.

    `execution` is the JVM's QueryExecution, and `failure` gives the exception that ended it: both
    until the next notice is taken.
    """

    id: int
    at: float
    error: str | None
    execution: Any
    failure: Callable[[], JavaObject | None] = lambda: None


@dataclass(frozen=True, slots=True)
class QueryStarted:
    """A streaming query has begun; `at` as Spark writes it."""

    id: str
    run: str
    name: str | None
    at: str


@dataclass(frozen=True, slots=True)
class QueryEnded:
    """The run of a streaming query has ended."""

    run: str
    error: str | None


@dataclass(frozen=True, slots=True)
class ApplicationEnded:
    """The application has ended."""

    at: float


@dataclass(frozen=True, slots=True)
class Wake:
    """Nothing that Spark said: somebody wants the waiting to end."""


Notice = (
    ExecutionStarted
    | ExecutionEnded
    | QueryStarted
    | QueryEnded
    | ApplicationEnded
    | Commit
    | Scan
    | Wake
)


def notice_of(text: str, event: Callable[[], JavaObject]) -> Notice:
    """Return the notice of what the probe wrote down; `event` gives the event itself."""
    answers = answers_in(text)
    return _MAKERS[answers["class"]](answers, event)


def _started(answers: dict[str, Any], event: Callable[[], JavaObject]) -> Notice:
    number, root = int(answers["id"]), answers["root"]
    return ExecutionStarted(
        number,
        int(root) if root is not None else number,
        float(answers["at"]),
        str(answers["description"]),
        answers.get("plan") == _FETCH,
        {key: answers.get(key) for key in (JOB_NAME, COMPLETES)},
    )


def _ended(answers: dict[str, Any], event: Callable[[], JavaObject]) -> Notice:
    execution = None
    if answers.get("execution") is not None:
        execution = Known(
            lambda: event().qe(),
            {"class": answers["execution"], "number": answers["number"], "ended": answers["at"]},
        )
    return ExecutionEnded(
        int(answers["id"]),
        float(answers["at"]),
        answers.get("error") or None,
        execution,
        lambda: optional(event().executionFailure()),
    )


def _commit(answers: dict[str, Any], event: Callable[[], JavaObject]) -> Notice:
    return Commit(
        str(answers["table"]),
        str(answers["operation"]),
        str(answers["snapshot"]),
        int(answers["number"]),
        answers["summary"] or {},
    )


def _incremental(answers: dict[str, Any], event: Callable[[], JavaObject]) -> Notice:
    table, newest, oldest = answers["table"], str(answers["snapshot"]), str(answers["from"])
    if answers["inclusive"]:
        return Scan(table, newest, first_snapshot_id=oldest)
    return Scan(table, newest, oldest)


_MAKERS: Mapping[str, Callable[[dict[str, Any], Callable[[], JavaObject]], Notice]] = {
    f"{SQL_EVENT}Start": _started,
    f"{SQL_EVENT}End": _ended,
    f"{STREAM_EVENT}StartedEvent": lambda answers, _: QueryStarted(
        answers["id"], answers["run"], answers["name"], answers["at"]
    ),
    f"{STREAM_EVENT}TerminatedEvent": lambda answers, _: QueryEnded(
        answers["run"], answers["error"]
    ),
    APPLICATION_END: lambda answers, _: ApplicationEnded(float(answers["at"])),
    f"{EVENTS}CreateSnapshotEvent": _commit,
    f"{EVENTS}ScanEvent": lambda answers, _: Scan(answers["table"], str(answers["snapshot"])),
    f"{EVENTS}IncrementalScanEvent": _incremental,
    "java.lang.String": lambda answers, _: Wake(),
}


def job_name_of(started: ExecutionStarted, execution: JavaObject | None) -> str | None:
    """Return the template of names that a statement's session had when the statement started.

    None where it was the application's.
    """
    return _setting_of(started, execution, JOB_NAME)


def completes_of(started: ExecutionStarted, execution: JavaObject | None) -> bool | None:
    """Return whether a statement's session had asserted completeness when the statement started.

    None where that was left to the application's conf.
    """
    value = _setting_of(started, execution, COMPLETES)
    return None if value is None else is_on(value)


def _setting_of(started: ExecutionStarted, execution: JavaObject | None, key: str) -> str | None:
    """Return a setting of a statement's session, if it was not the application's.

    The notice has the session's settings of that time; what Spark hides in it the session itself is
    asked for, which may have another name by now.
    """
    value = started.settings.get(key)
    if value is None or _HIDDEN not in value:
        return value
    try:
        return session_setting(execution, key) if execution is not None else None
    except Exception as error:  # the session is closed: the application's conf holds
        swallowed(f"a statement follows the application's {key}, not its session's", error)
        return None


def session_setting(execution: JavaObject, key: str) -> str | None:
    """Return a setting that a statement's session has now."""
    return optional_text(execution.sparkSession().conf().getOption(key))


def failed_in_planning(ended: ExecutionEnded, jvm: Jvm) -> bool:
    """Return whether a user's statement failed before Spark could report its start.

    The start shows the physical plan, and there is none. What another statement or a micro-batch
    ran fails with that one.
    """
    if ended.error is None or ended.execution is None:
        return False
    failure = ended.failure()
    if failure is None:
        return False
    shown = str(jvm.static(UTILS, "exceptionString")(failure))
    trace = _OTHER_TRACE.split(shown)[0]
    return _SHOWING_PLAN in trace and trace.count(_EXECUTED) == 1 and _STREAMED not in trace
