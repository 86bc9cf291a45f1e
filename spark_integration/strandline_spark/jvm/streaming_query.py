"""A running streaming query as the JVM knows it.

Its trigger, its checkpoint, and the offsets of its micro-batches.

Everything is asked of Spark's own StreamExecution, so that it works for a checkpoint on any file
system. What cannot be known is None or empty, never an error.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import Any

from py4j.java_gateway import JavaClass

from strandline_spark.jvm.class_names import HADOOP_PATH, IO_UTILS
from strandline_spark.swallowed import swallowed

_IDENTITY = re.compile(
    r"@[0-9a-f]+$"
)  # of a source without a name of its own: another one in each run
_ENDS = ("AvailableNowTrigger", "OneTimeTrigger")


class StreamHandle:
    """Asks a StreamExecution. Taken while the query runs, because Spark forgets it when it ends."""

    def __init__(self, execution: Any) -> None:
        self._execution = execution
        self.ends_by_itself = False
        self.name: str | None = None
        self.checkpoint: str | None = None
        self._names: list[str] = []
        self._begun: list[str | None] | None = None
        self._newest: tuple[int, list[str | None]] = (
            -1,
            [],
        )  # the offsets at which a micro-batch ended
        with contextlib.suppress(Exception):
            self.ends_by_itself = (
                execution.trigger().getClass().getSimpleName().rstrip("$") in _ENDS
            )
        with contextlib.suppress(Exception):
            self.name = execution.name()
        with contextlib.suppress(Exception):
            self.checkpoint = str(execution.resolvedCheckpointRoot())

    @property
    def found(self) -> bool:
        """True if the query was there to be asked."""
        return self._execution is not None

    @classmethod
    def find(cls, jvm: Any, session: Any, query_id: str) -> StreamHandle:
        """The query of that id, in whichever session it was started.

        They share the list of active queries.
        """
        execution = None
        with contextlib.suppress(Exception):
            active = session.sharedState().activeStreamingQueries()
            execution = active.get(jvm.java.util.UUID.fromString(query_id))
        return cls(execution)

    def as_query_execution(self) -> Any:
        """Something whose `analyzed()` is the query's own logical plan, for a reader of plans."""
        return _Planned(self._execution)

    def setting(self, key: str) -> str | None:
        """Return a setting of the query's session; None if it is not set or the query is gone."""
        try:
            value = self._execution.sparkSession().conf().getOption(key)
            return str(value.get()) if value.isDefined() else None
        except Exception as error:  # the query is gone
            self._note(f"a streaming query follows the application's {key}", error)
            return None

    def last_committed(self) -> int | None:
        """The newest micro-batch that the query's commit log holds."""
        try:
            batch = self._execution.commitLog().getLatestBatchId()
            return int(batch.get()) if batch.isDefined() else None
        except Exception as error:  # the query is gone
            self._note("the last micro-batch of a streaming query is not known", error)
            return None

    def first_own(self) -> int | None:
        """The oldest micro-batch that this driver is known to have run.

        Ask after `last_committed`: a micro-batch is in the log a moment before it is among the
        query's recent ones.
        """
        try:
            recent = self._execution.recentProgress()
            return int(recent[0].batchId()) if len(recent) else None
        except Exception as error:  # the query is gone
            self._note("which micro-batches this driver ran is not known", error)
            return None

    def offsets(self, batch_id: int) -> list[tuple[str, str | None, str | None]]:
        """Return (source, end offset, start offset) of each source in a micro-batch.

        From the query's offset log.
        """
        try:
            starts = self._ends(batch_id - 1) if batch_id else []
            ends = self._ends(batch_id)
            self._names = self._names or _names(self._execution)
        except Exception as error:  # the query is gone, or its log is
            self._note("a micro-batch is reported without offsets", error)
            return []
        starts = starts + [None] * (len(ends) - len(starts))
        names = self._names + ["source"] * (len(ends) - len(self._names))
        return list(zip(names, ends, starts, strict=False))

    def initial_offsets(self, sources: int) -> list[str | None]:
        """With what each source began, as Iceberg's write it into the checkpoint.

        Of queries that end by themselves only.

        Their restart reads the table's history from there on, wherever they are, so it has to stay
        (https://github.com/apache/iceberg/issues/18000).
        """
        if self._begun is None:
            self._begun = [
                self._initial(number) if self.ends_by_itself else None for number in range(sources)
            ]
        return self._begun + [None] * (sources - len(self._begun))

    def _initial(self, source: int) -> str | None:
        try:
            client = self._execution._gateway_client
            path = JavaClass(HADOOP_PATH, client)(f"{self.checkpoint}/sources/{source}/offsets/0")
            system = path.getFileSystem(
                self._execution.sparkSession().sessionState().newHadoopConf()
            )
            if not system.exists(path):  # a source that writes none
                return None
            stream = system.open(path)
            try:
                text = JavaClass(IO_UTILS, client).toString(stream, "UTF-8")
            finally:
                stream.close()
            return str(text).strip().rpartition("\n")[2]
        except Exception as error:
            self._note("where a streaming query began is not known", error)
            return None

    def _note(self, missing: str, error: Exception) -> None:
        """Of a query that was gone before it could be asked nothing is expected."""
        if self.found:
            swallowed(missing, error)

    def _ends(self, batch_id: int) -> list[str | None]:
        """The end offset of each source in a micro-batch.

        Where one ended the next begins: the newest are remembered.
        """
        if (
            self._newest[0] != batch_id or not self._newest[1]
        ):  # it may not have been in the log yet
            self._newest = batch_id, list(_offsets(self._execution.offsetLog(), batch_id))
        return self._newest[1]


def running_queries(session: Any) -> list[tuple[str, str, str | None]]:
    """(id, id of the run, name) of each query that runs already.

    They were begun before anybody watched.
    """
    queries: list[tuple[str, str, str | None]] = []
    if session is None:
        return queries
    try:
        for query in session.sharedState().activeStreamingQueries().values():
            queries.append(
                (str(query.id().toString()), str(query.runId().toString()), query.name())
            )
    except Exception as error:
        swallowed("queries that run already are reported with their next micro-batch", error)
    return queries


class _Planned:
    """Stands for a QueryExecution of a query that has run no micro-batch yet."""

    def __init__(self, execution: Any) -> None:
        self._execution = execution

    def analyzed(self) -> Any:
        return self._execution.logicalPlan()

    def sparkSession(self) -> Any:  # noqa: N802 - Spark's name
        return self._execution.sparkSession()


def _offsets(log: Any, batch_id: int) -> Iterator[str | None]:
    found = log.get(batch_id)
    if not found.isDefined():
        return
    offsets = found.get().offsets().iterator()
    while offsets.hasNext():
        offset = offsets.next()
        yield str(offset.get().json()) if offset.isDefined() else None


def _names(execution: Any) -> list[str]:
    sources = execution.sources().iterator()
    names = []
    while sources.hasNext():
        names.append(_IDENTITY.sub("", str(sources.next().toString())))
    return names
