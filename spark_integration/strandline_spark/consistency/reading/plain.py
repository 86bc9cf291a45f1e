"""`SparkSession.sql` as it is without a look at the conf."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame, SparkSession

PLAIN: dict[type, Callable[..., DataFrame]] = {}  # the methods that `conf.obey` replaced


def plain_sql(spark: SparkSession, query: str, args: Any = None) -> DataFrame:
    """`spark.sql` without a look at the conf."""
    run = PLAIN.get(SparkSession, SparkSession.sql)
    return run(spark, query, args) if args is not None else run(spark, query)
