"""A Hudi table's timeline: its completed instants, each with what its commit says of itself.

An instant is named by the time at which it was requested, `20261123120544802`, and completed later;
what is read of a stream is counted by completion. Old instants move to an archive and are not read
there.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone

from strandline_spark.jvm.client import JavaObject, Jvm
from strandline_spark.model.statement import Snapshot

_HUDI = "org.apache.hudi."
_COMMON = f"{_HUDI}common.table."
_UTILS = f"{_COMMON}timeline.TimelineUtils"
# in a commit's metadata: micro-batches, by the names of their writers
_BATCHES = "_hudi_streaming_sink_checkpoint"
_ROWS = ("number of inserted rows", "number of updated rows")
LOOK_BACK = 100  # instants among which a statement's or a micro-batch's own is looked for


@dataclass(frozen=True, slots=True)
class Instant:
    """One completed instant; times are those of its table's clock, as Hudi writes them."""

    requested: str
    completed: str
    action: str
    commit: JavaObject = None  # the HoodieCommitMetadata

    @property
    def operation(self) -> str:
        """UPSERT, INSERT_OVERWRITE_TABLE, COMPACT, ..."""
        return str(self.commit.getOperationType().name())


class Timeline:
    """The commits of one table, as they are now."""

    def __init__(self, jvm: Jvm, location: str) -> None:
        self._jvm = jvm
        conf = jvm.static(f"{_HUDI}hadoop.fs.HadoopFSUtils", "getStorageConf")(
            jvm.hadoop_configuration
        )
        builder = jvm.static(f"{_COMMON}HoodieTableMetaClient", "builder")()
        client = builder.setConf(conf).setBasePath(location).build()
        self._commits = client.getActiveTimeline().getCommitsTimeline().filterCompletedInstants()

    def newest_first(self) -> Iterator[Instant]:
        """The newest instants, by the times of their requests."""
        for number in range(LOOK_BACK):
            instant = self._instant(self._commits.nthFromLastInstant(number))
            if instant is None:
                return
            yield instant

    def at(self, requested: str) -> Instant | None:
        """The newest instant that was requested then or before."""
        return self._instant(self._commits.findInstantsBeforeOrEquals(requested).lastInstant())

    def before(self, requested: str) -> Instant | None:
        """The instant before one."""
        return self._instant(self._commits.findInstantsBefore(requested).lastInstant())

    def completed_until(self, completed: str) -> Instant | None:
        """The newest instant that was completed then or before."""
        return next(
            (instant for instant in self.newest_first() if instant.completed <= completed), None
        )

    def milliseconds(self, time: str) -> int:
        """A time of the table's clock as milliseconds since 1970."""
        return int(self._jvm.static(_UTILS, "parseDateFromInstantTime")(time).getTime())

    def snapshot(self, instant: Instant) -> Snapshot:
        """The snapshot that an instant made."""
        before = self.before(instant.requested)
        at = datetime.fromtimestamp(
            self.milliseconds(instant.completed) / 1000, timezone.utc
        ).isoformat()
        return Snapshot(
            "hudi",
            instant.requested,
            before.requested if before is not None else None,
            committed_at=at,
            operation=instant.operation.lower(),
            number_of_rows=sum(count(instant, metric) for metric in _ROWS),
            replaces_table=before is None or instant.operation == "INSERT_OVERWRITE_TABLE",
            was_empty=before is None,
        )

    def _instant(self, option: JavaObject) -> Instant | None:
        if not option.isPresent():
            return None
        instant = option.get()
        commit = self._jvm.static(_UTILS, "getCommitMetadata")(instant, self._commits)
        return Instant(
            str(instant.requestedTime()),
            str(instant.getCompletionTime()),
            str(instant.getAction()),
            commit,
        )


COUNTS: Mapping[str, str] = {
    "number of inserted files": "fetchTotalFilesInsert",
    "number of updated files": "fetchTotalFilesUpdated",
    "number of inserted rows": "fetchTotalInsertRecordsWritten",
    "number of updated rows": "fetchTotalUpdateRecordsWritten",
    "number of deleted rows": "getTotalRecordsDeleted",
    "number of written rows": "fetchTotalRecordsWritten",
    "output size in bytes": "fetchTotalBytesWritten",
    "total insert time": "getTotalCreateTime",
    "total upsert time": "getTotalUpsertTime",
}
"""By metric of a write: the method of its commit that says the same."""


def count(instant: Instant, metric: str) -> int:
    """Return what a commit counted, by the name of the metric of the write that made it."""
    return int(getattr(instant.commit, COUNTS[metric])())


def micro_batches(instant: Instant) -> Mapping[str, str]:
    """The micro-batches that a commit says it holds, by the names of their writers."""
    try:
        return dict(json.loads(str(instant.commit.getExtraMetadata().get(_BATCHES) or "{}")))
    except ValueError:
        return {}
