"""CREATE TABLE AS SELECT that is there completely or not at all, with a hook that hears how it went (FLIP-305).

The table becomes visible with its data in one commit; when the query fails or is cancelled there is no table. Formats
that cannot promise this are refused with the reason.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from strandline_spark.jvm.class_names import STAGING_CATALOG

if TYPE_CHECKING:
    from strandline_spark.model.flip314 import JobStatusHook

_CANCELLED = ("SPARK_JOB_CANCELLED", "cancelled because", "cancelled part of", "InterruptedException")


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
        hook: on_created is called before anything runs; then exactly one of on_finished, on_failed and on_canceled.
            What a hook raises goes to the caller, but does not undo a table that is committed.
        using: The format; the catalog's own unless given.
        properties: Of the table.

    Raises:
        NotAtomicError: the table's catalog cannot do it in one commit; the hook is not called.
        PySparkException: as Spark raises it for the query or a table that exists already; the hook was called.
    """
    _check_atomic(spark, table)
    job = _Job(spark, hook)
    job.run(lambda: _create(spark, table, query, using, properties or {}))


def _create(
    spark: SparkSession, table: str, query: str | DataFrame, using: str | None, properties: dict[str, str]
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
        raise NotAtomicError(f"{table}: catalog {catalog.name()} makes a table first and fills it after")


class _Job:
    """One statement with a tag, so that Ctrl-C ends it in the JVM too."""

    def __init__(self, spark: SparkSession, hook: JobStatusHook | None) -> None:
        self._context = spark.sparkContext
        self._hook = hook
        self.id = str(uuid.uuid4())

    def run(self, statement: Callable[[], None]) -> None:
        """Run it and tell the hook."""
        if self._hook is not None:
            self._hook.on_created(self.id)
        tag = f"strandline-{self.id}"
        self._context.addJobTag(tag)
        try:
            statement()
        except KeyboardInterrupt:
            self._context.cancelJobsWithTag(tag)
            self._tell_canceled()
            raise
        except (PySparkException, Py4JError) as error:
            self._tell_error(error)
            raise
        except BaseException as error:
            self._tell_failed(error)
            raise
        finally:
            self._context.removeJobTag(tag)
        if self._hook is not None:
            self._hook.on_finished(self.id)

    def _tell_error(self, error: Exception) -> None:
        if any(sign in str(error) for sign in _CANCELLED):
            self._tell_canceled()
        else:
            self._tell_failed(error)

    def _tell_failed(self, error: BaseException) -> None:
        if self._hook is not None:
            self._hook.on_failed(self.id, f"{type(error).__name__}: {error}")

    def _tell_canceled(self) -> None:
        if self._hook is not None:
            self._hook.on_canceled(self.id)
