"""An Iceberg table's main history, with the barriers that its snapshots carry.

And the table as it was at one of them. Nothing here runs SQL: the metadata is asked through
Iceberg's own API, so that looking for a barrier every 50 ms leaves no execution and no lineage.
What was seen of a snapshot is kept; a refresh asks only for new ones. A rollback changes what the
main history is and needs nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession

from strandline_spark.jvm.iceberg_snapshot import (
    BARRIER,
    GENERATION,
    GROUP,
    INPUTS,
    barrier_of,
    batch_of,
)
from strandline_spark.model.names import qualified

_NO_DATA_LOST = {"append", "replace"}  # what a read of changes may step over: replace is compaction


class TableAtError(Exception):
    """A table cannot be read at a barrier; the message names the table and the reason."""


class UnsupportedTableError(TableAtError):
    """Its format keeps no snapshots that Strandline can align."""


class MissingTableError(TableAtError):
    """There is no such table."""


class ExpiredSnapshotError(TableAtError):
    """The snapshot of a barrier has been expired."""


class NotOnlyAppendsError(TableAtError):
    """Between two barriers rows were changed or deleted: there are no plain changes to read."""


@dataclass(frozen=True, slots=True)
class Point:
    """One snapshot of a table's history, and what its summary says of the barrier."""

    snapshot_id: str
    parent_id: str | None
    operation: str
    committed_ms: int
    barrier: int | None = None
    stated: bool = (
        False  # the barrier is a property of its own, not derived from a micro-batch's number
    )
    group: str | None = None
    inputs: Mapping[str, str] = field(default_factory=dict)
    batch: tuple[str, int] | None = None


def point_of(snapshot: Mapping[str, Any]) -> Point:
    """A snapshot as Iceberg's SnapshotParser writes it.

    >>> summary = {"operation": "append", "strandline.barrier": "4"}
    >>> point = point_of({"snapshot-id": 9, "timestamp-ms": 0, "summary": summary})
    >>> point.snapshot_id, point.operation, point.barrier, point.stated
    ('9', 'append', 4, True)
    """
    summary = dict(snapshot.get("summary") or {})
    parent = snapshot.get("parent-snapshot-id")
    return Point(
        str(snapshot["snapshot-id"]),
        str(parent) if parent is not None and int(parent) >= 0 else None,
        summary.get("operation", ""),
        int(snapshot["timestamp-ms"]),
        barrier_of(summary),
        BARRIER in summary,
        summary.get(GROUP),
        json.loads(summary.get(INPUTS, "{}")),
        batch_of(summary),
    )


def barriers_of(newest_first: Iterable[Point]) -> dict[int, str]:
    """Each barrier of a history and the last snapshot that carries it, in the barriers' order."""
    barriers: dict[int, str] = {}
    for point in newest_first:
        if point.barrier is not None:
            barriers.setdefault(point.barrier, point.snapshot_id)
    return dict(sorted(barriers.items()))


def check_appends(
    table: str, after: str, until: str, point_called: Callable[[str], Point | None]
) -> None:
    """Raises NotOnlyAppendsError unless rows only came between two snapshots of a table."""
    wanted: str | None = until
    while wanted is not None and wanted != after:
        point = point_called(wanted)
        if point is None:
            break
        if point.operation not in _NO_DATA_LOST:
            raise NotOnlyAppendsError(
                f"{table}: snapshot {wanted} ({point.operation}) changed or deleted rows: "
                "read the table's state, not its changes"
            )
        wanted = point.parent_id
    if wanted != after:
        raise NotOnlyAppendsError(
            f"{table}: snapshot {after} is not an ancestor of {until}: "
            "was the table rolled back, or expired?"
        )


class TableHistory:
    """The main history of one table, seen through one session."""

    def __init__(self, session: SparkSession, name: str) -> None:
        """Load the table. Raises MissingTableError, or UnsupportedTableError for another format."""
        self._session = session
        self.name = full_name(session, name)
        self._table: Any = _load(session, self.name)
        self._parser = session._jvm.org.apache.iceberg.SnapshotParser
        self._points: dict[str, Point] = {}
        self._newest: str | None = None
        self._seen: str | None = None  # the metadata file that all this was read from
        self._done: dict[int, str] = {}
        self.refresh()

    def refresh(self) -> None:
        """See the table as the catalog has it now."""
        try:
            self._table.refresh()
        except (Py4JJavaError, PySparkException):  # dropped, perhaps made anew
            self._table, self._points = _load(self._session, self.name), {}
        metadata = self._metadata()
        if metadata is None or metadata != self._seen:
            current = self._table.currentSnapshot()
            self._newest = str(current.snapshotId()) if current is not None else None
            self._forget_expired()
            self._done = self._completed()
            self._seen = metadata

    def _metadata(self) -> str | None:
        """The table's metadata file.

        Another one after each change, the expiry of snapshots included.
        """
        try:
            return str(self._table.operations().current().metadataFileLocation())
        except Py4JError:
            return None

    def _forget_expired(self) -> None:
        """A snapshot that is gone must not be answered from memory.

        An aligned job would aim at it.
        """
        ancestry = self._session._jvm.org.apache.iceberg.util.SnapshotUtil.currentAncestorIds(
            self._table
        )
        there = {str(snapshot) for snapshot in json.loads(str(ancestry.toString()))}
        self._points = {key: point for key, point in self._points.items() if key in there}

    def refresh_properties(self) -> None:
        """See the table's properties as they are now; its history stays as it was looked at."""
        self._table.refresh()

    def _completed(self) -> dict[int, str]:
        return barriers_of(self.main())

    def main(self) -> Iterator[Point]:
        """The snapshots from the newest back to the oldest that there is."""
        wanted = self._newest
        while wanted is not None:
            point = self.point(wanted)
            if point is None:
                return
            yield point
            wanted = point.parent_id

    def point(self, snapshot_id: str) -> Point | None:
        """A snapshot of the table, or None when it has none of that id (any more)."""
        if snapshot_id not in self._points:
            snapshot = self._table.snapshot(int(snapshot_id))
            if snapshot is None:
                return None
            self._points[snapshot_id] = point_of(json.loads(self._parser.toJson(snapshot)))
        return self._points[snapshot_id]

    @property
    def generation(self) -> int:
        """The least generation of the commits of the table's job.

        A rollback raises it. 1 where nobody rolled it back.
        """
        stated = self._table.properties().get(GENERATION)
        return int(stated) if stated is not None and str(stated).isdigit() else 1

    @property
    def location(self) -> str:
        """The location of the table."""
        return str(self._table.location())

    @property
    def newest(self) -> Point | None:
        """The current snapshot."""
        return self.point(self._newest) if self._newest is not None else None

    @property
    def done(self) -> Mapping[int, str]:
        """Return each barrier that the table completed, and the last snapshot that carries it.

        In the barriers' order.
        """
        return self._done

    @property
    def position(self) -> int | None:
        """The greatest barrier that the table completed."""
        return next(reversed(self._done), None)

    def last_carrier(self) -> Point | None:
        """The snapshot of the position."""
        position = self.position
        return self.point(self._done[position]) if position is not None else None

    def at(self, snapshot_id: str) -> DataFrame:
        """The table's rows at a snapshot. Raises ExpiredSnapshotError when that is gone."""
        self._check_there(snapshot_id)
        return self._session.read.option("versionAsOf", snapshot_id).table(self.name)

    def now(self) -> DataFrame:
        """The table's rows at its newest snapshot."""
        return self._session.read.table(self.name)

    def between(self, after: str, until: str) -> DataFrame:
        """The rows that were added after one snapshot, up to another.

        Raises where rows did not only come.
        """
        if after == until:
            return self.at(until).limit(0)
        self._check_there(after)
        self._check_there(until)
        check_appends(self.name, after, until, self.point)
        reader = self._session.read.option("start-snapshot-id", after).option(
            "end-snapshot-id", until
        )
        return reader.table(self.name)

    def _check_there(self, snapshot_id: str) -> None:
        if self._table.snapshot(int(snapshot_id)) is None:
            raise ExpiredSnapshotError(
                f"{self.name}: snapshot {snapshot_id} is not in the table any more"
            )


def full_name(session: SparkSession, name: str) -> str:
    """catalog.database.table of a table's name as a user gives it, a part with a dot in backquotes.

    Raises MissingTableError for no such catalog.
    """
    try:
        found = session._jvm.org.apache.iceberg.spark.Spark3Util.catalogAndIdentifier(
            session._jsparkSession, name
        )
        identifier = found.identifier()
        return qualified(found.catalog().name(), *identifier.namespace(), identifier.name())
    except TypeError as error:
        raise UnsupportedTableError(_WITHOUT_ICEBERG.format(name)) from error
    except (Py4JJavaError, PySparkException) as error:
        raise MissingTableError(f"{name}: {_first_line(error)}") from error


_WITHOUT_ICEBERG = (
    "{}: only Iceberg tables can be aligned, and Iceberg's runtime is not on Spark's class path"
)


def _load(session: SparkSession, name: str) -> Any:
    try:
        return session._jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(
            session._jsparkSession, name
        )
    except AnalysisException as error:
        raise MissingTableError(f"{name}: {_first_line(error)}") from error
    except (Py4JError, PySparkException) as error:
        raise UnsupportedTableError(
            f"{name}: only Iceberg tables can be aligned: {_first_line(error)}"
        ) from error


def _first_line(error: Exception) -> str:
    java = getattr(error, "java_exception", None)
    return str(java.getMessage() if java is not None else error).strip().splitlines()[0]
