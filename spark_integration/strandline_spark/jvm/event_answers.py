"""Elements of the JVM's queue with what they say of themselves, asked in one round trip.

Watching reads five or six values of each event. Once some events have come, they are asked for
together with the event. Before that, and for whatever is not known here, an event is asked one
question after the other, as any object of the JVM is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from strandline_spark.conf import is_on
from strandline_spark.conf_keys import COMPLETES, JOB_NAME
from strandline_spark.jvm.class_names import (
    PHYSICAL_PLAN,
    SCALA_MAP,
    SCALA_OPTION,
    SQL_EVENT,
    UTILS,
    WITHIN,
)
from strandline_spark.jvm.client import (
    JAVA_FAILED,
    JavaObject,
    Jvm,
    Later,
    once,
    optional,
    shown_option,
)
from strandline_spark.jvm.method_handles import UNKNOWN, Handle, Handles
from strandline_spark.jvm.parsed_texts import OPTION, text_in
from strandline_spark.swallowed import swallowed

WAIT = 1000  # milliseconds for which the next event is waited for, mostly

_ICEBERG = "org.apache.iceberg.events."
# By class: methods without arguments. A "?" stands behind those that give an Option.
_EVENTS: Mapping[str, tuple[str, ...]] = {
    f"{SQL_EVENT}Start": ("executionId", "rootExecutionId?", "time", "description"),
    f"{SQL_EVENT}End": ("executionId", "errorMessage?", "time"),
    f"{_ICEBERG}CreateSnapshotEvent": (
        "tableName",
        "operation",
        "snapshotId",
        "sequenceNumber",
        "summary",
    ),
    f"{_ICEBERG}ScanEvent": ("tableName", "snapshotId"),
}
# What else is asked of an event: of the plan that it holds, or of its settings.
_MORE: Mapping[str, tuple[str, ...]] = {
    f"{SQL_EVENT}Start": (JOB_NAME, COMPLETES, "planName"),
    f"{SQL_EVENT}End": ("number", "metrics"),
}
_PLAN_NAME = "sparkPlanInfo.nodeName"
_HIDDEN = "*********(redacted)"  # what Spark writes for a value that looks like a secret
_FETCH = "CommandResult"
# In the trace of an error: Spark shows a plan for its start; an execution; a micro-batch.
_SHOWING_PLAN, _EXECUTED = "QueryExecution.explainString(", "SQLExecution$.withNewExecutionId("
_STREAMED = ".execution.streaming."
_OTHER_TRACE = re.compile(r"^(?:Caused by|\s+Suppressed): ", re.MULTILINE)
_TEXT = "java.lang.String"
_AFTER = 40  # events, whose reading costs about as much as joining the questions


class Answers:
    """Takes events from a queue, with all that is wanted of them. Used by one thread."""

    def __init__(self, jvm: Jvm, queue: JavaObject, after: int = _AFTER) -> None:
        self._jvm = jvm
        self._queue = queue
        self._unit = jvm.view.java.util.concurrent.TimeUnit.MILLISECONDS
        self._newest = jvm.new("java.util.concurrent.atomic.AtomicReference")
        self._taken = 0
        self._left = after
        self._function: JavaObject = None

    def next(self, milliseconds: int) -> JavaObject:
        """The next event with its answers, where they could be had.

        None when none came in that time.
        """
        if milliseconds == WAIT and self._left <= 0 and OPTION.holds and self._joined():
            return self._answered(self._function.apply(self._queue))
        event = self._queue.poll(milliseconds, self._unit)
        self._left -= event is not None
        return event

    def forgetting(self, handles: Handles) -> Handle:
        """Lets go of the newest event, inside the JVM."""
        kind = self._jvm.class_named("java.lang.Object")
        return handles.asking(
            self._newest, "java.util.concurrent.atomic.AtomicReference", "set", (kind, None)
        )

    def _joined(self) -> bool:
        """Return whether events can be asked for together; this is found out once."""
        try:
            self._function = self._function or _function(
                self._jvm, self._queue, self._newest, self._unit
            )
        except JAVA_FAILED:
            self._left = 1 << 62  # this JVM cannot
        return self._function is not None

    def _answered(self, text: str | None) -> JavaObject:
        self._taken += 1
        if text is None:
            return None
        taken = self._taken
        try:
            class_name, *values = json.loads(text)
        except ValueError:  # UNKNOWN: what was asked of it failed
            return self._newest.get()
        return (
            _Answered(lambda: self._event(taken), class_name, values)
            if class_name != _TEXT
            else self._newest.get()
        )

    def _event(self, taken: int) -> JavaObject:
        """The event itself.

        Only the newest is held: nobody needs an earlier one, and it would hold its plan.
        """
        if taken != self._taken:
            raise LookupError("an event of Spark was asked after the next had come")
        return self._newest.get()


class _Answered(Later):
    """An event whose methods give what is known already."""

    def __init__(self, event: Callable[[], JavaObject], class_name: str, values: list[Any]) -> None:
        methods = _EVENTS.get(class_name, ())
        answers = dict(zip(methods, values, strict=False))
        more = dict(zip(_MORE.get(class_name, ()), values[len(methods) :], strict=False))
        answered = {question: answer for question, answer in more.items() if answer != UNKNOWN}
        if "number" in answered:
            self.__dict__["qe"] = _giving(Later(lambda: event().qe(), answered))
        super().__init__(event, {"class": class_name, **answers, **answered})
        for method, value in answers.items():
            self.__dict__[method.removesuffix("?")] = _giving(
                _Perhaps(value) if method.endswith("?") else value
            )


class _Perhaps:
    """A Scala Option, as it shows itself."""

    def __init__(self, shown: str) -> None:
        self._shown = shown

    def isDefined(self) -> bool:  # noqa: N802 - as Scala has it
        return self._shown.startswith("Some(")

    def get(self) -> str:
        return self._shown.removeprefix("Some(")[:-1]


def _giving(value: Any) -> Callable[[], Any]:
    return lambda: value


def _function(jvm: Jvm, queue: JavaObject, newest: JavaObject, unit: JavaObject) -> JavaObject:
    """Take the next event, let `newest` hold it, and return its class with its answers as JSON.

    Nothing if none comes.
    """
    handles = Handles(jvm)
    name = handles.path("java.lang.Object", "getClass.getName")
    rows: dict[str, Handle] = {}
    for class_name, methods in _EVENTS.items():
        with suppress(*JAVA_FAILED):  # Iceberg is not on every class path
            paths = (method.replace("?", ".toString") for method in methods)
            answers = [name, *(handles.path(class_name, path) for path in paths)]
            if class_name == f"{SQL_EVENT}Start":
                answers += [_setting(handles, class_name, key) for key in (JOB_NAME, COMPLETES)]
                answers.append(handles.or_unknown(handles.path(class_name, _PLAN_NAME)))
            if class_name == f"{SQL_EVENT}End":
                answers += [handles.answer(class_name, "qe.id"), _metrics(handles, class_name)]
            rows[class_name] = handles.row(answers)
    function = handles.or_unknown(
        handles.as_json(handles.by_class(rows, handles.row([name])), jvm.mapper)
    )
    held = handles.given_to(newest, "java.util.concurrent.atomic.AtomicReference", "set")
    kinds = jvm.static("java.lang.Long", "TYPE"), jvm.class_named("java.util.concurrent.TimeUnit")
    arguments = zip(kinds, (WAIT, unit), strict=True)
    taken = handles.asking(queue, "java.util.concurrent.BlockingQueue", "poll", *arguments)
    return handles.function(handles.then(taken, handles.if_any(handles.both(held, function))))


def _setting(handles: Handles, class_name: str, key: str) -> Handle:
    settings = handles.path(class_name, "modifiedConfigs")
    named = handles.called(SCALA_MAP, "get", "java.lang.Object", key)
    return handles.or_unknown(
        handles.then(settings, handles.then(named, handles.path(SCALA_OPTION, "toString")))
    )


def job_name_of(start: JavaObject, execution: JavaObject) -> str | None:
    """Return the template of names that a statement's session had when the statement started.

    None where it was the application's.
    """
    return _setting_of(start, execution, JOB_NAME)


def fetches_result(start: JavaObject) -> bool:
    """Return whether an execution only fetches the result of a command that has run.

    `spark.sql("INSERT ..")` runs the command; collecting what it returns is another execution,
    whose analysed plan is the command's.
    """
    try:
        return (
            str(once(start, "planName", lambda plan_info: plan_info.sparkPlanInfo().nodeName()))
            == _FETCH
        )
    except Exception as error:
        swallowed("a statement whose result is collected may be reported twice", error)
        return False


def failed_in_planning(end: JavaObject, jvm: Jvm) -> bool:
    """Return whether a user's statement failed before Spark could report its start.

    The start shows the physical plan, and there is none. What another statement or a micro-batch
    ran fails with that one.
    """
    if not end.errorMessage().isDefined():
        return False
    error = optional(end.executionFailure())
    if error is None or end.qe() is None:
        return False
    shown = str(jvm.static(UTILS, "exceptionString")(error))
    trace = _OTHER_TRACE.split(shown)[0]
    return _SHOWING_PLAN in trace and trace.count(_EXECUTED) == 1 and _STREAMED not in trace


def completes_of(start: JavaObject, execution: JavaObject) -> bool | None:
    """Return whether a statement's session had asserted completeness when the statement started.

    None where that was left to the application's conf.
    """
    value = _setting_of(start, execution, COMPLETES)
    return None if value is None else is_on(value)


def session_setting(execution: JavaObject, key: str) -> str | None:
    """Return a setting that a statement's session has now."""
    return text_in(shown_option(execution.sparkSession().conf().getOption(key)))


def _setting_of(start: JavaObject, execution: JavaObject, key: str) -> str | None:
    """Return a setting of a statement's session, if it was not the application's.

    The event keeps the session's settings of that time; what Spark hides in it the session itself
    is asked for, which may have another name by now.
    """
    try:
        shown = once(start, key, lambda event_: shown_option(event_.modifiedConfigs().get(key)))
        if _HIDDEN in shown and execution is not None:
            return session_setting(execution, key)
    except Exception as error:  # the session is closed: the application's conf holds
        swallowed(f"a statement follows the application's {key}, not its session's", error)
        return None
    return text_in(shown) if _HIDDEN not in shown else None


def _metrics(handles: Handles, class_name: str) -> Handle:
    """The text of what an execution's write counted, as `plans.physical` asks for it."""
    metrics = handles.path(PHYSICAL_PLAN, "metrics.toString")
    for _ in WITHIN:
        inside = {}
        for outer, path in WITHIN.items():
            with suppress(*JAVA_FAILED):  # not every Spark has all of them
                inside[outer] = handles.then(handles.path(outer, path), metrics)
        metrics = handles.by_class(inside, metrics)
    return handles.or_unknown(handles.then(handles.path(class_name, "qe.executedPlan"), metrics))
