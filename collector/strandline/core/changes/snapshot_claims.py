"""Claims of an event about the snapshot of a dataset, and how sure they are.

Best first:

1. The dataset's own snapshot facet.
2. The standard `version` facet, where Iceberg's scan or commit report holds the same number rounded
   to a double.
3. The `version` facet alone, which is only observed: stock listeners read it when somebody else may
   have committed in between.
4. The double alone, which is no id, but can be matched with the ids that the table has.

A version that the report contradicts is a snapshot of the table, but not the one that was read or
made.
"""

from typing import NamedTuple

from strandline.core.openlineage import facets as f
from strandline.core.openlineage.facets import Facets

# Ranks of snapshot_uses; of snapshots, a reader's own statement is REPORTED.
OBSERVED, REPORTED, STATED = 1, 2, 3
# Of snapshots.aside: main has it; another branch has it; no branch has it.
IN_MAIN, OF_BRANCH, STAGED = 0, 1, 2
EXACT_DOUBLE = 2**53
# The stock listener names a run after a node of the plan.
OVERWRITING_NODE = "overwrite_by_expression_exec_v1"
BEYOND_IDS = 2**63  # an id is a whole number of 64 bits, so no greater double was made of one


class SnapshotClaim(NamedTuple):
    """The claim of one facet about a snapshot.

    lossy: its id came as a double, so only the first digits are sure.
    beside: another snapshot that the table has.
    before: the table had it before the statement committed, so another statement made it.
    """

    snapshot: f.Snapshot
    rank: int
    lossy: bool = False
    beside: str | None = None
    before: bool = False

    @property
    def is_version(self) -> bool:
        """True if only a `version` facet claims it: the table's snapshot, whoever made it."""
        return self.rank == OBSERVED and not self.snapshot.observed


def claim_of(facets: Facets, own: Facets) -> SnapshotClaim | None:
    """Return the best claim about a dataset's snapshot.

    By its own facets, and by those that it has as input or output.
    """
    stated: f.Snapshot | None = own.value("strandline_snapshot")
    stated = stated or facets.value("strandline_snapshot")
    if stated is not None and stated.snapshot_id:
        return SnapshotClaim(stated, OBSERVED if stated.observed else STATED)
    report: f.Report | None = own.value("icebergScanReport") or own.value("icebergCommitReport")
    version: f.Version | None = facets.value("version")
    return _best(_reported(report), version.dataset_version if version else "")


def aside_of(snapshot: f.Snapshot) -> int | None:
    """Return whether a snapshot stands beside the main line of its table.

    None where an event says nothing of it. The least of all claims counts: what main once had is of
    its line, whatever branch had it before.

    >>> [aside_of(f.Snapshot("1", branch=branch)) for branch in ("main", "dev", None)]
    [0, 1, None]
    """
    if snapshot.branch:
        return IN_MAIN if snapshot.branch == "main" else OF_BRANCH
    return STAGED if snapshot.staged else None


def is_before_commit(
    claim: SnapshotClaim, job: str, facets: Facets, own: Facets, *, alone: bool
) -> bool:
    """Return whether a sink had the snapshot before the statement's commit.

    alone: the event has no other sink.
    """
    if claim.is_version:
        return _ends_before_commit(job, facets, own)
    return claim.rank == REPORTED and alone and _reports_another_commit(own)


def _reports_another_commit(own: Facets) -> bool:
    """Return whether a report is of a commit that added other rows and bytes than the run wrote.

    The stock listener reports the newest commit of a table's main branch, also where a statement
    writes to another branch or stages its snapshot (`spark.wap.branch`, `spark.wap.id`). What has
    counted nothing proves nothing.
    """
    report: f.Report | None = own.value("icebergCommitReport")
    written: f.Statistics | None = own.value("outputStatistics")
    if report is None or written is None or not isinstance(report.commit_metrics, dict):
        return False
    rows = report.commit_metrics.get("addedRecords") or 0
    size = report.commit_metrics.get("addedFilesSizeInBytes") or 0
    has_other_rows = written.row_count not in (None, 0, rows)
    has_other_size = written.size not in (None, 0, size)
    return has_other_rows and has_other_size


def _ends_before_commit(job: str, facets: Facets, own: Facets) -> bool:
    """Return whether the version of a sink is that before the statement's commit.

    A DataFrame that overwrites a part of a Delta table has two runs. The inner one ends before the
    commit, with the version until then; a statement that has committed has statistics of what it
    wrote beside its version.
    """
    change: f.Lifecycle | None = facets.value("lifecycleStateChange")
    if change is None or change.lifecycle_state_change.upper() != "OVERWRITE":
        return False
    return "outputStatistics" not in own and OVERWRITING_NODE in job


def _best(reported: SnapshotClaim | None, version: str) -> SnapshotClaim | None:
    """Return the best of a report and of the version beside it ('': none)."""
    if reported is None:
        return SnapshotClaim(f.Snapshot(version), OBSERVED) if version else None
    snapshot = reported.snapshot
    if not version:
        return reported
    if version == snapshot.snapshot_id:
        return reported._replace(lossy=False)  # the version is the whole id, and proves it
    if reported.lossy and approximate(version) == float(snapshot.snapshot_id):
        return reported._replace(snapshot=_iceberg(version, snapshot.operation), lossy=False)
    return reported._replace(beside=version)


def _reported(report: f.Report | None) -> SnapshotClaim | None:
    """Return the claim of a report; a number beyond all ids claims nothing."""
    if report is None or report.snapshot_id is None:
        return None
    id_ = report.snapshot_id
    if not isinstance(id_, float):
        return SnapshotClaim(_iceberg(str(id_), report.operation), REPORTED)
    if abs(id_) >= BEYOND_IDS:
        return None
    lossy = abs(id_) > EXACT_DOUBLE
    return SnapshotClaim(_iceberg(str(int(id_)), report.operation), REPORTED, lossy)


def _iceberg(snapshot_id: str, operation: str | None) -> f.Snapshot:
    return f.Snapshot(snapshot_id, "iceberg", operation=operation)


def approximate(snapshot_id: str) -> float | None:
    """Return the double that a producer would write for this id; None where it loses nothing.

    >>> approximate("4358109269898191234") == 4.3581092698981914e18, approximate("12")
    (True, None)
    """
    digits = snapshot_id.removeprefix("-")
    is_whole = digits.isascii() and digits.isdigit() and len(digits) < 20
    if not is_whole or int(digits) <= EXACT_DOUBLE:
        return None
    return float(int(snapshot_id))
