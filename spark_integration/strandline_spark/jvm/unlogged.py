"""PySpark logs each failed analysis, once for every time that one is asked for.

Asked on our own account, it is not logged.

The user's own statement says what is wrong with it. A filter on PySpark's two loggers drops what
comes from within `unlogged`, in that thread only; their levels and handlers stay the user's. Spark
3.5 logs nothing of the kind.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache

_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")


class _Here(threading.local):
    depth = 0


_here = _Here()


@contextmanager
def unlogged() -> Iterator[None]:
    """Within it, PySpark logs no failed analysis of this thread."""
    _watch()
    _here.depth += 1
    try:
        yield
    finally:
        _here.depth -= 1


def _passes(record: logging.LogRecord) -> bool:
    return _here.depth == 0


@lru_cache(maxsize=1)
def _watch() -> None:
    with suppress(ImportError):
        from pyspark.logger import PySparkLogger

        for name in _LOGGERS:
            PySparkLogger.getLogger(name).addFilter(_passes)
