"""Changes: what one event says, each a row of one table; and how rows of one key are folded.

The change itself decides the winner: `least` and `most` columns take the smallest and greatest
value of any event, all others come from the row with the greatest `rank`. So applying the same
changes twice, or in another order, or compacted first, leaves the same rows. The database
(store/sql/upsert.py) and `compact` fold by the same declarations.

What many events say alike (edges, other names, facets, parents) stands for several rows at once,
and becomes rows once a batch (compact.py).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from strandline.core.openlineage.facets import Facet


class NamespaceSeen(NamedTuple):
    """A namespace was named."""

    id: int
    name: str


class JobSeen(NamedTuple):
    """A job was named; without times, only mentioned (as somebody's parent)."""

    id: int
    namespace_id: int
    namespace: str
    name: str
    first_at: int | None
    newest_at: int | None
    noise: int = 0
    data: int = 0

    def between(self, first_at: int, newest_at: int, noise: int, data: int) -> "JobSeen":
        """Return the job as the events between these moments have it."""
        return JobSeen(
            self.id, self.namespace_id, self.namespace, self.name, first_at, newest_at, noise, data
        )


class JobGroup(NamedTuple):
    """A barrier facet put the job into a group."""

    job_id: int
    group_name: str
    at: int
    hash: int


class RunSeen(NamedTuple):
    """An event of a run, or (without times) a mention of it as parent."""

    id: int
    run_id: str
    job_id: int
    job_at: int
    job_hash: int
    state: int = 0
    first_at: int | None = None
    newest_at: int | None = None
    started_at: int | None = None
    ended_at: int | None = None
    received_at: int = 0
    child_received_at: int = 0
    design: int = 0
    streaming: int = 0
    spark: int = 0
    announced: int = 0
    query: int = 0
    least_start: int | None = None
    most_start: int | None = None
    least_later: int | None = None
    most_later: int | None = None


class RunParent(NamedTuple):
    """A parent facet."""

    run_id: int
    parent_run_id: int
    parent_job_id: int
    root_run_id: int
    root_job_id: int
    at: int
    hash: int


class ParentIds(NamedTuple):
    """The runs and jobs above a run, by their ids: its parent, and the root."""

    parent_run_id: int
    parent_job_id: int
    root_run_id: int
    root_job_id: int


class Parents(NamedTuple):
    """The ids of a parent facet, and each of the jobs that it names with its run's id and name."""

    ids: ParentIds
    mentions: tuple[tuple[JobSeen, tuple[int, str]], ...]


class ParentsSeen(NamedTuple):
    """A run named these parents in an event received then; `hash` is the facet's."""

    hash: bytes
    parents: Parents
    received_at: int


class RunLease(NamedTuple):
    """A run announced its heartbeat timeout."""

    run_id: int
    seconds: int
    at: int
    hash: int


class RunQuery(NamedTuple):
    """A run is a micro-batch of a streaming query, whose own run is the owner."""

    run_id: int
    query_id: str
    batch_id: int | None
    job_id: int
    owner_id: int
    rank: int
    at: int
    hash: int


class DatasetSeen(NamedTuple):
    """A dataset as a row of the store: it was named.

    One without times was only mentioned, by a symlink or an edge.
    """

    id: int
    namespace_id: int
    namespace: str
    name: str
    canonical_id: int
    place_id: int
    catalog: str
    database_name: str
    table_name: str
    first_at: int | None
    newest_at: int | None
    named: int

    def between(self, first_at: int, newest_at: int) -> "DatasetSeen":
        """Return the dataset as events between these moments read, write or describe it."""
        return DatasetSeen(
            self.id,
            self.namespace_id,
            self.namespace,
            self.name,
            self.canonical_id,
            self.place_id,
            self.catalog,
            self.database_name,
            self.table_name,
            first_at,
            newest_at,
            1,
        )


class DatasetAlias(NamedTuple):
    """A dataset has another name. at: of a name that it had until then; 0 for the others."""

    dataset_id: int
    alias_id: int
    type: str
    at: int = 0


class AliasSet(NamedTuple):
    """All other names of a dataset that one facet states, and the datasets that they name."""

    dataset_id: int
    hash: bytes
    aliases: tuple[DatasetAlias, ...]
    mentions: tuple[DatasetSeen, ...]


class FacetBody(NamedTuple):
    """The content of a facet that is stored once."""

    hash: bytes
    body: bytes


class SetFacet(NamedTuple):
    """A facet of a set that is stored once; body is None where it is in FacetBody."""

    set_id: int
    key: str
    kind: int
    hash: bytes
    body: bytes | None
    deleted: int


class FacetSetUsed(NamedTuple):
    """An entity had a set of facets."""

    entity_id: int
    set_id: int
    at: int


QUARANTINED = (
    10  # is added to the kind of a facet that is not used, so that it replaces no good one
)


class FacetSeen(NamedTuple):
    """A facet of an entity; body is None where it is in FacetBody."""

    entity_id: int
    key: str
    kind: int
    at: int
    hash: bytes
    body: bytes | None
    deleted: int
    problem: str


class FacetsSeen(NamedTuple):
    """An entity was seen with these facets."""

    entity_id: int
    kind: int
    at: int
    facets: Sequence[Facet]


# Values of `creates` beside 0. DEFINES: a write that changes a table and brings no rows. CREATES: a
# write that a failed run takes back. ELSEWHERE: a read of a dataset that is not its sender's, so no
# version depends on it. The greatest of a run's events counts.
DEFINES, CREATES, ELSEWHERE = -1, 1, 2


class RelationSeen(NamedTuple):
    """A run reads (direction 0) or writes (1) a dataset."""

    run_id: int
    direction: int
    dataset_id: int
    creates: int
    first_at: int
    newest_at: int


class JobRelation(NamedTuple):
    """The newest run in which a job read (direction 0) or wrote (1) a dataset.

    A design stands for it only where no run did.
    """

    job_id: int
    direction: int
    dataset_id: int
    run_id: int
    at: int
    ran: int = 1  # 0: a design, which has read and written nothing


class EdgeSeen(NamedTuple):
    """The edges of a set that come from one source; `columns` is a JSON array of `Edge`."""

    set_hash: bytes
    source_id: int
    columns: bytes


class EdgeSet(NamedTuple):
    """All edges into a sink that one facet states, and the datasets that they name."""

    hash: bytes
    edges: tuple[EdgeSeen, ...]
    mentions: tuple[DatasetSeen, ...]


class EdgesUsed(NamedTuple):
    """A run made this set of edges into a sink, by a rule."""

    run_id: int
    sink_id: int
    rule: int
    set_hash: bytes
    at: int


class BarrierSeen(NamedTuple):
    """A streaming job committed or skipped a barrier."""

    job_id: int
    query_id: str
    barrier: int
    group_name: str
    engine: str
    batch_id: int | None
    phase: int
    started_at: int | None
    committed_at: int | None
    checkpoint: str
    run_id: int
    facet: bytes
    at: int
    hash: int


class SnapshotSeen(NamedTuple):
    """A table has a snapshot.

    `aside` says that main does not have the snapshot (see `snapshot_claims`); None if nobody says.
    """

    dataset_id: int
    snapshot_id: str
    parent_id: str | None
    barrier: int | None
    run_id: int
    committed_at: int | None
    operation: str
    format: str
    row_count: int | None
    approximate: float | None
    rank: int
    at: int
    hash: int
    first_at: int
    aside: int | None = None


class SnapshotUsed(NamedTuple):
    """A run read or made a snapshot, under a barrier (0: none); `flags` are those of the column."""

    run_id: int
    barrier: int
    direction: int
    dataset_id: int
    snapshot_id: str
    from_snapshot_id: str | None
    query_id: str
    lossy: int
    rank: int
    order_at: int
    at: int
    hash: int
    flags: int = 0


Change = (
    NamespaceSeen
    | JobSeen
    | JobGroup
    | RunSeen
    | RunParent
    | RunLease
    | RunQuery
    | DatasetSeen
    | DatasetAlias
    | FacetBody
    | FacetSeen
    | SetFacet
    | FacetSetUsed
    | RelationSeen
    | JobRelation
    | EdgeSeen
    | EdgesUsed
    | BarrierSeen
    | SnapshotSeen
    | SnapshotUsed
)


@dataclass(frozen=True, slots=True)
class Fold:
    """The folding of the rows of one key into one: see the module's docstring.

    Without rank the first row stays: all are equal.
    """

    table: str
    key: tuple[str, ...]
    rank: tuple[str, ...] = ()
    least: tuple[str, ...] = ()
    most: tuple[str, ...] = ()
    ranked: tuple[str, ...] = ()  # what the rank decides; () with a rank: every other column


_STAMP = ("at", "hash")

FOLDS: dict[type[Change], Fold] = {
    NamespaceSeen: Fold("namespaces", ("id",)),
    JobSeen: Fold("jobs", ("id",), least=("first_at",), most=("newest_at", "noise", "data")),
    JobGroup: Fold("job_groups", ("job_id",), _STAMP),
    RunSeen: Fold(
        "runs",
        ("id",),
        rank=("job_at", "job_hash", "job_id"),
        least=("first_at", "started_at", "ended_at", "least_start", "least_later"),
        most=(
            *("state", "newest_at", "received_at", "child_received_at"),
            *("design", "streaming", "spark", "announced", "query", "most_start", "most_later"),
        ),
        ranked=("job_id", "job_at", "job_hash"),
    ),
    RunParent: Fold("run_parents", ("run_id",), _STAMP),
    RunLease: Fold("run_leases", ("run_id",), _STAMP),
    RunQuery: Fold("run_queries", ("run_id",), ("rank", *_STAMP)),
    DatasetSeen: Fold("datasets", ("id",), least=("first_at",), most=("newest_at", "named")),
    DatasetAlias: Fold("dataset_aliases", ("dataset_id", "alias_id", "type"), most=("at",)),
    FacetBody: Fold("facet_bodies", ("hash",)),
    SetFacet: Fold("facet_sets", ("set_id", "key")),
    FacetSetUsed: Fold("facet_uses", ("entity_id", "set_id"), most=("at",)),
    FacetSeen: Fold("facets", ("entity_id", "key", "kind"), _STAMP),
    RelationSeen: Fold(
        "run_relations",
        ("run_id", "direction", "dataset_id"),
        least=("first_at",),
        most=("newest_at", "creates"),
    ),
    JobRelation: Fold(
        "job_relations", ("job_id", "direction", "dataset_id"), ("ran", "at", "run_id")
    ),
    EdgeSeen: Fold("edge_columns", ("set_hash", "source_id")),
    EdgesUsed: Fold("run_edges", ("run_id", "sink_id", "rule"), ("at", "set_hash")),
    BarrierSeen: Fold("job_barriers", ("job_id", "barrier", "query_id"), ("phase", *_STAMP)),
    SnapshotSeen: Fold(
        "snapshots",
        ("dataset_id", "snapshot_id"),
        rank=("rank", *_STAMP),
        least=("first_at", "aside"),
        ranked=tuple(
            name for name in SnapshotSeen._fields[2:] if name not in ("first_at", "aside")
        ),
    ),
    SnapshotUsed: Fold(
        "snapshot_uses",
        ("run_id", "barrier", "direction", "dataset_id", "snapshot_id"),
        ("rank", "order_at", *_STAMP),
    ),
}
