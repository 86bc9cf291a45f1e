"""`spark.strandline.catalog.NAME.consistency=strong`.

Ordinary `spark.sql` reads the tables of that catalog so.

Activation calls `obey` where the conf asks for this at the start. It makes `SparkSession.sql` look
at the conf at each call, so that it can be changed while a session runs; a statement pays for being
parsed and analysed once more. `spark.strandline.consistency` holds for the catalogs without an own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.sql_formatter import SQLStringFormatter

from strandline_spark.consistency.reading.analysed_reads import reads_of
from strandline_spark.consistency.reading.plain import PLAIN, plain_sql
from strandline_spark.consistency.reading.sql_text import Text, text_of
from strandline_spark.consistency.reading.tables import read_statement
from strandline_spark.jvm.unlogged import unlogged

_ALL = "spark.strandline.consistency"
_PREFIX, _SUFFIX = "spark.strandline.catalog.", ".consistency"
_LEVELS = ("strong", "weak")


def levels_of(conf: Callable[[str], str | None], catalogs: Iterable[str]) -> dict[str, str]:
    """The consistency of each of the catalogs that has one.

    Raises ValueError for a word that is none.

    >>> levels_of({"spark.strandline.catalog.lake.consistency": "strong"}.get, ["lake", "other"])
    {'lake': 'strong'}
    """
    found = {}
    for catalog in catalogs:
        key = f"{_PREFIX}{catalog}{_SUFFIX}"
        level = conf(key) or conf(_ALL) or "latest"
        if level not in (*_LEVELS, "latest"):
            raise ValueError(f"{key}: {level!r} is none of latest, {', '.join(_LEVELS)}")
        if level != "latest":
            found[catalog] = level
    return found


def obey() -> None:
    """Let `spark.sql` follow the conf in this process. Called twice, it does so once."""
    if SparkSession in PLAIN:
        return
    PLAIN[SparkSession] = SparkSession.sql

    def sql(self: SparkSession, sqlQuery: str, args: Any = None, **kwargs: Any) -> DataFrame:  # noqa: N803
        if not kwargs:
            return _obedient(self, sqlQuery, args)
        formatter = SQLStringFormatter(
            self
        )  # makes temporary views of DataFrames among the arguments
        try:
            return _obedient(self, formatter.format(sqlQuery, **kwargs), args)
        finally:
            formatter.clear()

    sql.__doc__ = SparkSession.sql.__doc__
    SparkSession.sql = sql


def disobey() -> None:
    """Give `spark.sql` back as it was."""
    plain = PLAIN.pop(SparkSession, None)
    if plain is not None:
        SparkSession.sql = plain


def _obedient(spark: SparkSession, query: str, args: Any) -> DataFrame:
    try:
        with unlogged():
            text = text_of(spark, query)
            levels = _levels(spark, text, args) if text.may_read else {}
    except PySparkException:  # a fault in the statement: it will say so itself
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
    """The consistency of each catalog of which the statement reads, at other than a version of its own."""
    if "EXECUTE IMMEDIATE" in text.hides or (text.kind == "script" and text.hides):
        catalogs = _catalogs_in_conf(spark)
    elif text.kind == "script":
        catalogs = {
            catalog for table in text.tables for catalog in _catalogs_behind(spark, table.name)
        }
    else:
        catalogs = {read.catalog for read in reads_of(spark, text.sql, args) if not read.at_version}
    return levels_of(lambda key: spark.conf.get(key, None), sorted(catalogs))


def _catalogs_behind(spark: SparkSession, name: str) -> set[str]:
    try:
        return {read.catalog for read in reads_of(spark, f"TABLE {name}")}
    except PySparkException:  # the script makes it first
        return set()


def _catalogs_in_conf(spark: SparkSession) -> set[str]:
    keys = str(
        spark._jsparkSession.sessionState().conf().getAllConfs().keys().mkString("\n")
    ).split("\n")
    named = {
        key[len(_PREFIX) : -len(_SUFFIX)]
        for key in keys
        if key.startswith(_PREFIX) and key.endswith(_SUFFIX)
    }
    return named | {spark.catalog.currentCatalog()}
