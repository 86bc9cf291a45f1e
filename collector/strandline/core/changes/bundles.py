"""Bundles: changes that hold the rows of others, so that what many events say alike is folded once and unpacked then.

A job's events mostly differ in run and time alone. All the rest is an `Outline`, and what a batch says with it is one
row a run; `compact` unpacks bundles into the rows that their events would have left one by one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from strandline.core.changes.rows import Change, DatasetAlias, DatasetSeen, EdgeSeen, JobSeen
from strandline.core.changes.snapshot_claims import SnapshotClaim
from strandline.core.changes.usable_facets import NO_FACETS, UsableFacets

NOWHERE = -1


class AliasSet(NamedTuple):
    """All other names of a dataset that one facet states, and the datasets that they name."""

    dataset_id: int
    hash: bytes
    aliases: tuple[DatasetAlias, ...]
    mentions: tuple[DatasetSeen, ...]


class FacetRow(NamedTuple):
    """What a facet is, whoever has it."""

    key: str
    hash: bytes
    body: bytes
    deleted: int
    problem: str


class Group(NamedTuple):
    """All facets of one job or dataset in one event: as rows, and those of them that count.

    redacted: something secret was taken out of them, or of the dataset's name; aliases: the other
    names of a dataset that its symlinks facet states.
    """

    rows: tuple[FacetRow, ...]
    facets: UsableFacets
    redacted: bool
    aliases: AliasSet | None = None


NO_GROUP = Group((), NO_FACETS, False)


class FacetsSeen(NamedTuple):
    """An entity was seen with these facets."""

    entity_id: int
    kind: int
    at: int
    facets: Sequence[FacetRow]


class EdgeSet(NamedTuple):
    """All edges into a sink that one facet states, and the datasets that they name."""

    hash: bytes
    edges: tuple[EdgeSeen, ...]
    mentions: tuple[DatasetSeen, ...]


class ParentIds(NamedTuple):
    """The runs and jobs above a run, by their ids: its parent, and the root."""

    parent_run_id: int
    parent_job_id: int
    root_run_id: int
    root_job_id: int


class Family(NamedTuple):
    """What a parent facet names.

    Who is above, and each of these jobs and runs once (`mentions`).
    """

    above: ParentIds
    mentions: tuple[tuple[JobSeen, tuple[int, str]], ...]


class FamilySeen(NamedTuple):
    """A run named these as its parent and root, in an event received then.

    `hash` is the facet's.
    """

    hash: bytes
    family: Family
    received_at: int


@dataclass(frozen=True, slots=True, eq=False)
class Link:
    """A dataset as one that a job reads (direction 0) or writes (1), with its facets and the snapshot that they claim.

    `dataset` is its row without times; `called`: namespace and name as they came, without secrets; `place`: where it is among
    the inputs or outputs, NOWHERE if it is declared by a facet alone. `elsewhere`: it is in no namespace of the sender's, so
    the event names it and has no say in what it is.
    """

    direction: int
    dataset: DatasetSeen
    called: tuple[str, str]
    group: Group = NO_GROUP
    creates: int = 0
    place: int = NOWHERE
    claim: SnapshotClaim | None = None
    elsewhere: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Outline:
    """All that an event says beside its run and its time.

    Equal only to itself: it is made once and remembered.

    `job` is its row without times; `edges` are sets, each with its sink and rule; `related` are the
    datasets that the job is named with, as a source (0) or a sink (1).
    """

    job: JobSeen
    noise: int
    data: int
    facets: Sequence[FacetRow]
    links: Sequence[Link]
    edges: Sequence[tuple[int, int, EdgeSet]]
    related: frozenset[tuple[int, int]]


class OutlineSeen(NamedTuple):
    """A run, or a design (ran = 0), had events of this outline."""

    outline: Outline
    run_id: int
    first_at: int
    newest_at: int
    ran: int = 1


Bundle = AliasSet | FacetsSeen | EdgeSet | FamilySeen | OutlineSeen
Statement = Change | Bundle
