"""The columns that each list has as CSV, by its path below /api/v2.

The same on every page, and where nothing is listed.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from strandline.core.exports.rows import csv_of

_NODE = ("id", "type", "namespace", "name")
_STATE = ("runId", "state", "running", "startedAt", "endedAt")
_OUTCOME = ("error", "failedChildren")
_SEEN = ("createdAt", "updatedAt")
_RECEIVED = ("id", "receivedAt", "topic", "partition", "offset", "reason", "size", "body")


def _of(name: str, columns: Iterable[str]) -> tuple[str, ...]:
    """Return the columns of an object that an item holds."""
    return tuple(f"{name}.{column}" for column in columns)


COLUMNS: Mapping[str, tuple[str, ...]] = {
    "/jobs": (
        *(*_NODE, *_SEEN, "group", "owners", *_of("parent", ("namespace", "name"))),
        *_of("latestRun", (*_STATE, *_OUTCOME)),
    ),
    "/datasets": (
        *(*_NODE, "catalog", "database", "table", *_SEEN, "droppedAt", "owners"),
        *_of("latestWrite", ("job.namespace", "job.name", *_STATE)),
        *_of("latestSnapshot", ("snapshotId", "barrierId", "committedAt", "numberOfRows")),
        "lagSeconds",
    ),
    "/datasets/snapshots": (
        *(
            "snapshotId",
            "observed",
            "barrierId",
            "committedAt",
            "parentSnapshotId",
            "operation",
            "format",
        ),
        "numberOfRows",
    ),
    "/runs": (
        *(*_STATE, *_OUTCOME, "job.namespace", "job.name", "streaming", *_SEEN),
        *_of("parent", ("runId", "job.namespace", "job.name")),
    ),
    "/search": (
        *(*_NODE, "matched", "text", "label", "catalog", "database", "table"),
        *_of("latestWrite", ("job.namespace", "job.name", *_STATE)),
        *_STATE,
    ),
    "/impact": (
        *(
            *_NODE,
            "catalog",
            "database",
            "table",
            "column",
            "distance",
            "dependency",
            "jobs",
            "owners",
            "droppedAt",
        ),
        *(
            "lastReadAt",
            *_of("lastReadBy", ("job", "runId")),
            "lastRunAt",
            "lastRunState",
            "hidden.access",
            "inSchema",
        ),
    ),
    "/lineage/nodes": ("id", "distance"),
    "/lineage/changes": (
        *(
            "change",
            "kind",
            "id",
            "source",
            "target",
            "job",
            "dependency",
            "transform",
            "before",
            "after",
        ),
    ),
    "/events": (
        *("hash", "receivedAt", "eventTime"),
        *_of(
            "event",
            (
                "eventType",
                "run.runId",
                "job.namespace",
                "job.name",
                "dataset.namespace",
                "dataset.name",
                "producer",
            ),
        ),
        *("event", "problem"),
    ),
    "/dead-letters": _RECEIVED,
    "/unread-events": _RECEIVED,
    "/rejected-events": ("producer", "reason", "count", "firstAt", "newestAt", "body"),
    "/rejected": ("list", "producer", "reason", "count", "firstAt", "newestAt", "place", "body"),
    "/groups": ("name", "declared", "tables", "generation", "barrier", "hidden.access"),
    "/jobs/barriers": (
        *(
            "barrierId",
            "group",
            "phase",
            "queryId",
            "batchId",
            "engine",
            "startedAt",
            "committedAt",
        ),
        *("checkpointLocation", "runId", "sources"),
    ),
}


def list_csv(path: str, items: Sequence[Mapping[str, Any]], columns: Sequence[str] = ()) -> str:
    """Return the items of a list as CSV.

    In its own columns, or where it has none in `columns` and all that items have.
    """
    own = COLUMNS.get(path.removeprefix("/api/v2"))
    return csv_of(items, columns) if own is None else csv_of(items, own, others=False)
