"""Assertions that authors of jobs make about their own statements."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from strandline_spark.conf_keys import COMPLETES


@contextmanager
def completes(spark: Any) -> Iterator[None]:
    """Assert that the tables written inside the block show the state of their inputs afterwards.

    An append or a MERGE then counts as complete, as a replacement of the whole table does.
    """
    before = spark.conf.get(COMPLETES, None)
    spark.conf.set(COMPLETES, "true")
    try:
        yield
    finally:
        if before is None:
            spark.conf.unset(COMPLETES)
        else:
            spark.conf.set(COMPLETES, before)
