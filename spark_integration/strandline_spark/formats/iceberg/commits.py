"""The commit of an Iceberg statement among those of one table.

Threads of one application may write it at once.

The name of every file that a write makes holds the write's own id, and a snapshot knows the files
it added: that proves it. A statement that adds no file (a DELETE of whole files) is known by what
its commit did, if no other one did the same. One commit alone proves nothing where an event may
have been dropped: it may be another statement's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from strandline_spark.formats.done import Done
from strandline_spark.jvm.client import JAVA_FAILED, JavaObject, Jvm
from strandline_spark.jvm.iceberg_snapshot import Commit
from strandline_spark.model.statement import Operation
from strandline_spark.plans.physical import write_of

_LOOKED_AT = 50  # snapshots among which one is looked for whose event did not come
_NO_STATEMENT = {"replace"}  # compaction
_DOES = {"append": {"append"}, "delete": {"delete", "overwrite"}}


def own_commit(
    commits: Sequence[Commit], done: Done, opened: Callable[[], JavaObject], jvm: Jvm
) -> tuple[Commit, bool] | None:
    """The commit that a statement made, and whether that is proven; None if none of them can be.

    `opened` gives the table as it is now; it is asked for only where one commit alone is no proof.
    """
    able = [commit for commit in commits if _may_be(commit, done.operation)]
    if not able:
        return None
    called = done.called_at is not None  # one without an execution may have made no commit
    if len(able) == 1 and done.all_came() and not called:
        return able[0], True
    table = opened()
    in_time = _in_time(able, done, table)
    if called and not in_time:
        return None
    able = in_time or able
    sure = done.all_came() and not (called and done.beside)
    if len(able) == 1 and sure:
        return able[0], True
    return _by_files(able, done, table, sure, jvm)


def _by_files(
    able: Sequence[Commit], done: Done, table: JavaObject, sure: bool, jvm: Jvm
) -> tuple[Commit, bool] | None:
    """The commit that added the statement's files, or the last one without files.

    `sure`: no commit is missing.
    """
    write_id = _write_id(done.execution, jvm)
    without_files = [commit for commit in able if "added-data-files" not in commit.summary]
    if write_id is None:
        return _last_of(without_files, proven=sure and len(without_files) == 1) or (able[-1], False)
    named = [commit for commit in able if _holds(table, commit.snapshot_id, write_id)]
    if named:
        return named[-1], True
    return _missed(table, done, write_id, jvm) or _last_of(without_files, proven=False)


def _last_of(commits: Sequence[Commit], *, proven: bool) -> tuple[Commit, bool] | None:
    return (commits[-1], proven) if commits else None


def _missed(table: JavaObject, done: Done, write_id: str, jvm: Jvm) -> tuple[Commit, bool] | None:
    """The commit whose event did not come, by the files that it added."""
    snapshot = table.currentSnapshot()
    for _ in range(_LOOKED_AT):
        if snapshot is None or (
            done.since is not None and int(snapshot.timestampMillis()) < done.since
        ):
            return None
        snapshot_id = str(snapshot.snapshotId())
        if _holds(table, snapshot_id, write_id):
            summary = jvm.mapping(snapshot.summary())
            return Commit(
                str(table.name()), str(snapshot.operation()), snapshot_id, 0, summary
            ), True
        parent = snapshot.parentId()
        snapshot = table.snapshot(parent) if parent is not None else None
    return None


def _may_be(commit: Commit, operation: Operation) -> bool:
    """Return true if a commit is of a kind that the statement can make.

    It is neither of a streaming query nor of housekeeping.
    """
    if commit.streamed or commit.operation in _NO_STATEMENT:
        return False
    return commit.operation in _DOES.get(operation, {commit.operation})


def _in_time(commits: Sequence[Commit], done: Done, table: JavaObject) -> list[Commit]:
    """Those that were made after the statement began."""
    begun = done.since
    commits_in_time = [(commit, table.snapshot(int(commit.snapshot_id))) for commit in commits]
    return [
        c
        for c, snapshot in commits_in_time
        if begun is None or snapshot is None or int(snapshot.timestampMillis()) >= begun
    ]


def _write_id(execution: JavaObject, jvm: Jvm) -> str | None:
    """The id that a write gives its files; None for what only deletes whole files."""
    write = write_of(execution.executedPlan()) if execution is not None else None
    if write is None:
        return None
    write_id = jvm.field(write, "queryId")
    if write_id is None:  # a write of deletes and rows keeps it a step deeper
        context = jvm.field(write, "context")
        write_id = jvm.field(context, "queryId") if context is not None else None
    return str(write_id) if write_id is not None else None


def _holds(table: JavaObject, snapshot_id: str, write_id: str) -> bool:
    """Return whether a snapshot added a file of that write.

    One file is enough: a snapshot is made by one write.
    """
    snapshot = table.snapshot(int(snapshot_id))
    if snapshot is None:
        return False
    try:
        for added in (snapshot.addedDataFiles(table.io()), snapshot.addedDeleteFiles(table.io())):
            files = added.iterator()
            if files.hasNext():
                return write_id in str(files.next().location())
    except JAVA_FAILED:  # its manifests are gone already
        return False
    return False
