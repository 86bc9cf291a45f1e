"""`spark.strandline.catalog.NAME.consistency=strong`: ordinary `spark.sql` reads at one version.

`obey` makes `SparkSession.sql` look at the conf at each call, so the conf may be set and changed
while a session runs. A statement is parsed and analysed once more where a catalog has a
consistency. `spark.strandline.consistency` holds for the catalogs without one of their own.

Writers of DataFrames are watched too: rows that `spark.sql` read at a version are not written back
to the table that they came from.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from functools import wraps
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.readwriter import DataFrameWriter, DataFrameWriterV2
from pyspark.sql.sql_formatter import SQLStringFormatter

from strandline_spark.conf_keys import CATALOG_CONSISTENCY, CONSISTENCY
from strandline_spark.consistency.reading.plain import PLAIN, plain_sql

if TYPE_CHECKING:
    from strandline_spark.consistency.reading.sql_text import Text

# What reads plans is imported by the first statement that is read at a version: a session that sets
# no consistency does not wait for it.

_PREFIX, _, _SUFFIX = CATALOG_CONSISTENCY.partition("NAME")
_LEVELS = ("strong", "weak")
_TABLE_PARAMETERS = ("table", "tableName", "name")


def levels_of(conf: Callable[[str], str | None], catalogs: Iterable[str]) -> dict[str, str]:
    """Map each catalog that has a consistency to it.

    Raises ValueError for an unknown word.

    >>> levels_of({"spark.strandline.catalog.lake.consistency": "strong"}.get, ["lake", "other"])
    {'lake': 'strong'}
    """
    levels = {}
    for catalog in catalogs:
        key = f"{_PREFIX}{catalog}{_SUFFIX}"
        level = conf(key) or conf(CONSISTENCY) or CONSISTENCY.default
        if level not in (*_LEVELS, CONSISTENCY.default):
            raise ValueError(f"{key}: {level!r} is none of latest, {', '.join(_LEVELS)}")
        if level != CONSISTENCY.default:
            levels[catalog] = level
    return levels


def obey() -> None:
    """Let `spark.sql` and the writers of DataFrames follow the conf.

    Repeated calls change nothing.
    """
    if PLAIN:
        return
    _replace(SparkSession, "sql", _sql)
    _replace(DataFrameWriter, "insertInto", _watched(DataFrameWriter.insertInto))
    _replace(DataFrameWriter, "saveAsTable", _watched(DataFrameWriter.saveAsTable))
    _replace(DataFrameWriterV2, "__init__", _watched(DataFrameWriterV2.__init__))
    try:
        from pyspark.sql.merge import MergeIntoWriter
    except ImportError:  # before Spark 4
        return
    _replace(MergeIntoWriter, "__init__", _watched(MergeIntoWriter.__init__))


def disobey() -> None:
    """Restore the replaced methods."""
    for (owner, name), method in PLAIN.items():
        setattr(owner, name, method)
    PLAIN.clear()


def _replace(owner: type, name: str, method: Callable[..., Any]) -> None:
    plain = PLAIN[owner, name] = getattr(owner, name)
    setattr(owner, name, wraps(plain)(method))


def _sql(self: SparkSession, sqlQuery: str, args: Any = None, **kwargs: Any) -> DataFrame:  # noqa: N803
    if not kwargs:
        return _read(self, sqlQuery, args)
    formatter = SQLStringFormatter(self)  # makes temporary views of DataFrames among the arguments
    try:
        return _read(self, formatter.format(sqlQuery, **kwargs), args)
    finally:
        formatter.clear()


def _watched(plain: Callable[..., Any]) -> Callable[..., Any]:
    """Return a writer's method that refuses to write a table's older rows back to it."""
    signature = inspect.signature(plain)

    def write(self: Any, *args: Any, **kwargs: Any) -> Any:
        arguments = signature.bind(self, *args, **kwargs).arguments
        frame = arguments["df"] if plain.__name__ == "__init__" else self._df
        table = next(
            arguments[parameter] for parameter in _TABLE_PARAMETERS if parameter in arguments
        )
        if _has_consistency(frame.sparkSession):
            from strandline_spark.consistency.reading.written_back import refuse_old_rows

            refuse_old_rows(frame, table)
        return plain(self, *args, **kwargs)

    return write


def _read(spark: SparkSession, query: str, args: Any) -> DataFrame:
    if not _has_consistency(spark):
        return plain_sql(spark, query, args)
    from strandline_spark.consistency.reading.sql_text import text_of
    from strandline_spark.consistency.reading.tables import read_statement
    from strandline_spark.jvm.unlogged import unlogged

    try:
        with unlogged():
            text = text_of(spark, query)
            levels = _levels(spark, text, args) if text.may_read else {}
    except PySparkException:  # the statement is wrong; Spark says so when it runs
        levels = {}
    if not levels:
        return plain_sql(spark, query, args)
    if len(set(levels.values())) > 1:
        listed = ", ".join(f"{catalog}: {level}" for catalog, level in levels.items())
        raise ValueError(f"one query reads catalogs with two kinds of consistency ({listed})")
    return read_statement(
        spark, text, args, levels.__contains__, consistency=next(iter(levels.values()))
    )


def _levels(spark: SparkSession, text: Text, args: Any) -> dict[str, str]:
    """Map each catalog that the statement reads at its latest to its consistency."""
    from strandline_spark.consistency.reading.analysed_reads import analyse_statement

    if "EXECUTE IMMEDIATE" in text.hides or (text.kind == "script" and text.hides):
        catalogs = _catalogs_in_conf(spark)
    elif text.kind == "script":
        catalogs = {
            catalog for table in text.tables for catalog in _catalogs_behind(spark, table.name)
        }
    else:
        reads = analyse_statement(spark, text.sql, args).reads
        catalogs = {read.catalog for read in reads if not read.at_version}
    return levels_of(lambda key: spark.conf.get(key, None), sorted(catalogs))


def _catalogs_behind(spark: SparkSession, name: str) -> set[str]:
    from strandline_spark.consistency.reading.analysed_reads import analyse_statement

    try:
        return {read.catalog for read in analyse_statement(spark, f"TABLE {name}").reads}
    except PySparkException:  # the script makes it first
        return set()


def _catalogs_in_conf(spark: SparkSession) -> set[str]:
    named = {
        key[len(_PREFIX) : -len(_SUFFIX)]
        for key in _keys_of(spark)
        if key.startswith(_PREFIX) and key.endswith(_SUFFIX)
    }
    return named | {spark.catalog.currentCatalog()}


def _has_consistency(spark: SparkSession) -> bool:
    """Return whether the session's conf names a consistency."""
    return any(key == CONSISTENCY or key.endswith(_SUFFIX) for key in _keys_of(spark))


def _keys_of(spark: SparkSession) -> list[str]:
    conf = spark._jsparkSession.sessionState().conf()
    return str(conf.getAllConfs().keys().mkString("\n")).split("\n")
