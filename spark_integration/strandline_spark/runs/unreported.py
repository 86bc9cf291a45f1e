"""Statements for which Spark fires no event, because it never makes an execution of them.

These are writes that fail before anything is executed, and procedures, which Spark runs while it
analyses `CALL`. The methods of the driver's Python return and raise as before; a statement is noted
afterwards, on the same thread and without asking a catalog, which may not answer.
"""

from __future__ import annotations

import inspect
import re
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import wraps
from itertools import count
from typing import Any
from weakref import WeakSet

from py4j.java_gateway import is_instance_of
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import __version__ as spark_version
from pyspark.errors import AnalysisException, ParseException

from strandline_spark.columns.expression import in_quotes
from strandline_spark.conf_keys import JOB_NAME
from strandline_spark.extraction.unreported_statements import RefusedWrite, SqlText, Unreported
from strandline_spark.formats.catalog_tables import SESSION_CATALOG
from strandline_spark.jvm.class_names import ANALYSIS_EXCEPTION, CURRENT
from strandline_spark.jvm.client import Jvm, optional, thrown
from strandline_spark.swallowed import swallowed

_METHODS = {
    "DataFrameWriter": (
        *("save", "insertInto", "saveAsTable"),
        *("csv", "json", "orc", "parquet", "text", "xml"),
    ),
    "DataFrameWriterV2": (
        *("append", "overwrite", "overwritePartitions"),
        *("create", "replace", "createOrReplace"),
    ),
    "MergeIntoWriter": ("merge",),
}
_TARGETS = ("path", "tableName", "name")  # parameters
_FIRST = re.compile(r"(?:\s|--[^\n]*\n)*(\w+|/\*)")  # word or comment of a statement
_BRACKET = re.compile(r"(/\*|\*/)")
_DEEPER = {"/*": 1, "*/": -1}  # into comments
_PARAMETER = re.compile(  # by name or position, behind what may only look like one
    r"""('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`[^`]*`|--[^\n]*|/\*.*?\*/|::)|:(\w+)|\?""", re.DOTALL
)
_EXECUTED, _STREAMED = ".SQLExecution$", ".execution.streaming."
_IN_TASK = ".executor.Executor$"  # of an error that a task threw, on a thread of its own
_REPORTS_ANALYSIS = int(spark_version.partition(".")[0]) >= 4  # of SQL, by an execution "analyze"
_DEFAULT_CATALOG = "spark.sql.defaultCatalog"
_KEPT = 100  # statements that wait for an emitter
_numbers = count(1)
_watching: WeakSet[UnreportedStatements] = WeakSet()


class UnreportedStatements:
    """The unreported statements that one emitter has not taken yet."""

    def __init__(self, wake: Callable[[], None] = lambda: None) -> None:
        """`wake`: tells the emitter that one waits, behind all that Spark has told so far."""
        self._waiting: deque[Unreported] = deque(maxlen=_KEPT)
        self._wake = wake
        _watch_methods()
        _watching.add(self)

    def add(self, statement: Unreported) -> None:
        """Keep a statement; the oldest makes room for it."""
        self._waiting.append(statement)
        self._wake()

    def take(self) -> Unreported | None:
        """Return the oldest statement, which is kept no longer; None if there is none."""
        return self._waiting.popleft() if self._waiting else None

    def leave(self) -> None:
        """Stop collecting statements."""
        _watching.discard(self)


def _watch_methods() -> None:
    """Have the methods note what Spark does not report. Repeated calls change nothing."""
    from pyspark.sql import SparkSession, readwriter

    owners: list[Any] = [readwriter.DataFrameWriter, readwriter.DataFrameWriterV2]
    with suppress(ImportError):  # before Spark 4
        from pyspark.sql.merge import MergeIntoWriter

        owners.append(MergeIntoWriter)
    watched = [
        (owner, name, _noting_writes) for owner in owners for name in _METHODS[owner.__name__]
    ]
    for owner, name, noting in [*watched, (SparkSession, "sql", _noting_sql)]:
        plain = getattr(owner, name, None)
        if plain is not None and not hasattr(plain, "_strandline_noting"):
            noted = noting(plain)
            noted._strandline_noting = True  # type: ignore[attr-defined]
            setattr(owner, name, noted)


def _noting_writes(plain: Callable[..., Any]) -> Callable[..., Any]:
    signature = inspect.signature(plain)

    @wraps(plain)
    def write(self: Any, *args: Any, **kwargs: Any) -> Any:
        begun = time.time() * 1000
        try:
            return plain(self, *args, **kwargs)
        except Exception as error:
            if _watching:
                with suppress(TypeError):  # no such call of the method
                    arguments = signature.bind(self, *args, **kwargs).arguments
                    _note_write(self, plain.__name__, arguments, begun, error)
            raise

    return write


def _note_write(
    writer: Any, method: str, arguments: Mapping[str, Any], begun: float, error: Exception
) -> None:
    """Note a write that failed before anything was executed."""
    try:
        if _is_reported(error):
            return
        jwriter = getattr(writer, "_jwrite", None)
        _add(
            RefusedWrite,
            writer._spark,
            begun,
            error,
            writer=jwriter if jwriter is not None else writer._jwriter,
            method=method,
            target=next((arguments[name] for name in _TARGETS if name in arguments), None),
        )
    except Exception as fault:
        swallowed("a DataFrame write that failed in analysis is not reported", fault)


def _noting_sql(plain: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(plain)
    def sql(self: Any, sqlQuery: str, *args: Any, **kwargs: Any) -> Any:  # noqa: N803
        begun = time.time() * 1000
        try:
            result = plain(self, sqlQuery, *args, **kwargs)
        except Exception as error:
            if _watching:
                _note_sql(self, sqlQuery, args, kwargs, begun, error)
            raise
        if _watching:
            _note_sql(self, sqlQuery, args, kwargs, begun, None)
        return result

    return sql


def _note_sql(
    session: Any,
    text: str,
    args: tuple[Any, ...],
    named: Mapping[str, Any],
    begun: float,
    error: Exception | None,
) -> None:
    """Note a CALL, and a statement that failed before anything was executed."""
    try:
        if isinstance(error, ParseException):
            return
        is_call = begins_with_call(text)
        if error is not None:
            error = _of_spark(error)
        if not is_call and (
            error is None
            or (_REPORTS_ANALYSIS and _in_analysis(error, session))
            or _is_reported(error)
        ):
            return
        text = _formatted(session, text, named)
        parameters = args[0] if args else named.get("args")
        if is_call and parameters:
            text = with_values(text, parameters)
        _add(SqlText, session, begun, error, text=text)
    except Exception as fault:
        swallowed("a SQL statement without an execution is not reported", fault)


def begins_with_call(text: str) -> bool:
    r"""Return whether the first word of a statement is CALL. Comments before it may be nested.

    >>> begins_with_call("/* a /* b -- */ */ call s.f()"), begins_with_call("-- CALL\nSELECT 1")
    (True, False)
    """
    position, depth = 0, 0
    while True:
        token = (_BRACKET.search if depth else _FIRST.match)(text, position)
        if token is None:
            return False
        if token[1] not in _DEEPER:
            return token[1].upper() == "CALL"
        depth += _DEEPER[token[1]]
        position = token.end()


def _formatted(session: Any, text: str, named: Mapping[str, Any]) -> str:
    """Return a text with the values that `spark.sql` was given by their names."""
    from pyspark.sql.sql_formatter import SQLStringFormatter

    values = {name: value for name, value in named.items() if name != "args"}
    if not values:
        return text
    formatter = SQLStringFormatter(session)
    try:
        return str(formatter.format(text, **values))
    finally:
        formatter.clear()


def with_values(text: str, parameters: Mapping[str, Any] | Sequence[Any]) -> str:
    """Return a text with the values of its parameters in their places.

    >>> with_values("CALL s.f(t => :t, 'is it :t?', n => :n)", {"t": "db.t", "n": 7})
    "CALL s.f(t => 'db.t', 'is it :t?', n => 7)"
    """
    values: dict[Any, Any]
    values = dict(parameters if isinstance(parameters, Mapping) else enumerate(parameters))
    positions = count()
    return _PARAMETER.sub(
        lambda match: match[1] or _literal(values[match[2] or next(positions)]), text
    )


def _literal(value: Any) -> str:
    if isinstance(value, datetime):
        return f"TIMESTAMP '{value}'"
    return in_quotes(value) if isinstance(value, str) else str(value)


def _of_spark(error: Exception) -> Exception:
    """Return Spark's error where PySpark failed to convert it, and raised its own."""
    context: BaseException | None = error.__context__
    if isinstance(error, Py4JJavaError) and isinstance(context, Exception):
        return context
    return error


def _in_analysis(error: Exception, session: Any) -> bool:
    if isinstance(error, AnalysisException):
        return True
    raised, gateway = thrown(error), session.sparkContext._gateway
    return raised is not None and is_instance_of(gateway, raised, ANALYSIS_EXCEPTION)


def _is_reported(error: Exception) -> bool:
    """Return whether Spark reports an error by itself, or can report nothing any more."""
    if thrown(error) is None:
        return isinstance(error, Py4JError)
    trace = str(getattr(error, "_stackTrace", None) or error)
    statement, _, caller = trace.partition("at py4j.")
    return any(part in statement for part in (_EXECUTED, _IN_TASK)) or _STREAMED in caller


def _add(
    kind: type[RefusedWrite | SqlText],
    spark: Any,
    begun: float,
    error: Exception | None,
    **own: Any,
) -> None:
    """Hand a statement to every emitter, with what names mean in its session at this moment."""
    until, session = time.time() * 1000, spark._jsparkSession
    statement = kind(
        number=next(_numbers),
        session=session,
        current=_current(session, Jvm(spark._jvm)),
        at=begun,
        until=until,
        error=error if error is None else thrown(error) or error,
        job_name=spark.conf.get(JOB_NAME, None),
        **own,
    )
    for watching in tuple(_watching):
        watching.add(statement)


def _current(session: Any, jvm: Jvm) -> tuple[str, tuple[str, ...] | None]:
    """Return a session's catalog and its namespace, None for the catalog's default.

    Spark's own methods for them load the catalog.
    """
    state = session.sessionState()
    manager = state.catalogManager()
    catalog, namespace = (jvm.field(manager, current.field) for current in CURRENT)
    if catalog is None or namespace is None:
        raise LookupError("this Spark keeps the current catalog elsewhere")
    name = str(optional(catalog) or state.conf().getConfString(_DEFAULT_CATALOG, SESSION_CATALOG))
    parts = optional(namespace)
    if parts is not None:
        return name, tuple(map(str, parts))
    return name, (str(state.catalog().getCurrentDatabase()),) if name == SESSION_CATALOG else None
