"""Elements of the JVM's queue with what they say of themselves, asked in one round trip.

Watching reads five or six values of each event. Once some events have come, they are asked for together; before that,
and for whatever is not known here, an event is asked one question after the other, as any object of the JVM is.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from strandline_spark.handles import UNKNOWN, Handle, Handles
from strandline_spark.jvm import JAVA_FAILED, JavaObject, Jvm, Later
from strandline_spark.plans.physical import WITHIN

_SQL = "org.apache.spark.sql.execution.ui.SparkListenerSQLExecution"
_ICEBERG = "org.apache.iceberg.events."
# By class: methods without arguments. A "?" stands behind those that give an Option.
_EVENTS: Mapping[str, tuple[str, ...]] = {
    f"{_SQL}Start": ("executionId", "rootExecutionId?", "time", "description"),
    f"{_SQL}End": ("executionId", "errorMessage?", "time"),
    f"{_ICEBERG}CreateSnapshotEvent": ("tableName", "operation", "snapshotId", "sequenceNumber", "summary"),
    f"{_ICEBERG}ScanEvent": ("tableName", "snapshotId"),
}
_PLAN = "org.apache.spark.sql.execution.SparkPlan"
_AFTER = 40  # events, whose reading costs about as much as joining the questions


class Answers:
    """Asks events for all that is wanted of them. Used by one thread."""

    def __init__(self, jvm: Jvm, after: int = _AFTER) -> None:
        self._jvm = jvm
        self._left = after
        self._function: JavaObject = None

    def of(self, event: JavaObject) -> JavaObject:
        """The event, with its answers where they could be had."""
        self._left -= 1
        if self._left > 0 or isinstance(event, str):
            return event
        try:
            if self._function is None:
                self._function = _function(self._jvm)
            class_name, *values = json.loads(self._function.apply(event))
        except JAVA_FAILED:
            self._left = 1 << 62  # this JVM cannot: not again
            return event
        return _Answered(event, class_name, values)


class _Answered(Later):
    """An event whose methods give what is known already."""

    def __init__(self, event: JavaObject, class_name: str, values: list[Any]) -> None:
        methods = _EVENTS.get(class_name, ())
        told = dict(zip(methods, values, strict=False))
        number, metrics = values[len(methods) :] or (UNKNOWN, UNKNOWN)
        if number != UNKNOWN:
            known = {"number": number} | ({"metrics": metrics} if metrics != UNKNOWN else {})
            self.__dict__["qe"] = _giving(Later(event.qe, known))
        super().__init__(lambda: event, {"class": class_name, **told})
        for method, value in told.items():
            self.__dict__[method.removesuffix("?")] = _giving(_Perhaps(value) if method.endswith("?") else value)


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


def _function(jvm: Jvm) -> JavaObject:
    handles = Handles(jvm)
    name = handles.path("java.lang.Object", "getClass.getName")
    known: dict[str, Handle] = {}
    for class_name, methods in _EVENTS.items():
        with suppress(*JAVA_FAILED):  # Iceberg is not on every class path
            paths = (method.replace("?", ".toString") for method in methods)
            answers = [name, *(handles.path(class_name, path) for path in paths)]
            if class_name == f"{_SQL}End":
                answers += [handles.answer(class_name, "qe.id"), _metrics(handles, class_name)]
            known[class_name] = handles.row(answers)
    asked = handles.by_class(known, handles.row([name]))
    return handles.function(handles.as_json(asked, jvm.mapper))


def _metrics(handles: Handles, class_name: str) -> Handle:
    """The text of what an execution's write counted, as `plans.physical` asks for it."""
    found = handles.path(_PLAN, "metrics.toString")
    for _ in WITHIN:
        inside = {}
        for outer, path in WITHIN.items():
            with suppress(*JAVA_FAILED):  # not every Spark has all of them
                inside[outer] = handles.then(handles.path(outer, path), found)
        found = handles.by_class(inside, found)
    return handles.or_unknown(handles.then(handles.path(class_name, "qe.executedPlan"), found))
