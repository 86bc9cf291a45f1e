"""`spark.strandline.catalog.NAME.consistency=strong`: ordinary `spark.sql` reads the tables of that catalog so.

Activation calls `obey` where the conf asks for this at the start. It makes `SparkSession.sql` look at the conf at each
call, so that it can be changed while a session runs; a statement pays for one parse. `spark.strandline.consistency`
holds for the catalogs without an own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from strandline_spark.versioned_text import text_of

_ALL = "spark.strandline.consistency"
_PREFIX, _SUFFIX = "spark.strandline.catalog.", ".consistency"
_LEVELS = ("strong", "weak")

_plain: dict[type, Callable[..., DataFrame]] = {}  # the methods that `obey` replaced


def levels_of(conf: Callable[[str], str | None], catalogs: Iterable[str]) -> dict[str, str]:
    """The consistency of each of the catalogs that has one. Raises ValueError for a word that is none.

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
    if SparkSession in _plain:
        return
    _plain[SparkSession] = SparkSession.sql

    def sql(self: SparkSession, sqlQuery: str, args: Any = None, **kwargs: Any) -> DataFrame:  # noqa: N803
        levels = {} if kwargs else _levels(self, sqlQuery)
        if not levels:
            return plain_sql(self, sqlQuery, args, **kwargs)
        return _consistent(self, sqlQuery, args, levels)

    sql.__doc__ = SparkSession.sql.__doc__
    SparkSession.sql = sql


def disobey() -> None:
    """Give `spark.sql` back as it was."""
    plain = _plain.pop(SparkSession, None)
    if plain is not None:
        SparkSession.sql = plain


def plain_sql(spark: SparkSession, query: str, args: Any = None, **kwargs: Any) -> DataFrame:
    """`spark.sql` without a look at the conf."""
    run = _plain.get(SparkSession, SparkSession.sql)
    return run(spark, query, args, **kwargs) if args is not None else run(spark, query, **kwargs)


def _levels(spark: SparkSession, query: str) -> dict[str, str]:
    try:
        tables = text_of(spark, query).tables
    except PySparkException:  # a fault in the text: the statement itself will tell
        return {}
    catalogs = {one.parts[0] if len(one.parts) > 2 else spark.catalog.currentCatalog() for one in tables}
    return levels_of(lambda key: spark.conf.get(key, None), sorted(catalogs))


def _consistent(spark: SparkSession, query: str, args: Any, levels: Mapping[str, str]) -> DataFrame:
    from strandline_spark.reading import consistent_sql

    if len(set(levels.values())) > 1:
        told = ", ".join(f"{catalog}: {level}" for catalog, level in levels.items())
        raise ValueError(f"one query reads catalogs with two kinds of consistency ({told})")
    return consistent_sql(spark, query, next(iter(levels.values())), args=args, catalogs=list(levels))
