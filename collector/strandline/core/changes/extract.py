"""Event -> changes: everything that one event says about runs, jobs, datasets, relations, barriers and snapshots.

A pure function of the event, its content hash and the moment of its receipt; other events play no part.
"""

from collections.abc import Iterator, Sequence

from strandline.core.changes.barrier_facets import beside_columns
from strandline.core.changes.bundles import (
    FacetsSeen,
    Family,
    FamilySeen,
    Link,
    OutlineSeen,
    ParentIds,
)
from strandline.core.changes.edges import mentioned_by
from strandline.core.changes.extraction import SINK, SOURCE, Extraction, Stamp, relation_id_of
from strandline.core.changes.outlines import Drawn, outline_of
from strandline.core.changes.parse_cache import Memo
from strandline.core.changes.rows import (
    BarrierSeen,
    JobDomain,
    JobSeen,
    RunLease,
    RunParent,
    RunSeen,
)
from strandline.core.changes.snapshot_claims import claim_of, is_before_commit
from strandline.core.changes.snapshots import SnapshotContext, snapshots_of, under
from strandline.core.changes.streaming_queries import QueryContext, batch_of, query_seen
from strandline.core.changes.usable_facets import NO_FACETS, UsableFacets
from strandline.core.openlineage import facets as f
from strandline.core.openlineage import run_states as states
from strandline.core.openlineage.events import Dataset, Event, Job, Run
from strandline.core.openlineage.names import clean, id_of, is_delta_log, key_text, run_name
from strandline.core.openlineage.times import micros

LONGEST_LEASE = 100 * 365 * 86_400


def changes_of(event: Event, stamp: Stamp, memo: Memo) -> Extraction:
    """Read a whole event."""
    reading = Extraction(event, stamp, memo, [], [])
    if event.run is not None and event.job is not None:
        _read_run(reading, event.run, event.job)
    elif event.job is not None:
        _read_design(reading, event.job)
    elif event.dataset is not None:
        _read_dataset(reading, event.dataset)
    return reading


def _read_run(reading: Extraction, run: Run, job: Job) -> None:
    drawn = outline_of(reading.memo, reading.event, job)
    own = drawn.outline.job
    job_id, run_id = own.id, reading.memo.run(run.run_id, own.namespace, own.name)
    facets = reading.facets(f.RUN, run_id, run.facets)
    announced = "strandline_heartbeat" in facets or "strandline_barrier" in facets
    _add_run(reading, run_id, job_id, int(drawn.streaming), int(drawn.spark), int(announced))
    _read_parent(reading, run_id, facets)
    _read_lease(reading, run_id, facets.value("strandline_heartbeat"))
    _read_query(reading, run_id, job, facets, drawn.outline.links)
    barrier = _read_barrier(reading, run_id, job_id, facets)
    _add_outline(reading, run_id, drawn, ran=1)
    _read_snapshots(reading, under(reading.stamp, run_id, barrier, reading.event.event_type), drawn)


def _add_outline(reading: Extraction, run_id: int, drawn: Drawn, ran: int) -> None:
    at = reading.stamp.at
    reading.changes.append(OutlineSeen(drawn.outline, run_id, at, at, ran))
    if drawn.redacted:
        reading.redacted.append("job")


def _read_snapshots(reading: Extraction, under: SnapshotContext, drawn: Drawn) -> None:
    found, alone = [], [one.direction for one in drawn.named].count(SINK) == 1
    for link, own in _read_own(reading, under.run_id, drawn):
        claim = claim_of(link.group.facets, own) if own else link.claim
        if claim is not None:
            early = is_before_commit(
                claim, drawn.outline.job.name, link.group.facets, own, alone=alone
            )
            found.append((link, claim._replace(before=early)))
    reading.changes.extend(snapshots_of(under, found))


def _read_own(
    reading: Extraction, run_id: int, drawn: Drawn
) -> Iterator[tuple[Link, UsableFacets]]:
    """Note the facets that each dataset has as an input or output of this event."""
    inputs, outputs = reading.event.inputs or (), reading.event.outputs or ()
    for link in drawn.named:
        if link.direction == SOURCE:
            kind, facets = f.INPUT, inputs[link.place].input_facets
        else:
            kind, facets = f.OUTPUT, outputs[link.place].output_facets
        if facets:
            yield (
                link,
                reading.facets(
                    kind, relation_id_of(run_id, link.direction, link.dataset.id), facets
                ),
            )
        elif link.claim is not None:
            yield link, NO_FACETS


def _add_run(
    reading: Extraction, run_id: int, job_id: int, streaming: int, spark: int, announced: int
) -> None:
    at, hash_, received_at = reading.stamp
    rank = states.rank_of(reading.event.event_type)
    started_at = at if states.runs(rank) else None
    ended_at = at if states.is_terminal(rank) else None
    assert reading.event.run is not None
    name = run_name(reading.event.run.run_id)
    times = (at, at, started_at, ended_at, received_at)
    own = (streaming, spark, announced)
    reading.changes.append(
        RunSeen(run_id, name, job_id, at, hash_, rank, *times, 0, 0, *own, 0, job_id, job_id)
    )


def _read_design(reading: Extraction, job: Job) -> None:
    """A JobEvent: what it reads and writes is a design of its own, identified by the event's time, and never live."""
    drawn = outline_of(reading.memo, reading.event, job)
    at, hash_, _ = reading.stamp
    if reading.event.inputs is None and reading.event.outputs is None and not drawn.outline.links:
        _read_job(reading, drawn)
        return
    job_id = drawn.outline.job.id
    design_id = id_of("design", str(job_id), str(at))
    reading.changes.append(RunSeen(design_id, "", job_id, at, hash_, 0, at, at, design=1))
    _add_outline(reading, design_id, drawn, ran=0)
    for _ in _read_own(reading, design_id, drawn):
        pass  # a design has no snapshots


def _read_job(reading: Extraction, drawn: Drawn) -> None:
    """Note a job without any further facts."""
    at, outline = reading.stamp.at, drawn.outline
    reading.changes.append(outline.job.between(at, at, 0, 0))
    reading.changes.append(FacetsSeen(outline.job.id, f.JOB, at, outline.facets))
    if drawn.redacted:
        reading.redacted.append("job")


def _read_parent(reading: Extraction, run_id: int, facets: UsableFacets) -> None:
    facet = facets.get("parent") or facets.get("parentRun")
    if facet is None:
        return
    family: Family = reading.memo.derived(
        ("parent", facet.hash), lambda: _family(reading.memo, facet.value), _size_of_family
    )
    at, hash_, received_at = reading.stamp
    reading.changes.append(FamilySeen(facet.hash, family, received_at))
    if family.above.parent_run_id != run_id:
        reading.changes.append(RunParent(run_id, *family.above, at, hash_))


def _family(memo: Memo, facet: f.Parent) -> Family:
    root = facet.root or facet
    parent, top = (_mention(memo, one.run.run_id, one.job) for one in (facet, root))
    (parent_job, (parent_run, _)), (root_job, (root_run, _)) = parent, top
    above = ParentIds(parent_run, parent_job.id, root_run, root_job.id)
    return Family(above, tuple(dict.fromkeys((parent, top))))


def _size_of_family(family: Family) -> int:
    return 1000 + sum(500 + len(job.namespace) + len(job.name) for job, _ in family.mentions)


def _mention(memo: Memo, run_id: str, job: f.NamedEntity) -> tuple[JobSeen, tuple[int, str]]:
    named = memo.job(job.namespace, job.name)
    return named, (memo.run(run_id, named.namespace, named.name), run_name(run_id))


def _read_lease(reading: Extraction, run_id: int, lease: f.Lease | None) -> None:
    if lease is not None and lease.timeout_seconds > 0:
        seconds = int(min(max(lease.timeout_seconds, 1), LONGEST_LEASE))
        reading.changes.append(RunLease(run_id, seconds, reading.stamp.at, reading.stamp.hash))


def _read_query(
    reading: Extraction, run_id: int, job: Job, facets: UsableFacets, links: Sequence[Link]
) -> None:
    """The streaming query that a micro-batch's own run belongs to, by its description or its captured properties."""
    batch = batch_of(facets.value("spark_jobDetails"), facets.value("spark_properties"))
    if batch is None:
        return
    facet = facets.get("parent") or facets.get("parentRun")
    family = facet and _family(reading.memo, facet.value)
    parents = family.above if family and family.above.parent_run_id != run_id else None
    application = facet.value.job.name if facet else job.name
    above = QueryContext(run_id, job.namespace, application, parents)
    seen = query_seen(
        reading.memo, batch, above, reading.event.event_type, list(links), reading.stamp
    )
    reading.changes.extend(seen)


_PHASES = {"committed": 2, "skipped": 1}


def _read_barrier(
    reading: Extraction, run_id: int, job_id: int, facets: UsableFacets
) -> f.Barrier | None:
    """Note a barrier; gives it back if it is a committed one, for the snapshots that the event tells of."""
    barrier: f.Barrier | None = facets.value("strandline_barrier")
    if barrier is None:
        return None
    at, hash_, _ = reading.stamp
    if barrier.group:
        reading.changes.append(JobDomain(job_id, key_text(barrier.group), at, hash_))
    number, phase = barrier.number, _PHASES.get(barrier.phase)
    if number is None or phase is None:
        return None
    body = beside_columns(facets["strandline_barrier"].body)
    reading.changes.append(
        _barrier_row(reading.stamp, run_id, job_id, barrier, number, phase, body)
    )
    return barrier if phase == _PHASES["committed"] else None


def _barrier_row(
    stamp: Stamp, run_id: int, job_id: int, barrier: f.Barrier, number: int, phase: int, body: bytes
) -> BarrierSeen:
    return BarrierSeen(
        job_id=job_id,
        query_id=key_text(barrier.query_id or ""),
        barrier=number,
        domain=key_text(barrier.group or ""),
        engine=clean(barrier.engine or ""),
        batch_id=barrier.batch_id,
        phase=phase,
        started_at=micros(barrier.started_at) if barrier.started_at else None,
        committed_at=micros(barrier.committed_at) if barrier.committed_at else None,
        checkpoint=clean(barrier.checkpoint_location or ""),
        run_id=run_id,
        facet=body,
        at=stamp.at,
        hash=stamp.hash,
    )


def _read_dataset(reading: Extraction, dataset: Dataset) -> None:
    """A DatasetEvent."""
    at = reading.stamp.at
    stored, group = reading.memo.dataset_with(
        dataset.namespace, dataset.name, bytes(dataset.facets)
    )
    if group.redacted:
        reading.redacted.append("dataset")
    if is_delta_log(dataset.name):
        return
    reading.changes.append(stored.between(at, at))
    reading.changes.append(FacetsSeen(stored.id, f.DATASET, at, group.rows))
    reading.changes.extend(mentioned_by(reading.memo, group.facets))
    if group.aliases is not None:
        reading.changes.append(group.aliases)
