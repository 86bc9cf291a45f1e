"""The branch of an Iceberg table that has a snapshot.

Whoever asks for the table itself is shown what main has, and no other.
"""

from __future__ import annotations

from dataclasses import replace

from strandline_spark.jvm.client import JAVA_FAILED, JAVA_THREW, JavaObject, Jvm
from strandline_spark.model.statement import Snapshot

MAIN = "main"
_UTIL = "org.apache.iceberg.util.SnapshotUtil"


def with_branch_of_commit(snapshot: Snapshot, table: JavaObject, jvm: Jvm) -> Snapshot:
    """A snapshot that was made, with the branch that has it if main has not.

    Staged, if no branch has it.

    table: as it is after the commit.
    """
    try:
        branch = _branch(snapshot, table, jvm)
    except JAVA_FAILED:
        return snapshot
    return snapshot if branch == MAIN else replace(snapshot, branch=branch, staged=branch is None)


def with_branch_of_read(read: Snapshot, table: JavaObject, was_staged: bool, jvm: Jvm) -> Snapshot:
    """A snapshot that was read, with a branch that has it.

    Main before others, for it may have been another's before.

    One that no branch has is an earlier one, mostly: nothing is said of it, nor where nothing but
    main can have had it.
    """
    try:
        return (
            replace(read, branch=_branch(read, table, jvm))
            if was_staged or table.refs().size() > 1
            else read
        )
    except JAVA_FAILED:
        return read


def _branch(snapshot: Snapshot, table: JavaObject, jvm: Jvm) -> str | None:
    id_ = int(snapshot.snapshot_id)
    if _is_in_main(id_, table, jvm):
        return MAIN
    refs = table.refs()
    for name in sorted(str(ref) for ref in refs):
        ref = refs[name]
        if (
            name != MAIN
            and ref.isBranch()
            and jvm.static(_UTIL, "isAncestorOf")(table, int(ref.snapshotId()), id_)
        ):
            return name
    return None


def _is_in_main(snapshot_id: int, table: JavaObject, jvm: Jvm) -> bool:
    try:
        return bool(jvm.static(_UTIL, "isAncestorOf")(table, snapshot_id))
    except JAVA_THREW:
        if table.currentSnapshot() is not None:
            raise
        return False
