"""DataFrame writes that Spark rejects in analysis, for which it fires no event.

A writer's method raises as before; only then is its failure noted, on the same thread and without
waiting for anything. Writes that reach an execution are skipped: Spark reports those itself.
"""

from __future__ import annotations

import inspect
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import wraps
from itertools import count
from typing import Any
from weakref import WeakSet

from strandline_spark.conf import JOB_NAME
from strandline_spark.extraction.refused_writes import RefusedWrite
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
_EXECUTED, _STREAMED = ".SQLExecution$", ".execution.streaming."
_KEPT = 100  # refused writes that wait for an emitter
_numbers = count(1)
_watching: WeakSet[RefusedWrites] = WeakSet()


class RefusedWrites:
    """The refused writes that one emitter has not taken yet."""

    def __init__(self) -> None:
        self._waiting: deque[RefusedWrite] = deque(maxlen=_KEPT)
        _watch_writers()
        _watching.add(self)

    def add(self, write: RefusedWrite) -> None:
        """Keep a write; the oldest makes room for it."""
        self._waiting.append(write)

    def take(self) -> RefusedWrite | None:
        """Return the oldest write, which is kept no longer; None if there is none."""
        return self._waiting.popleft() if self._waiting else None

    def leave(self) -> None:
        """Stop collecting writes."""
        _watching.discard(self)


def _watch_writers() -> None:
    """Have the writers' methods note what is refused. Repeated calls change nothing."""
    from pyspark.sql import readwriter

    owners: list[Any] = [readwriter.DataFrameWriter, readwriter.DataFrameWriterV2]
    with suppress(ImportError):  # before Spark 4
        from pyspark.sql.merge import MergeIntoWriter

        owners.append(MergeIntoWriter)
    for owner in owners:
        for name in _METHODS[owner.__name__]:
            plain = getattr(owner, name, None)
            if plain is not None and not hasattr(plain, "_strandline_noting"):
                setattr(owner, name, _noting(plain))


def _noting(plain: Callable[..., Any]) -> Callable[..., Any]:
    from pyspark.errors import AnalysisException

    signature = inspect.signature(plain)

    @wraps(plain)
    def write(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return plain(self, *args, **kwargs)
        except AnalysisException as error:
            if _watching:
                given = signature.bind(self, *args, **kwargs).arguments
                _note(self, plain.__name__, given, error)
            raise

    write._strandline_noting = True  # type: ignore[attr-defined]
    return write


def _note(writer: Any, method: str, given: Mapping[str, Any], error: Any) -> None:
    """Note a write that failed in analysis; its own thread goes on with the error."""
    try:
        at, trace = time.time() * 1000, str(error._stackTrace)
        statement, _, caller = trace.partition("at py4j.")
        if _EXECUTED in statement or _STREAMED in caller:
            return
        session = writer._spark._jsparkSession
        catalog, jwriter = session.catalog(), getattr(writer, "_jwrite", None)
        refused = RefusedWrite(
            number=next(_numbers),
            writer=jwriter if jwriter is not None else writer._jwriter,
            session=session,
            method=method,
            target=next((given[name] for name in _TARGETS if name in given), None),
            current=(str(catalog.currentCatalog()), str(catalog.currentDatabase())),
            at=at,
            error=error._origin,
            job_name=writer._spark.conf.get(JOB_NAME, None),
        )
        for watching in tuple(_watching):
            watching.add(refused)
    except Exception as fault:
        swallowed("a DataFrame write that failed in analysis is not reported", fault)
