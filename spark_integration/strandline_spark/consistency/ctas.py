"""CREATE TABLE AS SELECT that is there completely or not at all (FLIP-305).

A hook hears how it went. The table becomes visible with its data in one commit; when the query
fails or is cancelled there is no table. Formats that cannot promise this are refused with the
reason.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError
from pyspark import InheritableThread
from pyspark.sql import DataFrame, SparkSession

from strandline_spark.jvm.class_names import STAGING_CATALOG

if TYPE_CHECKING:
    from strandline_spark.model.flip314 import JobStatusHook

_CANCELLED = (
    "SPARK_JOB_CANCELLED",
    "cancelled because",
    "cancelled part of",
    "InterruptedException",
)
_PAUSE = 0.2  # seconds between two attempts to cancel


class NotAtomicError(Exception):
    """The catalog makes a table first and fills it after; the message names both."""


def create_table_as(
    spark: SparkSession,
    table: str,
    query: str | DataFrame,
    hook: JobStatusHook | None = None,
    *,
    using: str | None = None,
    properties: dict[str, str] | None = None,
) -> None:
    """Make a table of a query's result in one commit.

    Args:
        spark: The session.
        table: The new table's name.
        query: A SELECT, or a DataFrame.
        hook: on_created is called before anything runs; then exactly one of on_finished, on_failed
            and on_canceled. What a hook raises goes to the caller, but does not undo a table that
            is committed.
        using: The format; the catalog's own unless given.
        properties: Of the table.

    Raises:
        NotAtomicError: the table's catalog cannot do it in one commit; the hook is not called.
        PySparkException: as Spark raises it for the query or a table that exists already; the hook
            was called.
        KeyboardInterrupt: after Ctrl-C, once the statement has ended. on_canceled was called;
            on_finished where the commit came first.
    """
    _check_atomic(spark, table)
    job = _Job(spark, hook)
    job.run(lambda: _create(spark, table, query, using, properties or {}))


def _create(
    spark: SparkSession,
    table: str,
    query: str | DataFrame,
    using: str | None,
    properties: dict[str, str],
) -> None:
    rows = spark.sql(query) if isinstance(query, str) else query
    writer: Any = rows.writeTo(table)
    if using is not None:
        writer = writer.using(using)
    for key, value in properties.items():
        writer = writer.tableProperty(key, value)
    writer.create()


def _check_atomic(spark: SparkSession, table: str) -> None:
    jvm: Any = spark._jvm
    parts = spark._jsparkSession.sessionState().sqlParser().parseMultipartIdentifier(table)
    first = parts.apply(0) if parts.size() > 1 else None
    manager = spark._jsparkSession.sessionState().catalogManager()
    named = first is not None and manager.isCatalogRegistered(first)
    catalog = manager.catalog(first) if named else manager.currentCatalog()
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    if not jvm.java.lang.Class.forName(STAGING_CATALOG, True, loader).isInstance(catalog):
        raise NotAtomicError(
            f"{table}: catalog {catalog.name()} makes a table first and fills it after"
        )


class _Job:
    """One statement with a tag, on a thread of its own, so that Ctrl-C ends it in the JVM too.

    On the caller's thread Ctrl-C could cancel nothing: Py4J waits for the statement's answer on
    that thread's connection.
    """

    def __init__(self, spark: SparkSession, hook: JobStatusHook | None) -> None:
        self._context = spark.sparkContext
        self._hook = hook
        self.id = str(uuid.uuid4())
        self._tag = f"strandline-{self.id}"
        self._done = False
        self._error: BaseException | None = None

    def run(self, statement: Callable[[], None]) -> None:
        """Run it and tell the hook how it ended.

        An interrupt goes to the caller once that is certain.
        """
        if self._hook is not None:
            self._hook.on_created(self.id)
        worker = InheritableThread(target=self._work, args=(statement,), name=self._tag)
        interrupt: KeyboardInterrupt | None = None
        try:
            worker.start()
            worker.join()
        except KeyboardInterrupt as error:
            interrupt = error
            self._cancel(worker)
        self._tell(interrupt)
        if raised := interrupt or self._error:
            raise raised

    def _work(self, statement: Callable[[], None]) -> None:
        try:
            self._context.addJobTag(self._tag)
            statement()
            self._done = True
        except BaseException as error:
            self._error = error

    def _cancel(self, worker: InheritableThread) -> None:
        """Cancel its Spark jobs until it has ended.

        Jobs that it starts after an interrupt are cancelled, too.
        """
        while worker.is_alive():
            with suppress(Py4JError, KeyboardInterrupt):
                self._context.cancelJobsWithTag(self._tag)
                worker.join(_PAUSE)

    def _tell(self, interrupt: KeyboardInterrupt | None) -> None:
        """Report a committed table as finished, whatever came then."""
        if self._hook is None:
            return
        if self._done:
            self._hook.on_finished(self.id)
        elif interrupt is not None or any(sign in str(self._error) for sign in _CANCELLED):
            self._hook.on_canceled(self.id)
        else:
            self._hook.on_failed(self.id, f"{type(self._error).__name__}: {self._error}")
