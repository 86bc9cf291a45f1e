"""Event -> changes: everything that one event says.

A pure function of the event, its content hash and the moment of its receipt; other events play no
part.
"""

from typing import Any, NamedTuple

import msgspec

from strandline.core.changes.datasets import DatasetUse, NamedBefore, described_dataset
from strandline.core.changes.edges import (
    NO_EDGES,
    RENAMED_COLUMNS,
    edges_into_view,
    mentioned_by,
    renamed_columns,
)
from strandline.core.changes.extraction import SINK, SOURCE, Stamp, relation_id_of
from strandline.core.changes.lineage import EventChange, JobLineage, LineageSeen, lineage_of
from strandline.core.changes.memory import DatasetName, Memory
from strandline.core.changes.rows import (
    BarrierSeen,
    EdgesUsed,
    FacetsSeen,
    JobGroup,
    JobSeen,
    ParentIds,
    Parents,
    ParentsSeen,
    RunLease,
    RunParent,
    RunSeen,
)
from strandline.core.changes.snapshot_claims import claim_of, is_before_commit
from strandline.core.changes.snapshots import ClaimedUse, SnapshotContext, snapshots_of
from strandline.core.changes.streaming_queries import QueryContext, batch_of, query_seen
from strandline.core.openlineage import facets as f
from strandline.core.openlineage import run_states as states
from strandline.core.openlineage.events import Dataset, Event, Job, RawFacets, Run
from strandline.core.openlineage.facets import NO_FACETS, Facets
from strandline.core.openlineage.names import (
    bare,
    clean,
    id_of,
    is_delta_log,
    key_text,
    own_job_name,
    run_name,
)
from strandline.core.openlineage.times import micros

LONGEST_LEASE = 100 * 365 * 86_400
SKIPPED, COMMITTED = 1, 2
BEFORE_LATER = 2**60  # a START names the run's job until any later event does
_PHASES = {"committed": COMMITTED, "skipped": SKIPPED}


class EventChanges(NamedTuple):
    """The changes of one event; redacted: a secret was taken out of what it says."""

    changes: list[EventChange]
    redacted: bool


def changes_of(event: Event, stamp: Stamp, memory: Memory) -> EventChanges:
    """Return all that an event says."""
    memory = memory_for(event, stamp.at, memory)
    if event.run is not None and event.job is not None:
        return _changes_of_run(event, event.run, event.job, stamp, memory)
    if event.job is not None:
        return _changes_of_design(event, event.job, stamp, memory)
    if event.dataset is not None:
        return _changes_of_dataset(event.dataset, stamp, memory)
    return EventChanges([], redacted=False)


def _changes_of_run(event: Event, run: Run, job: Job, stamp: Stamp, memory: Memory) -> EventChanges:
    lineage = lineage_of(memory, event, job)
    run_id = memory.run(run.run_id, job.namespace, job.name)
    facets = _entity_facets(memory, f.RUN, run.facets)
    of_uses = _facets_of_uses(memory, event, lineage)
    parents = _parents_of(memory, facets)
    query_id, barrier = _committed_barrier(facets.value("strandline_barrier"))
    context = SnapshotContext(stamp, run_id, query_id, barrier, event.event_type == "START")
    changes: list[EventChange] = [
        _run_row(event, run, run_id, lineage, facets, stamp),
        LineageSeen(lineage, run_id, stamp.at, stamp.at),
        *_names_before(event, lineage, stamp),
        *_renamed_columns(event, run_id, of_uses, stamp),
        *_read_by_views(run_id, lineage, of_uses, stamp),
        *_facets_seen(run_id, f.RUN, stamp, facets),
        *_use_facets_seen(run_id, lineage, stamp, of_uses),
        *_parent_rows(run_id, facets, parents, stamp),
        *_lease_rows(run_id, facets.value("strandline_heartbeat"), stamp),
        *_query_rows(memory, event, job, run_id, lineage, facets, parents, stamp),
        *_barrier_rows(run_id, lineage.job.id, facets, stamp),
        *snapshots_of(context, _claims(lineage, of_uses)),
    ]
    redacted = lineage.redacted or facets.redacted
    return EventChanges(changes, redacted or any(own.redacted for own in of_uses.values()))


def design_id_of(namespace: str, job: str, at: int) -> int:
    """Return the id of a job's design of a moment."""
    return id_of("design", *own_job_name(namespace, job), str(at))


def _changes_of_design(event: Event, job: Job, stamp: Stamp, memory: Memory) -> EventChanges:
    """Return the changes of a JobEvent.

    What it reads and writes is a design of its own, identified by the event's time, and never live.
    It has no snapshots.
    """
    lineage = lineage_of(memory, event, job)
    job_id, at = lineage.job.id, stamp.at
    if event.inputs is None and event.outputs is None and not lineage.uses:
        facets_seen = FacetsSeen(job_id, f.JOB, at, lineage.facets)
        return EventChanges([lineage.job.between(at, at, 0, 0), facets_seen], lineage.redacted)
    design_id = design_id_of(job.namespace, job.name, at)
    of_uses = _facets_of_uses(memory, event, lineage)
    changes: list[EventChange] = [
        RunSeen(design_id, "", job_id, at, stamp.hash, 0, at, at, design=1),
        LineageSeen(lineage, design_id, at, at, ran=0),
        *_read_by_views(design_id, lineage, of_uses, stamp),
        *_use_facets_seen(design_id, lineage, stamp, of_uses),
    ]
    redacted = lineage.redacted or any(own.redacted for own in of_uses.values())
    return EventChanges(changes, redacted)


def _changes_of_dataset(named: Dataset, stamp: Stamp, memory: Memory) -> EventChanges:
    """Return the changes of a DatasetEvent."""
    described = described_dataset(memory, (named.namespace, named.name, bytes(named.facets)))
    if is_delta_log(named.name):
        return EventChanges([], described.redacted)
    dataset, facets = described.dataset, described.facets
    changes: list[EventChange] = [
        dataset.between(stamp.at, stamp.at),
        FacetsSeen(dataset.id, f.DATASET, stamp.at, facets.stored),
        *mentioned_by(memory, facets),
    ]
    if described.aliases is not None:
        changes.append(described.aliases)
    lifecycle: f.Lifecycle | None = facets.value("lifecycleStateChange")
    before = lifecycle.previous_name if lifecycle is not None else None
    if before is not None:
        now = memory.now
        named_now = now.dataset(named.namespace, named.name)
        alias = NamedBefore(named_now, now.dataset(*before)).alias_at(stamp.at)
        changes += [] if alias is None else [alias]
    return EventChanges(changes, described.redacted)


def memory_for(event: Event, at: int, memory: Memory) -> Memory:
    """Return the memory that names the datasets of an event of a moment as they were called."""
    return memory.at(at, _renames_in(event, memory)) if memory.names_before else memory


def _renames_in(event: Event, memory: Memory) -> set[tuple[DatasetName, DatasetName]]:
    """Return the names before and after each rename that an event states."""
    renames = set[tuple[DatasetName, DatasetName]]()
    for named in (*(event.outputs or ()), *([event.dataset] if event.dataset else [])):
        raw = bytes(named.facets)
        if b"previousIdentifier" not in raw:
            continue
        lifecycle: f.Lifecycle | None = memory.facets(f.DATASET, raw).value("lifecycleStateChange")
        if lifecycle is not None and lifecycle.previous_name is not None:
            before = memory.dataset(*lifecycle.previous_name)
            after = memory.dataset(named.namespace, named.name)
            renames.add(((before.namespace, before.name), (after.namespace, after.name)))
    return renames


def _names_before(event: Event, lineage: JobLineage, stamp: Stamp) -> list[EventChange]:
    """Return the names that datasets had before, unless the run only began to rename or failed."""
    if event.event_type in ("START", "FAIL", "ABORT"):
        return []
    aliases = [renamed.alias_at(stamp.at) for renamed in lineage.renamed]
    return [alias for alias in aliases if alias is not None]


def _renamed_columns(
    event: Event, run_id: int, of_uses: dict[DatasetUse, Facets], stamp: Stamp
) -> list[EventChange]:
    """Return the columns that a run renamed, unless it only began to or failed."""
    if event.event_type in ("START", "FAIL", "ABORT"):
        return []
    changes: list[EventChange] = []
    for use, facets in of_uses.items():
        snapshot: f.Snapshot | None = facets.value("strandline_snapshot")
        if use.direction != SINK or use.elsewhere or snapshot is None:
            continue
        names = renamed_columns(use.dataset.id, snapshot.renamed_columns or {})
        if names is not NO_EDGES:
            changes.append(names)
            changes.append(EdgesUsed(run_id, use.dataset.id, RENAMED_COLUMNS, names.hash, stamp.at))
    return changes


def _read_by_views(
    run_id: int, lineage: JobLineage, of_uses: dict[DatasetUse, Facets], stamp: Stamp
) -> list[EventChange]:
    """Return the edges into the views among the inputs, from the inputs that their queries read.

    A view that is no input, or in no namespace of the sender's, does not count: what is read
    through it is then read directly.
    """
    inputs = [use for use in lineage.reported if use.direction == SOURCE]
    behind_views: list[tuple[DatasetUse, list[tuple[str, str]], bool]] = []
    for use in inputs:
        snapshot: f.Snapshot | None = of_uses.get(use, NO_FACETS).value("strandline_snapshot")
        if snapshot is not None and snapshot.through:
            named = [(bare(view.namespace), bare(view.name)) for view in snapshot.through]
            behind_views.append((use, named, bool(snapshot.direct)))
    if not behind_views:
        return []
    views = {use.sent_as: use.dataset.id for use in inputs if not use.elsewhere}
    read: dict[int, set[int]] = {}
    for use, named, is_direct in behind_views:
        through = {views[name] for name in named if name in views} - {use.dataset.id}
        for id_ in through | ({use.dataset.id} if through and is_direct else set()):
            read.setdefault(id_, set()).add(use.dataset.id)
    changes: list[EventChange] = []
    for id_, source_ids in read.items():
        rule, edges = edges_into_view(source_ids)
        changes += [edges, EdgesUsed(run_id, id_, rule, edges.hash, stamp.at)]
    return changes


def _entity_facets(memory: Memory, kind: int, raw: RawFacets | None) -> Facets:
    """Return the facets of a run, an input or an output."""
    if not raw:
        return NO_FACETS
    return Facets({key: memory.facet(kind, key, bytes(facet)) for key, facet in raw.items()})


def _facets_of_uses(memory: Memory, event: Event, lineage: JobLineage) -> dict[DatasetUse, Facets]:
    """Return the facets that datasets have as an input or output of this event."""
    inputs, outputs = event.inputs or (), event.outputs or ()
    facets_of: dict[DatasetUse, Facets] = {}
    for use in lineage.reported:
        if use.direction == SOURCE:
            raw, kind = inputs[use.place].input_facets, f.INPUT
        else:
            raw, kind = outputs[use.place].output_facets, f.OUTPUT
        if raw:
            facets_of[use] = _entity_facets(memory, kind, raw)
    return facets_of


def _facets_seen(entity_id: int, kind: int, stamp: Stamp, facets: Facets) -> list[EventChange]:
    return [FacetsSeen(entity_id, kind, stamp.at, facets.stored)] if facets.stored else []


def _use_facets_seen(
    run_id: int, lineage: JobLineage, stamp: Stamp, of_uses: dict[DatasetUse, Facets]
) -> list[EventChange]:
    changes: list[EventChange] = []
    for use, facets in of_uses.items():
        kind = f.INPUT if use.direction == SOURCE else f.OUTPUT
        id_ = relation_id_of(run_id, use.direction, use.dataset.id)
        changes += _facets_seen(id_, kind, stamp, facets)
    return changes


def _run_row(
    event: Event, run: Run, run_id: int, lineage: JobLineage, facets: Facets, stamp: Stamp
) -> RunSeen:
    at, job_id = stamp.at, lineage.job.id
    rank = states.rank_of(event.event_type)
    is_start = rank == states.START
    starts, later = (job_id, None) if is_start else (None, job_id)
    announced = "strandline_heartbeat" in facets or "strandline_barrier" in facets
    return RunSeen(
        id=run_id,
        run_id=run_name(run.run_id),
        job_id=job_id,
        job_at=at - BEFORE_LATER if is_start else at,
        job_hash=stamp.hash,
        state=rank,
        first_at=at,
        newest_at=at,
        started_at=at if states.runs(rank) else None,
        ended_at=at if states.is_terminal(rank) else None,
        received_at=stamp.received_at,
        streaming=int(lineage.streaming),
        spark=int(lineage.spark),
        announced=int(announced),
        least_start=starts,
        most_start=starts,
        least_later=later,
        most_later=later,
    )


def _parents_of(memory: Memory, facets: Facets) -> Parents | None:
    """Return the parents that a run's facets name."""
    facet = facets.get("parent") or facets.get("parentRun")
    if facet is None:
        return None
    value: f.Parent = facet.value
    key = ("parents", facet.hash, memory.shared_turn)
    return memory.result(key, lambda: _parents(memory, value), _size_of_parents)


def _parents(memory: Memory, facet: f.Parent) -> Parents:
    parent, root = (_mention(memory, parent) for parent in (facet, facet.root or facet))
    (parent_job, (parent_run, _)), (root_job, (root_run, _)) = parent, root
    ids = ParentIds(parent_run, parent_job.id, root_run, root_job.id)
    return Parents(ids, tuple(dict.fromkeys((parent, root))))


def _mention(memory: Memory, named: f.Root) -> tuple[JobSeen, tuple[int, str]]:
    job, run_id = named.job, named.run.run_id
    run = memory.run(run_id, job.namespace, job.name), run_name(run_id)
    return memory.job(job.namespace, job.name), run


def _size_of_parents(parents: Parents) -> int:
    return 1000 + sum(500 + len(job.namespace) + len(job.name) for job, _ in parents.mentions)


def _parent_rows(
    run_id: int, facets: Facets, parents: Parents | None, stamp: Stamp
) -> list[EventChange]:
    if parents is None:
        return []
    facet = facets.get("parent") or facets["parentRun"]
    changes: list[EventChange] = [ParentsSeen(facet.hash, parents, stamp.received_at)]
    if parents.ids.parent_run_id != run_id:
        changes.append(RunParent(run_id, *parents.ids, stamp.at, stamp.hash))
    return changes


def _lease_rows(run_id: int, lease: f.Lease | None, stamp: Stamp) -> list[EventChange]:
    if lease is None or lease.timeout_seconds <= 0:
        return []
    seconds = int(min(max(lease.timeout_seconds, 1), LONGEST_LEASE))
    return [RunLease(run_id, seconds, stamp.at, stamp.hash)]


def _query_rows(
    memory: Memory,
    event: Event,
    job: Job,
    run_id: int,
    lineage: JobLineage,
    facets: Facets,
    parents: Parents | None,
    stamp: Stamp,
) -> list[EventChange]:
    """Return the streaming query that a micro-batch's own run belongs to.

    Its description names it, or its captured properties.
    """
    batch = batch_of(facets.value("spark_jobDetails"), facets.value("spark_properties"))
    if batch is None:
        return []
    facet = facets.get("parent") or facets.get("parentRun")
    application = facet.value.job.name if facet else job.name
    is_above = parents is not None and parents.ids.parent_run_id != run_id
    above = parents.ids if parents is not None and is_above else None
    context = QueryContext(run_id, job.namespace, application, above)
    return query_seen(memory, batch, context, event.event_type, lineage.uses, stamp)


def _committed_barrier(barrier: f.Barrier | None) -> tuple[str, int]:
    """Return the query and the number of a barrier that was committed, else '' and 0."""
    if barrier is None or barrier.number is None or _PHASES.get(barrier.phase) != COMMITTED:
        return "", 0
    return key_text(barrier.query_id or ""), barrier.number


def _barrier_rows(run_id: int, job_id: int, facets: Facets, stamp: Stamp) -> list[EventChange]:
    barrier: f.Barrier | None = facets.value("strandline_barrier")
    if barrier is None:
        return []
    changes: list[EventChange] = []
    if barrier.group:
        changes.append(JobGroup(job_id, key_text(barrier.group), stamp.at, stamp.hash))
    number, phase = barrier.number, _PHASES.get(barrier.phase)
    if number is None or phase is None:
        return changes
    row = BarrierSeen(
        job_id=job_id,
        query_id=key_text(barrier.query_id or ""),
        barrier=number,
        group_name=key_text(barrier.group or ""),
        engine=clean(barrier.engine or ""),
        batch_id=barrier.batch_id,
        phase=phase,
        started_at=micros(barrier.started_at) if barrier.started_at else None,
        committed_at=micros(barrier.committed_at) if barrier.committed_at else None,
        checkpoint=clean(barrier.checkpoint_location or ""),
        run_id=run_id,
        facet=beside_columns(facets["strandline_barrier"].body),
        at=stamp.at,
        hash=stamp.hash,
    )
    return [*changes, row]


class _BesideColumns(msgspec.Struct):
    generation: msgspec.Raw = msgspec.Raw()
    sources: msgspec.Raw = msgspec.Raw()
    lookups: msgspec.Raw = msgspec.Raw()


_BESIDE_COLUMNS = msgspec.json.Decoder(_BesideColumns)


def beside_columns(facet: bytes) -> bytes:
    """Return the members of a `strandline_barrier` facet that no column holds, as they came.

    What is no such facet stays as it is.

    >>> beside_columns(b'{"engine": "spark", "barrierId": 7, "sources": [ ]}')
    b'{"sources":[ ]}'
    """
    try:
        decoded: Any = _BESIDE_COLUMNS.decode(facet)
    except msgspec.DecodeError:
        return facet
    members = [(name, bytes(getattr(decoded, name))) for name in decoded.__struct_fields__]
    return b"{%s}" % b",".join(b'"%s":%s' % (name.encode(), raw) for name, raw in members if raw)


def _claims(lineage: JobLineage, of_uses: dict[DatasetUse, Facets]) -> list[ClaimedUse]:
    """Return the best claim about the snapshot of each dataset of an event."""
    alone = [use.direction for use in lineage.reported].count(SINK) == 1
    claims: list[ClaimedUse] = []
    for use in lineage.reported:
        own = of_uses.get(use, NO_FACETS)
        claim = claim_of(use.facets, own) if own else use.claim
        if claim is not None:
            early = is_before_commit(claim, lineage.job.name, use.facets, own, alone=alone)
            claims.append((use, claim._replace(before=early)))
    return claims
