"""PySpark's methods as they are without a look at the conf."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame, SparkSession

PLAIN: dict[tuple[type, str], Callable[..., Any]] = {}
"""The methods that `conf.obey` replaced, by class and name."""


def plain_sql(spark: SparkSession, query: str, args: Any = None) -> DataFrame:
    """Run `spark.sql` without a look at the conf."""
    run = PLAIN.get((SparkSession, "sql"), SparkSession.sql)
    frame: DataFrame = run(spark, query, args) if args is not None else run(spark, query)
    return frame
